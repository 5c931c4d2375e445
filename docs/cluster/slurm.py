"""A Dask cluster from Slurm's queue: one job per GPU. Run it on the login node and leave it running, as in tmux.

It prints the address for `course grade --isolation strict --scheduler ADDRESS`. Change what is between the lines.
"""

import signal

from dask_jobqueue import SLURMCluster

# ---------------------------------------------------------------------------------------------------------------------
JOBS = 4  # as many GPUs
CORES = 8  # of each job; as many hand-ins are judged side by side on its GPU
QUEUE = "gpu"
ACTIVATE = "source ~/triton-course/.venv/bin/activate"  # the same folder on all nodes
# ---------------------------------------------------------------------------------------------------------------------

cluster = SLURMCluster(
    queue=QUEUE,
    walltime="02:00:00",
    processes=1,
    cores=CORES,
    memory=f"{2 * CORES} GB",
    job_extra_directives=["--gres=gpu:1"],
    worker_extra_args=["--resources", f"GPU={CORES}"],
    job_script_prologue=[ACTIVATE],
)
cluster.scale(jobs=JOBS)
print(cluster.scheduler_address, flush=True)
signal.pause()
