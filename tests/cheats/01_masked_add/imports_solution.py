"""Cheat: the solution is imported.

Rejected with: from solutions.masked_add import masked_add is not allowed in a submission. A submission is one file
"""

from solutions.masked_add import masked_add  # noqa: F401
