"""The untrusted side: processes that run a learner's file, behind a fence and within limits.

A recording child imports the file and calls its host function on tensors without memory. It computes nothing: it
reports the recipes of the kernels, the launches and the buffers. The fence and the limits also hold for the processes
that interpret and compile what a recording child has reported.
"""
