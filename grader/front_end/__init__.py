"""The front end: a trusted, disposable process that makes a kernel's text from a learner's file and a recipe.

It runs no Python of the file: a kernel is read by Triton's front end, a constexpr function by our own evaluator, and
both reach only names and attributes that stand in a list.
"""
