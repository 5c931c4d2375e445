"""`course trace`: a debugger of kernels."""
