"""Launches each rung of a ladder on its timed call's shape, twice, for a profiler to look at: the figures of lesson 42.

    ncu -k regex:_kernel --csv --metrics gpu__time_duration.sum,dram__throughput.avg.pct_of_peak_sustained_elapsed,\
smsp__issue_active.avg.pct_of_peak_sustained_active,\
l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum,l1tex__t_requests_pipe_lsu_mem_global_op_st.sum \
python benchmarks/ladder_profiles.py

The second launch of each is the one to read: the first finds a cold instruction cache. Needs a GPU.
"""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from types import ModuleType

import torch

from grader.course.folder import Folder, load_test_file
from grader.learn.ladder.rungs import ladder_of
from grader.places import COURSE

SHAPES = {"04_transpose": (8192, 8192), "07_row_sum": (4096, 65536)}  # of x, fp32, as the ladders time them


def module_of(text: str, name: str) -> ModuleType:
    path = Path(tempfile.mkdtemp()) / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    for id, shape in SHAPES.items():
        folder = Folder(COURSE / "exercises" / id)
        entry, ladder = load_test_file(folder).exercise.entry, ladder_of(folder)
        assert ladder
        x = torch.randn(shape, device="cuda")
        for number, rung in enumerate(ladder.rungs):
            call = getattr(module_of(rung.text, f"{id[3:]}_{number}"), entry)
            print(id, rung.name, flush=True)
            for _ in range(2):
                call(x)
                torch.cuda.synchronize()


if __name__ == "__main__":
    main()
