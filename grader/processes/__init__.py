"""The parent's ends of its processes: started, fenced in, asked under a time limit, ended without leftovers."""
