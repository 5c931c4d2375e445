"""The front end: a trusted, disposable process that makes a kernel's text of a learner's file and a recipe.

It runs no Python of the file: a kernel is read by Triton's front end, a constexpr function by an evaluator of ours,
and both reach only names and attributes that stand in a list.
"""
