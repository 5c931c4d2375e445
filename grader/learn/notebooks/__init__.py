"""Notebooks, for self-study or for a class, and the functions that their cells call."""
