"""The judge of an exercise: one submission, the calls that the tests ask for, and a verdict for each test.

A call is judged in the interpreter, by the machine code that is made of its kernels and, where there is a GPU, on it.
The first mistake found is the reason that a verdict gives; the words for it stand in explain/.
"""
