"""Many texts, judged side by side: worker processes that each call pytest as a learner does.

A worker never runs a submission; the child that pytest starts does. Still a worker may die (out of memory) or hang:
pebble then replaces it, and only this one text is judged again.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import TimeoutError, as_completed
from multiprocessing import get_context
from pathlib import Path

from grader.classroom.results import Results, Text, faulty
from grader.sandbox import AUTO

ATTEMPTS = 3  # at a text that meets a fault of the machine
MOST_SECONDS = 600  # for one text: the judge's own limits are far below
TEXTS_PER_WORKER = 200  # then a fresh one, so that nothing can pile up


def judge_all(texts: list[Text], results: Results, level: str, jobs: int, told: Callable[[Text, dict], None]) -> None:
    """Judges and stores each text; `told` hears of each as it is done. Faults are tried again, then stored."""
    from pebble import ProcessPool

    for attempt in range(1, ATTEMPTS + 1):
        faults = []
        pool = ProcessPool(jobs, TEXTS_PER_WORKER, context=get_context("spawn"), initializer=prepare)
        with _stopped_when_done(pool):
            futures = {pool.schedule(judge, args=[text, level], timeout=MOST_SECONDS): text for text in texts}
            for future in as_completed(futures):
                text, result = futures[future], _result_of(future, futures[future])
                if result["fault"] and attempt < ATTEMPTS:
                    faults.append(text)
                    continue
                results.store(text, result)
                told(text, result)
        if not faults:
            return
        texts = faults


def judge(text: Text, level: str = AUTO) -> dict:
    """The judge's result for one text, with what it printed as "report": the command of a learner, in this process."""
    import pytest

    name = f"{text.exercise.name}.py"
    with tempfile.TemporaryDirectory(prefix="course-") as folder, contextlib.redirect_stdout(io.StringIO()) as printed:
        file, path = Path(folder, name), Path(folder, "result.json")
        file.write_text(text.text, encoding="utf-8", newline="")
        arguments = [str(text.exercise.path), "--submission", str(file), "--result", str(path), "--disable-warnings"]
        arguments += ["--isolation", level, *(["--hidden", str(text.hidden)] if text.hidden else [])]
        with contextlib.redirect_stderr(printed), contextlib.chdir(text.exercise.root):
            status = pytest.main(arguments)
            shown = (os.path.relpath(file), str(file))
        report = printed.getvalue().strip("\n")
        for place in shown:  # the place of a file that is gone, and of the instructor's folders
            report = report.replace(place, name)
        if not path.exists():
            last = report.strip().splitlines()[-1:]
            return faulty(text, f"the judge gave no result (status {int(status)}): {''.join(last)[:300]}")
        return {**json.loads(path.read_text(encoding="utf-8")), "submission": name, "report": report}


def prepare() -> None:
    """Done once in each worker: what pytest would otherwise import, and collect as garbage, for every submission."""
    import torch

    import grader.session  # noqa: F401

    torch.set_num_threads(1)
    os.environ |= {"NO_COLOR": "1", "COLUMNS": "100"}
    gc.freeze()


def _result_of(future, text: Text) -> dict:
    try:
        return future.result()
    except TimeoutError:
        return faulty(text, f"the judge did not end within {MOST_SECONDS} s")
    except Exception as error:  # the worker died, or our own code failed in it
        return faulty(text, f"the judge's process failed: {type(error).__name__}: {str(error)[:200]}")


@contextlib.contextmanager
def _stopped_when_done(pool) -> Iterator[None]:
    try:
        yield
        pool.close()
    except BaseException:  # Ctrl-C too: results so far are stored
        pool.stop()
        raise
    finally:
        pool.join()
