"""The pytest plugin: options, the fixtures that a test file uses, and what happens when a test ends.

It wakes up only when pytest is pointed at exercises. It then takes over the output, ignores conftest files (one beside
a submission must not run here) and keeps exercise folders off the import path (a torch.py beside a submission, too).
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import pytest

from grader.course.folder import Folder, all_folders
from grader.gpu.models import DEFAULT_TARGET, MODELS
from grader.processes import bubblewrap
from grader.processes.environment import PATIENT
from grader.session.machine import machine_for

NAME = "course-session"  # of the Session, among pytest's plugins
DEVICES = ("auto", "cpu", "cuda")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("course", "grading exercises")
    group.addoption("--submission", metavar="PATH", help="grade this file (or a folder of NN_name/NAME.py) instead of "
                    "the learner's; 'solutions' grades the solutions")  # fmt: skip
    group.addoption("--device", choices=DEVICES, default="auto", help="where to judge (default: auto)")
    group.addoption("--target", choices=sorted(MODELS), help="the GPU generation that kernels are compiled for "
                    f"(default: the GPU's of this machine, else {DEFAULT_TARGET})")  # fmt: skip
    group.addoption("--seed", type=int, metavar="N", help="repeat a run with the data of that run")
    group.addoption("--hidden", metavar="DIR", help="an instructor's folder of hidden cases, NN_name.toml each")
    group.addoption(
        "--isolation", choices=bubblewrap.LEVELS, default=bubblewrap.LIMITS,
        help="how a submission is shut in: process limits (default); in bubblewrap where there is one (auto); in "
             "bubblewrap or not at all (strict)",
    )  # fmt: skip
    group.addoption("--result", metavar="FILE", help="write the result as JSON")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    named = early_config.known_args_namespace.file_or_dir or [str(early_config.invocation_params.dir)]
    if folders := _folders(named):
        _refuse_files_that_run(folders, early_config)
        early_config.known_args_namespace.noconftest = True
        sys.path[:] = [entry for entry in sys.path if entry and Folder.containing(Path(entry)) is None]


def _refuse_files_that_run(folders: list[Folder], config: pytest.Config) -> None:
    """Settings of pytest's, and what makes a folder a package, would run or count before anything is graded."""
    submission = getattr(config.known_args_namespace, "submission", None)
    beside = [Path(os.path.realpath(submission))] if submission else []  # resolve() raises on links in a circle
    beside = [path if path.is_dir() else path.parent for path in beside] + [folder.path for folder in folders]
    exercises = {folder.path.parent for folder in folders}
    settings = config.inipath and config.inipath.resolve()
    if settings in {folder.root / "pyproject.toml" for folder in folders}:
        return  # the course's own
    if settings and (settings.parent in exercises or any(settings.is_relative_to(path) for path in beside)):
        raise pytest.UsageError(f"{settings}: settings beside an exercise change how it is graded. Remove the file.")
    for package in (path / "__init__.py" for path in (*exercises, *(folder.path for folder in folders))):
        if package.exists():
            raise pytest.UsageError(f"{package}: an exercise is no package. Remove the file.")


@pytest.hookimpl(tryfirst=True)
def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """An exercise has one test file: what else is called a test counts for nothing, and must not run here."""
    if not config.pluginmanager.has_plugin("course-session") or not collection_path.is_file():
        return None
    folder = Folder.containing(collection_path)
    return True if folder and collection_path.resolve() != folder.test_file else None


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "hidden: a case of an instructor's own, of which a learner reads only the name")
    config.addinivalue_line("markers", "points(n): what a passed test is worth (default 1)")
    folders = _folders(config.args)
    if not folders:
        return
    _check_options(config)
    config.args = [_test_file(arg) for arg in config.args]
    config.option.importmode = "importlib"
    if config.option.verbose <= 0:  # the report says all: what pytest adds repeats it
        config.option.verbose = -2
        config.option.no_header = True
        config.option.tbstyle = "no"
        config.option.reportchars = "N"
    machine = machine_for(config.option, folders)
    gc.disable()
    os.environ.update(PATIENT)
    try:
        from grader.session.session import Session  # imports torch: only when there is something to grade
    except ImportError as error:
        raise pytest.UsageError(f"{error}. Next: course doctor") from None
    gc.freeze()  # torch's million objects will stay: collecting them costs 0.4 s, here and at the end
    gc.enable()
    session = Session(config, folders, machine)
    config.pluginmanager.register(session, NAME)


def _folders(args: list[str]) -> list[Folder]:
    """The exercises that pytest's arguments name; none if an argument names anything else."""
    found: dict[str, Folder] = {}
    for arg in args:
        path = Path(arg.partition("::")[0])
        if path.name == "exercises" and path.is_dir():
            found |= {folder.id: folder for folder in all_folders(path.resolve().parent)}
        elif path.exists() and (folder := Folder.containing(path)):
            found[folder.id] = folder
        elif path.exists():
            return []
    return list(found.values())


def _test_file(arg: str) -> str:
    """The test file in place of any other file of an exercise: naming the file one edits means grading it."""
    path = Path(arg.partition("::")[0])
    folder = Folder.containing(path)
    return str(folder.test_file) if folder and path.is_file() and path.resolve() != folder.test_file else arg


def _check_options(config: pytest.Config) -> None:
    submission = config.option.submission
    if submission and submission != "solutions" and not Path(submission).exists():
        raise pytest.UsageError(f"--submission {submission}: there is no such file or folder.")
    folder = Path(config.option.result).resolve().parent if config.option.result else Path.cwd()
    if not folder.is_dir():
        raise pytest.UsageError(f"--result {config.option.result}: there is no folder {folder}.")
    if config.option.hidden and not Path(config.option.hidden).is_dir():
        raise pytest.UsageError(f"--hidden {config.option.hidden}: there is no such folder.")
    if config.option.hidden and not any(Path(config.option.hidden).glob("*.toml")):
        raise pytest.UsageError(f"--hidden {config.option.hidden}: no hidden cases are there, NN_name.toml each.")
    if config.option.isolation == bubblewrap.STRICT and bubblewrap.missing():
        raise pytest.UsageError(f"--isolation strict: {bubblewrap.missing()}. Nothing was graded.")
    if config.option.seed is not None and not 0 <= config.option.seed < 1 << 63:
        raise pytest.UsageError("--seed: a whole number from 0 to 2**63 - 1 was expected.")


@pytest.fixture
def check(request: pytest.FixtureRequest):
    """check(*data, bound=None, dtypes=(), **constants): values and memory safety of one call, in every dtype.

    data: a data set for each argument, or a number where the argument is one. bound: of all results, or of some by
    name, as in bound={"z": "exact"}, in place of the exercise's.
    """
    session = request.config.pluginmanager.get_plugin(NAME)

    def check(*data, bound=None, dtypes=(), **constants):
        session.settle(request.node, lambda judge, name: judge.check(name, data, bound, dtypes, **constants))

    return check


@pytest.fixture
def raises(request: pytest.FixtureRequest):
    """raises(*data, because, error="ValueError", **constants): a call that the lesson does not promise.

    The entry has to raise this before it launches anything, in every dtype. because: what is wrong with the call, as
    in "rows of a begin at no multiples of 16 bytes".
    """
    session = request.config.pluginmanager.get_plugin(NAME)

    def raises(*data, because, error="ValueError", **constants):
        from grader.judge.refused_calls import Unpromised

        session.settle(
            request.node, lambda judge, name: judge.raises(name, data, Unpromised(because, error), **constants)
        )

    return raises


@pytest.fixture
def drawn(request: pytest.FixtureRequest):
    """drawn(sizes={"N": upto(300, block=64)}, x=any_strides("N"), dtypes=(), blocks=(), same=()): about twenty calls.

    What the lesson promises, argument by argument; the calls within it come from the run's seed. sizes: of each name
    in a shape. dtypes: those of the exercise, if none are given. blocks: constants of the module that some
    calls replace. same: arguments that one call gives the same tensor for. An argument is any_strides, contiguous, or
    target where it is filled or updated, with values=(into("M"),) if it holds indices; or one_of(0.5, 4.0), a number.
    """
    session = request.config.pluginmanager.get_plugin(NAME)

    def drawn(**options):
        session.wait_for_right_values(request.node)
        session.settle(request.node, lambda judge, name: judge.drawn(name, judge.promise(options)))

    return drawn


@pytest.fixture
def traffic(request: pytest.FixtureRequest):
    """traffic(*data, reads=1, writes=1, launches=None, idle=None, programs=None, moved=None, lanes=None, share=None,
    scratch=None, at_once=1, **constants): a call's cost.

    reads: how often each input may be read, in multiples of its size; a number, or one per argument, where
    Elements(48) states how many of its elements may be read. writes: the same for the results. launches: how many
    kernels may be launched. idle: how many programs may have nothing to do. programs: how many there may be. moved: how
    many bytes a GPU may move for each byte used, since it moves whole sectors of 32 bytes. lanes: how many lanes of
    a load or store there may be for each element that it touches. share: how much of an input one program may read, in
    multiples of its size; a number, or one per argument. scratch: how many bytes kernels may move in memory that only
    they see, for each byte of the arguments and results. at_once: how many neighbouring programs share what
    they read, as in a cache.
    """
    session = request.config.pluginmanager.get_plugin(NAME)

    def traffic(*data, reads=1, writes=1, launches=None, idle=None, programs=None, moved=None, lanes=None, share=None,
                scratch=None, at_once=1, **constants):  # fmt: skip
        others = dict(launches=launches, idle=idle, programs=programs, moved=moved, lanes=lanes, share=share,
                      scratch=scratch)  # fmt: skip
        session.wait_for_right_values(request.node)
        session.settle(
            request.node,
            lambda judge, name: judge.traffic(
                name, data, judge.limits(data, reads=reads, writes=writes, **others), at_once=at_once, **constants
            ),
        )

    return traffic


@pytest.fixture
def compiled(request: pytest.FixtureRequest):
    """compiled(*data, vectors=False, tensor_cores=False, pipelined=False, descriptors=False, **constants): the machine
    code of one call.

    It has to exist, fit the GPU and spill no registers. vectors: every access to global memory moves 16 bytes.
    tensor_cores: products of tiles run on the instruction made for them. pipelined: loads run ahead of their use.
    descriptors: all large tiles are moved through descriptors, on GPUs that have a unit for it.
    The data only say shapes, layouts and dtypes: no value is drawn, nothing runs, and sizes may be as on a GPU.
    """
    session = request.config.pluginmanager.get_plugin(NAME)

    def compiled(*data, vectors=False, tensor_cores=False, pipelined=False, descriptors=False, **constants):
        from grader.explain.compiled_code import Expectations

        session.wait_for_right_values(request.node)
        expected = Expectations(vectors, tensor_cores, pipelined, descriptors)
        session.settle(request.node, lambda judge, name: judge.compiled(name, data, expected, **constants))

    return compiled


@pytest.fixture
def tuned(request: pytest.FixtureRequest):
    """tuned(*data, others=[data, ...], configurations=(4, 24)): the choice that an autotuned kernel makes for a call.

    configurations: how few and how many there may be to choose from. others: calls of other sizes, each of which has to
    make a choice of its own: let them lie far apart, for a key may put neighbouring sizes together. Nothing runs, so
    sizes may be as on a GPU.
    """
    session = request.config.pluginmanager.get_plugin(NAME)

    def tuned(*data, others=(), configurations=(2, 64)):
        session.wait_for_right_values(request.node)
        session.settle(request.node, lambda judge, name: judge.tuned(name, data, others, configurations))

    return tuned


@pytest.fixture
def on_gpu(request: pytest.FixtureRequest):
    """on_gpu(*data, bound=None, dtypes=(), **constants): as `check`, for sizes that only a GPU gets through.

    Inputs are drawn on the GPU and the result is compared there. Without a GPU a sample of the programs is judged, on
    memory that is made when they touch it; what they show is a failure, and else the test is skipped.
    """
    session = request.config.pluginmanager.get_plugin(NAME)

    def on_gpu(*data, bound=None, dtypes=(), **constants):
        session.wait_for_all_before(request.node)
        session.settle(request.node, lambda judge, name: judge.on_gpu(name, data, bound, dtypes, **constants))

    return on_gpu


@pytest.fixture
def throughput(request: pytest.FixtureRequest):
    """throughput(*data, at_least, anchor="copy", since=""): the speed of one call, as a share of an anchor's on the
    same GPU.

    anchor: "copy", which reads and writes as many bytes as the call has to, or "matmul", the vendor's product of the
    same matrices. since: the first target that it is asked of, as "sm_90". Without a GPU the test is skipped; so it is
    where noise does not let the speed be told.
    """
    session = request.config.pluginmanager.get_plugin(NAME)

    def throughput(*data, at_least, anchor="copy", since=""):
        session.needs_gpu(request.node)
        session.wait_for_all_before(request.node)
        session.settle(request.node, lambda judge, name: judge.throughput(name, data, anchor, at_least, since))

    return throughput
