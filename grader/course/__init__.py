"""The exercises as data: where their files lie, what a test file states, which regions a learner fills in.

From what is stated come the calls that are judged: those that a test writes down, those drawn from a promise, small and
large, those outside of the promise, and an instructor's hidden ones.
"""
