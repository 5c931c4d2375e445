"""The parent's ends of its processes: started, fenced in, asked under a limit, ended without leftovers."""
