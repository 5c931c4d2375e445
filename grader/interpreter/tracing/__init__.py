"""Traces one program of each launch for `course trace`: its values, operation by operation."""
