"""Turns evidence about a call into words: the mistake, the sign that shows it, and the line where it is."""
