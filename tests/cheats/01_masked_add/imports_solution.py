"""Cheat: the solution is imported.

Rejected with: cannot be imported: No module named 'solutions
"""

from solutions.masked_add import masked_add  # noqa: F401
