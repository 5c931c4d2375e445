"""docs/cluster/: the files that start a Dask cluster, as far as they can be tried without Slurm and Kubernetes."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from distributed import Client

from tests.classroom.dask_cluster import listens
from tests.classroom.instructor import ROOT, environment
from tests.waiting import NEVER, until

FILES = ROOT / "docs/cluster"


def test_slurm_gets_a_job_per_gpu_and_each_becomes_a_worker(tmp_path):
    """With a stand-in for sbatch that keeps the script of a job and runs it here. Two jobs are asked for."""
    pytest.importorskip("dask_jobqueue", reason="needs the extra cluster")
    tools, activate = tmp_path / "tools", tmp_path / "triton-course/.venv/bin/activate"
    for folder in (tools, activate.parent):
        folder.mkdir(parents=True)
    activate.write_text("export ACTIVATED=yes\n")
    _tool(tools / "sbatch", f'cp "$1" {tmp_path}/job.$$ && bash {tmp_path}/job.$$ & echo "Submitted batch job $$"')
    _tool(tools / "scancel", "true")
    text = (FILES / "slurm.py").read_text(encoding="utf-8")
    assert text.count("\nJOBS = 4 ") == 1
    (tmp_path / "slurm.py").write_text(text.replace("\nJOBS = 4 ", "\nJOBS = 2 "))
    given = environment(HOME=str(tmp_path))
    given["PATH"] = os.pathsep.join([str(tools), given["PATH"]])
    running = subprocess.Popen(
        [sys.executable, tmp_path / "slurm.py"], cwd=tmp_path, env=given, stdout=subprocess.PIPE, text=True,
        stderr=(tmp_path / "log").open("w"), start_new_session=True,
    )  # fmt: skip
    try:
        address = running.stdout.readline().strip()
        with Client(address, timeout=NEVER) as client:
            client.wait_for_workers(2, timeout=NEVER)
            told = workers_of(client)
            assert [(worker["nthreads"], worker["resources"]) for worker in told] == [(8, {"GPU": 8})] * 2
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait(NEVER)
        running.stdout.close()
    (script, *others) = [path.read_text() for path in tmp_path.glob("job.*")]
    assert len(others) == 1
    for line in ("#SBATCH -p gpu", "#SBATCH --cpus-per-task=8", "#SBATCH --gres=gpu:1", "#SBATCH -t 02:00:00"):
        assert re.search(f"^{re.escape(line)}$", script, re.M), script
    assert script.index("source ~/triton-course/.venv/bin/activate") < script.index("distributed.cli.dask_worker")


def workers_of(client: Client) -> list[dict]:
    """Asks until some are told: each two seconds the client asks for none, and may put that answer in place of ours."""
    return until(lambda: list(client.scheduler_info()["workers"].values()))


def _tool(path: Path, command: str) -> None:
    path.write_text(f"#!/bin/sh\n{command}\n")
    path.chmod(0o755)


def test_kubernetes_gets_a_scheduler_and_a_worker_per_gpu():
    parts = list(yaml.safe_load_all((FILES / "kubernetes.yaml").read_text(encoding="utf-8")))
    service, scheduler, worker = parts
    assert [part["kind"] for part in parts] == ["Service", "Deployment", "Deployment"]
    assert service["spec"]["selector"] == scheduler["spec"]["template"]["metadata"]["labels"]
    (container,) = worker["spec"]["template"]["spec"]["containers"]
    command = container["command"]
    assert f"tcp://{service['metadata']['name']}:{service['spec']['ports'][0]['port']}" in command
    assert command[command.index("--resources") + 1] == f"GPU={command[command.index('--nthreads') + 1]}"
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 1


def test_ssh_starts_a_worker_per_gpu_and_ends_all_of_it(tmp_path):
    """With a stand-in for ssh that runs the command here."""
    stand_in = tmp_path / "ssh"
    _tool(stand_in, 'shift; exec bash -c "$1"')
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = environment(SSH=str(stand_in), PORT=str(port), THREADS="2", ACTIVATE="true")
    said = tmp_path / "log"
    with said.open("w") as log:
        running = subprocess.Popen(
            [FILES / "ssh.sh", "127.0.0.1", "gpu1:0", "gpu2:"], cwd=tmp_path, env=given, stdout=log, stderr=log
        )
    try:
        until(lambda: running.poll() is not None or listens(port))
        assert running.poll() is None
        with Client(f"tcp://127.0.0.1:{port}", timeout=NEVER) as client:
            client.wait_for_workers(2, timeout=NEVER)
            told = workers_of(client)
            assert sorted((worker["nthreads"], worker["resources"].get("GPU", 0)) for worker in told) == [
                (2, 0),
                (2, 2),
            ]
            assert sorted(client.run(os.getenv, "CUDA_VISIBLE_DEVICES").values()) == ["", "0"]
        until(
            lambda: f"course grade --isolation strict --scheduler tcp://127.0.0.1:{port}" in said.read_text(),
            said.read_text,
        )
    finally:
        os.kill(running.pid, signal.SIGTERM)
        running.wait(NEVER)
