"""Numbers before a kernel sees them: data sets drawn from a seed, layouts in memory, and poison where nothing stands.

roundoff.py holds what one correct rounding costs in each dtype. How far a result may lie from the right one is a matter
of its operation, in operations/.
"""
