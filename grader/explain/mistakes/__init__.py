"""What wrong kernels compute: results that a mistake would give, against those that are there."""
