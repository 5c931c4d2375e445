"""The environment of our processes that leave the other cores to others."""

# numpy's OpenBLAS starts a thread per core when it is imported, and each one looks for work for a while: on 16 cores
# importing torch took 3.4 s of a core with them and 1.4 s without.
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
