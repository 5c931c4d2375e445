"""What workers without a GPU are good for where one worker has one: a class judged by a cluster, without and with them.

    python benchmarks/lent_gpu.py [--own N] [--lent N] [--copies N] [--only 02,03]

Starts a Dask cluster on this machine: a worker with the first GPU that judges `own` texts at a time, and in the second
run one more, which sees no GPU and judges `lent` texts at a time. The class is that of benchmarks/class_on_gpus.py;
it says whether a verdict differs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

from class_on_gpus import graded, told, write_reference  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402

from grader.classroom.cluster import gpus  # noqa: E402


def worker(address: str, threads: int, gpu: str, folder: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", str(threads), "--no-nanny"]
    resources = ["--resources", f"GPU={threads}"] if gpu else []
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": gpu, "PYTHONPATH": os.pathsep.join(map(str, sys.path))}
    with Path(folder, f"worker-{gpu or 'without'}.log").open("w") as log:
        return subprocess.Popen([*command, *resources, "--no-dashboard"], env=environment, stdout=log, stderr=log)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--own", type=int, default=3)
    parser.add_argument("--lent", type=int, default=9)
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--only", default="", help="numbers of exercises: 02,03")
    given = parser.parse_args()
    gpu, *_ = gpus.identifiers() or [""]
    if not gpu:
        raise SystemExit("There is no GPU here.")
    first: dict = {}
    with tempfile.TemporaryDirectory() as folder:
        submissions = Path(folder, "submissions")
        write_reference(submissions, given.copies, list(filter(None, given.only.split(","))))
        for lent in (0, given.lent):
            print(f"{given.own} judges beside the GPU, {lent} that borrow it", flush=True)
            with LocalCluster(n_workers=0, protocol="tcp", host="127.0.0.1", dashboard_address=":0") as cluster:
                address, out = cluster.scheduler_address, Path(folder, f"results-{lent}")
                workers = [worker(address, given.own, gpu, folder)]
                workers += [worker(address, lent, "", folder)] if lent else []
                try:
                    with Client(address) as client:
                        client.wait_for_workers(len(workers), timeout=120)
                    told(1, graded(submissions, out, [gpu], "--scheduler", address), out, first)
                finally:
                    for process in workers:
                        process.kill()
                        process.wait()


if __name__ == "__main__":
    main()
