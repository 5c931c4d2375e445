"""No test depends on how fast or how busy the machine is: a limit is reached by what hangs, and by nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import ROOT

LEAST = 300  # seconds: a limit below it may end what only runs slowly
WAITS = {"join", "wait", "communicate", "result", "sleep", "Timer"}  # calls whose first argument is seconds
NAMES = ("LIMIT", "SECONDS", "WAITING", "COMPUTING")  # in names that hold seconds
SUBMISSIONS = {"cheats"}  # folders of files that are judged, and test nothing

# These limits are short on purpose. A call with a limit of 0 asks once.
SHORT = {
    "tests/classroom/test_attempts.py: monkeypatch.setattr(engine, 'RESULT_SECONDS', 1)":
        "the worker that is asked is stopped for ever",
    "tests/classroom/test_cluster.py: monkeypatch.setattr(engine, 'CONNECT_SECONDS', 1)": "nobody is ever there",
    "tests/classroom/test_cluster.py: monkeypatch.setattr(warm_judge, 'MOST_SECONDS', 2)":
        "the judge is stopped for ever",
    "tests/classroom/test_cluster.py: short.setattr(warm_judge, 'MOST_SECONDS', 2)": "the judge is stopped for ever",
    "tests/compiler/test_hostile_texts.py: compiler.compile(ENDLESS, OPTIONS, MODEL, limit=1.0)":
        "seconds of a core, for a text that never ends",
    "tests/gpu/test_lock.py: gpu_held(UUID, alone=False, limit=0.1)": "it is asked for before seconds are counted",
    "tests/gpu/test_lock.py: gpu_held(UUID, alone=True, limit=0.1)": "another holds the lock until this has failed",
    "tests/gpu/test_nvml.py: monkeypatch.setattr(nvml, 'LIMIT', 0.1)": "the driver hangs until this has been reached",
    "tests/gpu/test_replays.py: replays().pool.check({'kind': 'check', 'config': 0.5}, b'', limit=0.1, alone=False)":
        "its process waits for a core all the time, which counts for nothing",
    "tests/gpu/test_replays.py: replays().pool.check({'kind': 'check', 'config': NEVER}, b'', limit=0.1, alone=False)":
        "it never answers",
    "tests/gpu/test_replays.py: replayer.ask({'kind': 'check'}, bytes(1 << 20), limit=0.5)": "nobody ever reads it",
    "tests/interpreter/test_traced_call.py: traced(child, 'endless', 0, limit=1.0)":
        "seconds of a core, for a kernel that never ends",
    "tests/judging/test_ahead.py: monkeypatch.setattr('grader.processes.submission_process.LOAD_LIMIT', 1.0)":
        "seconds of a core, for an import that never ends",
    "tests/learn/test_story.py: monkeypatch.setattr(teller, 'CALL_LIMIT', 5)":
        "the call never ends, and the wait for a core does not count",
    "tests/learn/test_programs.py: monkeypatch.setattr(triton_forkserver_client, 'START_LIMIT', 0.001)":
        "a start takes longer on any machine",
    "tests/learn/test_programs.py: monkeypatch.setattr('grader.judging.run.RECORD_LIMIT', 1.0)":
        "seconds of a core, for calls that never end",
    "tests/processes/test_call_clock.py: monkeypatch.setattr(call_clock, 'WAITING', 0.2)":
        "seconds asleep, for a file that sleeps for ever",
    "tests/processes/test_front_end_process.py: monkeypatch.setattr(front_end_process, 'MOST_COMPUTING', 1.0)":
        "seconds of a core, for texts that take them all, however many it takes",
    "tests/processes/test_submission_process.py: monkeypatch.setattr(submission_process, 'LOAD_LIMIT', 1.0)":
        "seconds of a core, for imports that take them all, however many it takes",
    "tests/processes/test_submission_process.py: monkeypatch.setattr(submission_process, 'MOST_COMPUTING', 1.0)":
        "seconds of a core, for calls that take them all, however many it takes",
    "tests/test_robustness.py: monkeypatch.setattr('grader.judging.run.RECORD_LIMIT', 1.0)":
        "seconds of a core, for calls that never end",
    "tests/test_robustness.py: monkeypatch.setattr('grader.processes.front_end_process.LIMIT', 1.0)":
        "seconds of a core, for a kernel whose compilation never ends",
    "tests/test_robustness.py: monkeypatch.setattr('grader.processes.call_clock.WAITING', 1.0)":
        "seconds asleep, for calls that never end",
    "tests/test_robustness.py: monkeypatch.setattr('grader.processes.submission_process.LIMIT_AFTER_AN_END', 0.5)":
        "seconds of a core, for calls that never end",
    "tests/test_robustness.py: monkeypatch.setattr('grader.processes.submission_process.LOAD_LIMIT', 1.0)":
        "seconds of a core, for an import that never ends",
    "tests/own/test_unjudged.py: monkeypatch.setattr('grader.own.own_reference.LIMIT', 1)": "it never ends",
    "tests/own/test_unjudged.py: monkeypatch.setattr('grader.own.own_exercise.LIMIT', 1)": "it never ends",
    "tests/test_robustness.py: monkeypatch.setattr('grader.processes.submission_process.MOST_WAITING', 0.01)":
        "the call goes on once it has been seen to wait for longer",
    "tests/wire/test_timed_frames.py: time.monotonic() - begun >= 0.2": "slower is longer",
    "tests/gpu/test_replays.py: time.monotonic() - begun >= 1.2": "slower is longer",
}  # fmt: skip


def short_seconds(text: str) -> Iterator[str]:
    """The calls, sums and comparisons of a module that hold seconds below LEAST, as text."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and any(map(_is_short, _seconds_of(node))):
            yield ast.unparse(node)
        elif isinstance(node, ast.BinOp | ast.Compare) and "monotonic()" in ast.unparse(node):
            if any(map(_is_short, ast.iter_child_nodes(node))):
                yield ast.unparse(node)
        elif isinstance(node, ast.Assign) and _is_short(node.value) and _names_seconds(node.targets[0]):
            yield ast.unparse(node)


def _seconds_of(call: ast.Call) -> list[ast.expr]:
    """Returns the arguments that are seconds."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    given = [one.value for one in call.keywords if one.arg in ("timeout", "limit")]
    given += call.args[:1] if name in WAITS else []
    given += call.args[-1:] if name == "setattr" and any(map(_names_seconds, call.args[:-1])) else []
    return given


def _names_seconds(node: ast.expr) -> bool:
    return any(name in ast.unparse(node) for name in NAMES)


def _is_short(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float) and 0 < node.value < LEAST


def files() -> list[Path]:
    paths = (path for path in sorted((ROOT / "tests").rglob("*.py")) if path != Path(__file__).resolve())
    return [path for path in paths if not SUBMISSIONS & set(path.relative_to(ROOT).parts)]


def test_seconds_are_few_and_each_has_its_reason():
    found = {f"{path.relative_to(ROOT)}: {one}" for path in files() for one in short_seconds(path.read_text())}
    assert found == SHORT.keys()


def test_what_would_depend_on_the_machine_is_seen():
    seen = """
subprocess.run(command, timeout=60)
worker.join(10)
process.wait(5)
time.sleep(0.5)
deadline = time.monotonic() + 20
assert time.monotonic() - begun < 2
monkeypatch.setattr(engine, "CONNECT_SECONDS", 1)
LIMIT = 60.0
threading.Timer(3, kill)
"""
    unseen = "subprocess.run(command, timeout=NEVER)\n', '.join(names)\nlock(limit=0)\nLIMIT = NEVER\nSIZE = 3\n"
    assert len(list(short_seconds(seen))) == 9 and not list(short_seconds(unseen))
