"""The compiler's text of a kernel to machine code, in a process of its own that never sees a learner's Python."""
