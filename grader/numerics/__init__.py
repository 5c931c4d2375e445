"""Numbers before a kernel sees them: data sets drawn from a seed, layouts in memory, and poison where nothing is.

roundoff.py holds what one correct rounding costs in each dtype. The distance that a result may have from the right
value is a matter of its operation, in operations/.
"""
