"""The pytest plugin: options, the fixtures that a test file uses, and the session that grades.

The plugin does nothing unless pytest's arguments name exercises. It then takes over the output, ignores conftest files
and keeps exercise folders off the import path: neither a conftest.py nor a torch.py next to a submission may run here.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import click
import pytest

from grader.course.by_name import one_of
from grader.course.folder import Folder, all_folders, said_of_lesson
from grader.gpu.models import AMD, DEFAULT_TARGET, MODELS
from grader.places import missing
from grader.processes import bubblewrap
from grader.processes.environment import PATIENT
from grader.session.judging_process import JudgeEnded, JudgingProcess, is_judge
from grader.session.machine import is_usual, machine_for, may_run
from grader.wire.printable import one_line

if TYPE_CHECKING:
    from grader.judging.uses import Use
    from grader.session.session import Session

NAME = "course-session"  # the Session's name among pytest's plugins
JUDGE = pytest.StashKey[JudgingProcess]()
LESSON = pytest.StashKey[Folder]()
STAYS_HERE = ("usepdb", "trace", "help", "version")  # options with which pytest's own process judges
DEVICES = ("auto", "cpu", "cuda")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("course", "grading exercises")
    group.addoption("--submission", metavar="PATH", help="grade this file (or a folder of NN_name/NAME.py) instead of "
                    "the learner's; 'solutions' grades the solutions")  # fmt: skip
    group.addoption("--device", choices=DEVICES, default="auto", help="where to judge (default: auto)")
    group.addoption("--target", choices=[*MODELS, *AMD], help="the GPU generation that kernels are compiled for "
                    f"(default: the GPU's of this machine, else {DEFAULT_TARGET}); for an AMD GPU (gfx...) what the "
                    "compiler makes is told and not judged")  # fmt: skip
    group.addoption("--seed", type=int, metavar="N", help="repeat a run with the data of that run")
    group.addoption("--hidden", metavar="DIR", help="an instructor's folder of hidden cases, NN_name.toml each")
    group.addoption(
        "--isolation", choices=bubblewrap.LEVELS, default=bubblewrap.LIMITS,
        help="how a submission is shut in: process limits (default); in bubblewrap where there is one (auto); in "
             "bubblewrap or not at all (strict)",
    )  # fmt: skip
    group.addoption("--thorough", action="store_true", help="draw ten times as many calls from the seed: for a file "
                    "that is to be shipped, or looked at twice")  # fmt: skip
    group.addoption("--why", action="store_true", help="say which explanations of a failure were weighed, and why "
                    "others than the one that is told were not: for who mends a sentence")  # fmt: skip
    group.addoption("--no-mend", action="store_true", help="do not look for the line in which one change makes wrong "
                    "calls right")  # fmt: skip
    group.addoption("--result", metavar="FILE", help="write the result as JSON")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    named = early_config.known_args_namespace.file_or_dir or [str(early_config.invocation_params.dir)]
    _refuse_misspelt(named)
    if lesson := _lesson_alone(named):
        early_config.stash[LESSON] = lesson
    if folders := _folders(named):
        if lack := missing():
            raise _refused(lack)
        _refuse_files_that_run(folders, early_config)
        early_config.known_args_namespace.noconftest = True
        sys.path[:] = [entry for entry in sys.path if entry and Folder.containing(Path(entry)) is None]
        if _wants_judge(early_config):
            early_config.stash[JUDGE] = judge = JudgingProcess()
            option = early_config.known_args_namespace
            if is_usual(option) and may_run(option, folders):
                judge.prepare()


def _wants_judge(config: pytest.Config) -> bool:
    """Returns True if this process has not imported torch yet and has no reason to judge by itself.

    A debugger needs this process, and so does a plugin that the caller passes as an object.
    """
    asks_for = any(getattr(config.known_args_namespace, name, False) for name in STAYS_HERE)
    is_worker = is_judge() or "PYTEST_XDIST_WORKER" in os.environ
    has_streams = None not in (sys.__stdin__, sys.__stdout__, sys.__stderr__)  # as with `<&-`
    is_main = threading.current_thread() is threading.main_thread()  # which alone can hear Ctrl-C
    stays = asks_for or config.invocation_params.plugins or is_worker or "torch" in sys.modules
    return has_streams and is_main and not stays


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Runs the whole session in the judge process, if there is one. A lesson to read has nothing to judge."""
    if lesson := config.stash.get(LESSON, None):
        print(said_of_lesson(lesson))
        return pytest.ExitCode.NO_TESTS_COLLECTED
    if (judge := config.stash.get(JUDGE, None)) is None:
        return None
    if sys.stdout is not sys.__stdout__ or sys.stderr is not sys.__stderr__:  # the caller captures what is printed
        judge.end()
        return None
    if capture := config.pluginmanager.get_plugin("capturemanager"):
        capture.suspend_global_capture(in_=True)  # for a debugger in the judge
    if (
        sys.stdout is not None and sys.stdout.isatty()
    ):  # importing torch takes seconds, in which a terminal would show nothing
        folders = _folders(config.args)
        print(f"{folders[0].id if len(folders) == 1 else f'{len(folders)} exercises'}: judging ...", flush=True)
    try:
        return judge.run(list(config.invocation_params.args))
    except JudgeEnded as error:
        raise _refused(f"{error}. Next: course doctor") from None


def _refuse_files_that_run(folders: list[Folder], config: pytest.Config) -> None:
    """Raises UsageError for pytest's settings and an __init__.py next to an exercise: they act before it is graded."""
    submission = getattr(config.known_args_namespace, "submission", None)
    beside = [Path(os.path.realpath(submission))] if submission else []  # resolve() raises on links in a circle
    beside = [path if path.is_dir() else path.parent for path in beside] + [folder.path for folder in folders]
    exercises = {folder.path.parent for folder in folders}
    settings = config.inipath and config.inipath.resolve()
    if settings in {folder.root / "pyproject.toml" for folder in folders}:
        return  # the course's own
    if settings and (settings.parent in exercises or any(settings.is_relative_to(path) for path in beside)):
        raise _refused(f"{settings}: settings next to an exercise change how it is graded. Remove the file.")
    for package in (path / "__init__.py" for path in (*exercises, *(folder.path for folder in folders))):
        if package.exists():
            raise _refused(f"{package}: an exercise is no package. Remove the file.")


@pytest.hookimpl(tryfirst=True)
def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignores all files of an exercise but its test file: other tests count for nothing, and must not run here."""
    if not config.pluginmanager.has_plugin(NAME) or not collection_path.is_file():
        return None
    folder = Folder.containing(collection_path)
    return True if folder and collection_path.resolve() != folder.test_file else None


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "hidden: a case of an instructor's own, of which a learner reads only the name")
    config.addinivalue_line("markers", "core: a test of the exercise's idea; the others belong to full")
    config.addinivalue_line("markers", "step(n): the graded step that a test belongs to (default 1)")
    config.addinivalue_line("markers", "points(n): what a passed test is worth (default 1)")
    config.pluginmanager.register(_fixtures())
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
        config.option.disable_warnings = True  # of other plugins: they would stand below our last line
    machine = machine_for(config.option, folders)
    if (torch := sys.modules.get("torch")) and not is_judge():
        # Something else has imported it without PATIENT, so that threads look for work in a loop: on 16 cores that
        # others wanted, too, a softmax took 120 s of a core in the place of 8.
        torch.set_num_threads(1)
    os.environ.update(PATIENT)
    try:
        session_class = _session_class()
    except (ImportError, OSError) as error:  # a library of torch's that is not there is an OSError
        raise _refused(f"{error}. Next: course doctor") from None
    config.pluginmanager.register(session_class(config, folders, machine), NAME)


def _session_class() -> type:
    """Returns the class Session. Its module, which imports torch, is imported only when there is something to grade.

    The million objects of torch stay, and looking for garbage among them would cost 0.4 s, here and at the end: they
    are frozen. A run's own objects are not, for a process may judge many runs. Raises ImportError and OSError.
    """
    if "grader.session.session" not in sys.modules:
        gc.disable()
        try:
            import grader.session.session  # noqa: F401

            gc.freeze()
        finally:
            gc.enable()
    return sys.modules["grader.session.session"].Session


def _folders(args: list[str]) -> list[Folder]:
    """Returns the exercises that pytest's arguments name; none if an argument names anything else."""
    return [folder for folder in _named(args) if not folder.is_lesson]


def _refuse_misspelt(args: list[str]) -> None:
    """Raises UsageError for what is missing in exercises/, and names the exercise that is meant, as pytest cannot."""
    for path in (Path(arg.partition("::")[0]) for arg in args):
        named = next((folder for folder in (path, *path.parents) if folder.parent.name == "exercises"), None)
        if path.exists() or named is None or not named.parent.is_dir():
            continue
        if not (folders := all_folders(named.resolve().parent.parent)):  # the folder exercises/ of another project
            continue
        try:
            meant = one_of(folders, named.name)
        except click.ClickException as none:
            raise _refused(none.message) from None
        likely = named.with_name(meant.id)
        if named.is_dir():
            raise _refused(f"There is no file {path}. Did you mean {likely / meant.learner_file.name}?")
        raise _refused(f"There is no folder {named}. Did you mean {likely}?")


def _lesson_alone(args: list[str]) -> Folder | None:
    """Returns the lesson to read that pytest's arguments name; None where they name none, or an exercise too."""
    named = _named(args)
    return named[0] if named and all(folder.is_lesson for folder in named) else None


def _named(args: list[str]) -> list[Folder]:
    """Returns the exercises and lessons that arguments name, each once; none if an argument names anything else."""
    folders: dict[str, Folder] = {}
    for arg in args:
        path = Path(arg.partition("::")[0])
        if path.name == "exercises" and path.is_dir():
            folders |= {folder.id: folder for folder in all_folders(path.resolve().parent)}
        elif path.exists() and (folder := Folder.containing(path)):
            folders[folder.id] = folder
        elif path.exists():
            return []
    return list(folders.values())


def _test_file(arg: str) -> str:
    """Returns the test file for any other file of an exercise: naming the learner's file grades it. Else `arg`."""
    path = Path(arg.partition("::")[0])
    folder = Folder.containing(path)
    return str(folder.test_file) if folder and path.is_file() and path.resolve() != folder.test_file else arg


def _check_options(config: pytest.Config) -> None:
    submission = config.option.submission
    if submission and submission != "solutions" and not Path(submission).exists():
        raise _refused(f"--submission {submission}: there is no such file or folder.")
    folder = Path(config.option.result).resolve().parent if config.option.result else Path.cwd()
    if not folder.is_dir():
        raise _refused(f"--result {config.option.result}: there is no folder {folder}.")
    if config.option.hidden and not Path(config.option.hidden).is_dir():
        raise _refused(f"--hidden {config.option.hidden}: there is no such folder.")
    if config.option.hidden and not any(Path(config.option.hidden).glob("*.toml")):
        raise _refused(f"--hidden {config.option.hidden}: no hidden cases are there, NN_name.toml each.")
    if config.option.isolation == bubblewrap.STRICT and bubblewrap.missing():
        raise _refused(f"--isolation strict: {bubblewrap.missing()}. Nothing was graded.")
    if config.option.seed is not None and not 0 <= config.option.seed < 1 << 63:
        raise _refused("--seed: a whole number from 0 to 2**63 - 1 was expected.")


def _refused(text: str) -> pytest.UsageError:
    """Returns the error that ends pytest with this sentence, in one line: names of files may hold any characters."""
    return pytest.UsageError(one_line(text))


def _fixtures() -> ModuleType:
    """Returns a plugin with the fixture of each kind of use."""
    from grader.judging.uses import USES  # not where a judge process does all the work

    fixtures = ModuleType("course-fixtures")
    vars(fixtures).update({name: _fixture(kind) for name, kind in USES.items()})
    return fixtures


def _fixture(kind: type[Use]) -> Callable:
    def fixture(request: pytest.FixtureRequest) -> Callable[..., None]:
        session: Session | None = request.config.pluginmanager.get_plugin(NAME)
        if session is None:
            raise LookupError(f"{kind.fixture} is for the tests of exercises")
        return partial(session.settle, request.node, kind)

    fixture.__doc__ = kind.__doc__
    return pytest.fixture(fixture, name=kind.fixture)
