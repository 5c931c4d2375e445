"""The environment of our processes that leave the other cores to others.

It counts if it is set before torch or numpy is imported.
"""

# numpy's OpenBLAS starts a thread per core when it is imported, and each one looks for work for a while: on 16 cores
# importing torch took 3.4 s of a core with them and 1.4 s without.
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# For a process that keeps its threads: without work they sleep. By default they look for some in a loop, which
# took 2 to 3 s of a core of a run of 6 where other processes wanted the cores too.
PATIENT = {"OMP_WAIT_POLICY": "PASSIVE"}
