"""Cheat: the solution is imported.

Rejected with: cannot be imported: No module named 'solutions.masked_add'
"""

from solutions.masked_add import masked_add  # noqa: F401
