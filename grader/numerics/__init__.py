"""Numbers before and after a kernel: data sets drawn from a seed, layouts in memory, poison where nothing is, and how
far a result may lie from the exact one.

roundoff.py holds what one correct rounding costs in each dtype, bounds.py what an exercise's model of rounding adds to
it, and comparison.py compares.
"""
