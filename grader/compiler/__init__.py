"""Turns the compiler's text of a kernel into machine code, in a separate process that never sees a learner's Python."""
