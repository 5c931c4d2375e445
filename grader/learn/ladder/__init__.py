"""`course ladder`: the kernels of an exercise from the naive kernel to the best."""
