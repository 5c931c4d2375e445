"""The untrusted side: what runs in a process with a learner's file, behind a fence and within limits.

A recording child imports the file and calls its host function on tensors without memory. It computes nothing: it tells
the recipes of the kernels, the launches and the buffers. The fence and the limits also hold for the processes that
interpret and compile what such a child has told.
"""
