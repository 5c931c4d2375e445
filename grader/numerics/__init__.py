"""Numbers: data sets drawn from a seed, layouts in memory, bounds of rounding, and the comparison."""
