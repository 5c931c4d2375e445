"""The exercises as data: where their files lie, what a test file states, which regions a learner fills in.

The calls to judge are made from what is stated: calls that a test writes down, calls drawn from a promise, small and
large, calls outside of the promise, and an instructor's hidden calls.
"""
