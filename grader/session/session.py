"""A pytest session over exercises: it finds the judge of each test, and keeps the results of all tests."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grader.course import hidden_cases
from grader.course.folder import Folder
from grader.course.hidden_cases import HiddenCase
from grader.explain.causes import Cause
from grader.explain.verdict import FAIL, NOT_RUN, PASS, SKIPPED, WAITED, Verdict, failed
from grader.gpu.device import NO_GPU, Device, device_here
from grader.gpu.pool.replays import shared_replays
from grader.judging.judge import Judge
from grader.judging.mended_calls import WORK
from grader.judging.run import Run
from grader.judging.uses import FOR_ALL, FOR_VALUES, RIGHT, SPEED, USES, DrawnUse, ThroughputUse, Use, uses_asked
from grader.numerics.arguments import DataOrNumber
from grader.processes.faults import MachineFault
from grader.progress.earlier_samples import EarlierSamples
from grader.progress.last_result import record_run
from grader.sentences import Said, Sentence
from grader.session import hidden_items, result_file, terminal_report
from grader.session.grading import Grading, TestResult
from grader.session.machine import Machine
from grader.session.rubric_items import is_core, points_of, rubric_item, step_of
from grader.wire.reply import DTYPES

MORE_WORK = 3  # times as much as usual, that --why looks for a mend
THOROUGH = 10  # rounds of drawn calls with --thorough

Config = pytest.Config | SimpleNamespace  # the second holds the options alone


class NotJudged(Sentence):
    """Sentences for tests that end without a verdict of the judge."""

    ASSERTION = "{assertion}"
    MACHINE = "{fault}"
    GRADER = "the grader failed with {type} at {file}:{line}: {message}"
    GRADER_SOMEWHERE = "the grader failed with {type}: {message}"


class Session:
    """A pytest plugin object that lives as long as the session.

    It can also grade without pytest's hooks: see grader/author/direct_run.py.
    """

    def __init__(self, config: Config, folders: list[Folder], machine: Machine, **of_runs) -> None:
        """`of_runs`: further arguments of each Run."""
        self.config = config
        option = config.option
        self.device = _with_torch(machine.device, option.device)
        self.replays = shared_replays(self.device) if isinstance(self.device, Device) else None
        of_runs = {"rounds": THOROUGH if option.thorough else 1, "amd": machine.amd, **of_runs}
        self.gradings = {
            folder.id: Grading(
                folder,
                Run(folder, option.submission, option.seed, machine.model, machine.sandboxed, self.replays, **of_runs),
            )
            for folder in folders
        }
        for grading in self.gradings.values():
            if grading.own and grading.run.submission.failure is None:
                folder, tree = grading.folder, grading.run.submission.tree
                grading.run.earlier = EarlierSamples(folder.root, folder.id, tree)
        self.hidden: dict[str, list[HiddenCase]] = {
            folder.id: hidden_cases.read_cases(Path(option.hidden), folder) for folder in folders if option.hidden
        }
        self._verdicts: dict[str, Verdict] = {}
        self.is_stopped = False  # by Ctrl-C

    def _grading(self, item: pytest.Function) -> Grading:
        return self.gradings[_folder_of(item).id]

    def _judge(self, item: pytest.Function) -> Judge:
        """Returns the judge of a test's exercise. The first call for an exercise makes the judge."""
        grading = self._grading(item)
        if grading.judge is None:
            grading.judge = Judge(item.module.exercise, grading.run)
            uses: list[Use] = uses_asked(item.module, *USES.values())
            grading.judge.speed.timed = [use for use in uses if isinstance(use, ThroughputUse)]
            chosen = {other.name for other in item.session.items if other.path == item.path}
            grading.judge.begin([use for use in uses if use.test in chosen])
        return grading.judge

    def settle(self, item: pytest.Function, kind: type[Use], /, *data: DataOrNumber, **options: Any) -> None:
        """Judges what a test hands to its fixture, and turns the verdict into pytest's outcome."""
        use = kind.of(item.name, *data, **options)
        if why := self._why_not_yet(item, use):
            pytest.skip(why)
        verdict = use.verdict(self._judge(item))
        if verdict is None:
            pytest.skip(self._needs_gpu)
        self._verdicts[item.nodeid] = verdict
        if verdict.outcome == SKIPPED:
            pytest.skip(verdict.note)
        if verdict.outcome != PASS:
            pytest.fail(self._failure_text(item, verdict), pytrace=False)

    def _failure_text(self, item: pytest.Function, verdict: Verdict) -> str:
        """Returns the text of a test in pytest's own report. A failure of the file as a whole is told once."""
        is_told = any(test.verdict.kind == "file" for test in self._grading(item).failures)
        if verdict.kind == "file" and is_told:
            return "The file as a whole, as told above."
        return "\n".join(verdict.lines) or verdict.outcome

    def _why_not_yet(self, item: pytest.Function, use: Use) -> str:
        """Returns why a test is not judged now; "" if it is. Less direct causes would say less than what failed before.

        Cost is not judged before values are right; that of the core waits for the values of the core alone.
        """
        failures = self._grading(item).failures
        if use.waits == FOR_VALUES:
            wrong = [test for test in failures if test.item == RIGHT and (test.core is False or not is_core(item))]
            return FOR_VALUES if wrong and wrong[0].verdict.kind != "file" else ""
        if use.waits != FOR_ALL or all(test.verdict.kind == "file" for test in failures):
            return ""
        if self.replays is not None or self._judge(item).before_any_call() is not None:
            return FOR_ALL
        return self._needs_gpu if use.needs_gpu else f"{FOR_ALL}; values in full need a GPU"

    @property
    def _needs_gpu(self) -> str:
        return "needs a GPU" if self.device == NO_GPU else f"needs a GPU: {self.device}"

    # ---- pytest's hooks ---------------------------------------------------------------------------------------------

    def pytest_itemcollected(self, item: pytest.Function) -> None:
        grading = self._grading(item)
        if not grading.tests:  # all of the file count, however few of them are asked for
            every = [function for function in item.parent.collect() if isinstance(function, pytest.Function)]  # type: ignore[union-attr]
            grading.tests, grading.core_tests = len(every), sum(map(is_core, every))

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Function]) -> None:
        """Adds the hidden cases of each exercise behind its tests, as tests of the same module."""
        for id, cases in self.hidden.items():
            own = [place for place, item in enumerate(items, 1) if _folder_of(item).id == id]
            if own:
                items[own[-1] : own[-1]] = hidden_items.items(cases, items[own[-1] - 1])
                self.gradings[id].tests += len(cases)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport):
        """Keeps pytest from printing dots: the report has a line per test."""
        if self.config.option.verbose < 0:
            return report.outcome if report.when == "call" or not report.passed else "", "", ""
        return None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self):
        """Lets Ctrl-C end a run with a line of the report's: pytest's names a place in the code of the judge."""
        try:
            return (yield)
        except pytest.Session.Interrupted:  # a KeyboardInterrupt too, of an option such as -x
            raise
        except KeyboardInterrupt:
            self.is_stopped = True
            return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Function, nextitem: pytest.Function | None):
        """Prints the header before the first test of an exercise, and the diagnosis after its last test."""
        grading = self._grading(item)
        if not grading.started:
            grading.started = time.monotonic()
            exercise = getattr(item.module, "exercise", None)
            grading.has_kernels = exercise is None or exercise.has_kernels
            terminal_report.begin(self._writer, grading)
        done = yield
        if nextitem is None or _folder_of(nextitem) != grading.folder:
            self._end(grading)
        return done

    def _end(self, grading: Grading) -> None:
        if not self.is_stopped:
            grading.conclude()
            if not self.config.option.no_mend:
                grading.mend(MORE_WORK * WORK if self.config.option.why else WORK)
        grading.run.end()
        grading.seconds = time.monotonic() - grading.started
        self._keep_progress(grading)
        terminal_report.end(self._writer, grading, len(self.gradings) == 1, self.config.option.why, self.is_stopped)
        grading.ended = True

    def _keep_progress(self, grading: Grading) -> None:
        """Writes the progress after a complete run of the learner's own file."""
        if grading.own and len(grading.results) == grading.tests:
            try:
                record_run(grading.folder, result_file.as_json(grading) | {"edits": grading.edits})
            except OSError as error:
                grading.unkept = f"{error.filename}: {error.strerror}"

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Function, call: pytest.CallInfo):
        made = yield
        if call.when == "call" or call.excinfo is not None:
            test = self.keep_result(item, call.excinfo.value if call.excinfo else None)
            terminal_report.test_line(self._writer, test)
        return made

    def keep_result(self, item: pytest.Function, error: BaseException | None) -> TestResult:
        """Keeps the result of a test and returns it. `error`: the exception that ended the test, if there was any."""
        grading = self._grading(item)
        verdict = self._verdict_of(item, error, grading)
        core = _core_of(verdict, grading.judge) if is_core(item) else None
        drawn = DrawnUse.fixture in item.fixturenames
        test = TestResult(item.name, rubric_item(item), points_of(item), verdict, drawn, core, step_of(item))
        test.only_on_gpu = self.replays is None and test.item == SPEED
        grading.results.append(test)
        if not test.hidden:
            grading.right_in_the_open = len(grading.run.history.right_trials)
        return test

    def _verdict_of(self, item: pytest.Function, error: BaseException | None, grading: Grading) -> Verdict:
        if isinstance(error, pytest.skip.Exception):
            if item.nodeid in self._verdicts:
                return self._verdicts[item.nodeid]
            return Verdict(SKIPPED, WAITED if error.msg in (FOR_VALUES, FOR_ALL) else NOT_RUN, note=error.msg or "")
        if isinstance(error, AssertionError):
            return failed(Cause.ASSERTION, NotJudged.ASSERTION(assertion=str(error)) if str(error) else None)
        if error is not None and not isinstance(error, pytest.fail.Exception):
            fault = _fault(error)
            grading.fault = fault.text
            return failed(Cause.FAULT, fault, kind="file")
        return self._verdicts.get(item.nodeid, Verdict(PASS))

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self.is_stopped:
            session.exitstatus = pytest.ExitCode.INTERRUPTED
        if exitstatus == pytest.ExitCode.OK and any(grading.unjudged for grading in self.gradings.values()):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED  # nothing failed, and it has not passed
        if self.config.option.result:
            result_file.write(Path(self.config.option.result), list(self.gradings.values()))

    def pytest_terminal_summary(self, terminalreporter) -> None:
        graded = [grading for grading in self.gradings.values() if grading.results]
        for grading in graded:
            if not grading.ended:  # pytest stopped early, as with -x and Ctrl-C
                self._end(grading)
        if len(self.gradings) > 1 and graded:
            terminal_report.summary(self._writer, graded)

    def pytest_unconfigure(self) -> None:
        for grading in self.gradings.values():
            grading.run.end()

    @property
    def _writer(self):
        return self.config.pluginmanager.get_plugin("terminalreporter")


def _folder_of(item: pytest.Function) -> Folder:
    """Returns the exercise that a test belongs to. Raises LookupError for a test of no exercise."""
    if (folder := Folder.containing(item.path)) is None:
        raise LookupError(f"{item.path} is no exercise's")
    return folder


def _with_torch(device: Device | str, wanted: str) -> Device | str:
    """Returns the GPU if torch can use it, else why not. Raises UsageError if not and `wanted` is "cuda"."""
    gpu = device_here() if isinstance(device, Device) else device
    if wanted == "cuda" and not isinstance(gpu, Device):
        raise pytest.UsageError(f"--device cuda: {gpu}. Next: course doctor")
    return gpu


def _core_of(verdict: Verdict, judge: Judge | None) -> bool:
    """Returns True if the idea is right: the test passes, or fails in a dtype that is not the exercise's first.

    A test takes its dtypes in their order and ends with the first that fails.
    """
    if verdict.outcome != FAIL or judge is None:
        return verdict.outcome == PASS
    trial = judge.run.history.trial_of(verdict)
    return trial is not None and trial.dtype != DTYPES[judge.exercise.dtypes[0]]


def _fault(error: BaseException) -> Said:
    if isinstance(error, MachineFault):
        return NotJudged.MACHINE(fault=str(error))
    frame, name, message = error.__traceback__, type(error).__name__, str(error)[:200]
    if frame is None:
        return NotJudged.GRADER_SOMEWHERE(type=name, message=message)
    while frame.tb_next is not None:
        frame = frame.tb_next
    file = Path(frame.tb_frame.f_code.co_filename).name
    return NotJudged.GRADER(type=name, file=file, line=frame.tb_lineno, message=message)
