"""A run: one submission of one exercise, its secret seed, and the processes that work on it."""

from __future__ import annotations

import functools
import math
import random
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import torch

from grader.compiler.machine_code import MachineCode
from grader.course.folder import Folder
from grader.course.regions import empty_regions, given_lines
from grader.course.trial import Trial
from grader.explain.evidence import the_only
from grader.explain.reached_lines import Lines
from grader.gpu.models import DEFAULT_MODEL, AmdModel
from grader.gpu.plan import PackedPlan
from grader.gpu.pool.replays import LentGpu, Replays
from grader.gpu.simulated_gpu import EndlessMeasurement, NoCall, SimulatedGpu
from grader.judging.exact_calls import exact_call, exact_inputs
from grader.judging.history import History
from grader.judging.kernel_texts import record_call
from grader.judging.packed_calls import PackedCall
from grader.judging.speed_rule import EarlierShares
from grader.judging.work_ahead import Foreseen, in_drawn_order
from grader.numerics.arguments import Argument, numbers_of, tensors_of, without_values
from grader.processes.bubblewrap import FRONT_END, SUBMISSION
from grader.processes.faults import ChildEnded, MachineFault
from grader.processes.front_end_process import FrontEnd
from grader.processes.interpreter_process import Interpreter
from grader.processes.submission_process import SubmissionProcess
from grader.processes.where import Where
from grader.submission.text import Submission, given_by_name, read_submission, submission_of
from grader.ttir.exact_text import NoExactRun, Why
from grader.ttir.kernel_facts import KernelFacts
from grader.ttir.parser import parse
from grader.wire import device_calls
from grader.wire.device_calls import Answer
from grader.wire.fence import Fence
from grader.wire.frames import JsonObject
from grader.wire.messages import GpuModel, InterpretRequest, Mending, RecordRequest, Sample, TensorSpec
from grader.wire.recorded_call import RecordedCall
from grader.wire.recorded_results import results_by_name
from grader.wire.reply import Reply, spec_and_bytes, spec_of

RECORD_LIMIT = 8.0  # seconds of a core for a call of the entry
MEASURE_LIMIT = 4.0  # seconds of a core for what a measuring entry does from one message to the next
COUNTED = 100  # of so many of its messages one counts what it has used
MENDING_LIMIT = 60.0  # seconds of a core for the tries of a call, whose number is limited
MOST_AHEAD = 5.0  # seconds of a core to record all foreseen calls and make their kernels' texts: 0.3 to 1 is usual
# Operations of all interpreted calls of a run, and elements that these yield. Of all right kernels in solutions/,
# 02's grid of few programs takes most operations, 1.1 million, and 27's two loops in one launch most elements, 3.4 Gi.
MOST_STEPS, MOST_LANES = 2_500_000, 10 << 30


class Run:
    """Owns the seed, the inputs and the processes. Methods that make a call raise ChildEnded and MachineFault.

    `interpreter`: used, and left running, where it is given. `trusted`: a submission of our own, for which nothing is
    recorded ahead in a drawn order to find out a cheat. `share_of_drawn`: the share of the drawn calls that is judged.
    `rounds`: how often the calls of a promise are drawn.
    """

    def __init__(
        self,
        folder: Folder,
        submission_path: str | None = None,
        seed: int | None = None,
        model: GpuModel = DEFAULT_MODEL,
        sandboxed: bool = False,
        replays: Replays | None = None,
        interpreter: Interpreter | None = None,
        trusted: bool = False,
        share_of_drawn: float = 1.0,
        rounds: int = 1,
        amd: AmdModel | None = None,
    ) -> None:
        self.folder = folder
        self.trusted = trusted
        self.share_of_drawn, self.rounds = share_of_drawn, rounds
        self.sandboxed = sandboxed
        self.seed = secrets.randbits(63) if seed is None else seed
        self.model = model  # of the GPU that kernels are compiled for
        self.amd = amd  # for which kernels are compiled, too, and which no test judges
        self.replays = replays  # None: nothing runs on a GPU
        self.earlier: EarlierShares | None = None  # where this submission's are kept
        self.submission: Submission = read_submission(folder.submission_file(submission_path))
        self.empty: list[str] = []
        self.regions = 0
        self._look_for_empty_regions()
        self.filename = f"{folder.name}.py"  # the submission's name in its child
        self.process = SubmissionProcess(self.submission, self.filename, model, SUBMISSION if sandboxed else None)
        self.front_end = FrontEnd(self.submission, self.filename, model, FRONT_END if sandboxed else None)
        self.interpreter = interpreter or Interpreter()
        self._ends_interpreter = interpreter is None
        self.machine_code = MachineCode(model)
        self.lines = Lines()
        self._steps = self._lanes = 0  # of all calls that were interpreted
        self._recorded_calls: dict[tuple[str, bool], PackedCall] = {}
        self._ahead: threading.Thread | None = None  # while it works, nothing else asks the submission's process
        self._news = threading.Condition()  # a call has been recorded, or the thread has ended
        self._ending = False
        self.history = History()
        self._beside = _files_of(folder)

    @cached_property
    def run_of_ours(self) -> Run:
        """A run of texts of ours, as `take` says, with the same data and GPU; it ends with this one."""
        return Run(self.folder, "solutions", self.seed, self.model, interpreter=self.interpreter, trusted=True)

    def take(self, text: str) -> None:
        """Becomes the run of another text, in the same processes: of one of ours, which keeps nothing of a call."""
        self.submission = _of_ours(self.submission.path, text)
        self.process.take(self.submission)
        self.front_end.take(self.submission)
        self._recorded_calls.clear()

    def _look_for_empty_regions(self) -> None:
        if self.submission.failure is None and self.folder.solution_file.exists():
            solution = self.folder.solution_file.read_text(encoding="utf-8")
            self.empty, self.regions = empty_regions(solution, self.submission.tree)

    @cached_property
    def given_lines(self) -> set[int]:
        """The lines of the submission that the course gave, in which no mistake is; none where no solution is there."""
        if self.submission.failure is not None or not self.folder.solution_file.exists():
            return set()
        solution = self.folder.solution_file.read_text(encoding="utf-8")
        return given_lines(solution, self.submission.tree, "\n".join(self.submission.lines))

    @property
    def not_attempted(self) -> bool:
        return self.regions > 0 and len(self.empty) == self.regions

    @property
    def printed(self) -> str:
        """The text that the file has printed, then the text that its kernels printed while they were compiled."""
        return self.process.printed + self.front_end.printed

    @property
    def printed_bytes(self) -> int:
        return self.process.printed_bytes + self.front_end.printed_bytes

    @property
    def fenced(self) -> bool:
        return self.process.fenced

    @property
    def fence(self) -> Fence | None:
        """The fence that the operating system holds around the submission; None before it was run."""
        return self.process.fence

    @property
    def gpu(self) -> Replays:
        """The GPU that the run has. Raises LookupError where nothing runs on a GPU."""
        if self.replays is None:
            raise LookupError("this run has no GPU")
        return self.replays

    def inputs(self, trial: Trial) -> list[Argument]:
        """Returns the arguments of a trial: the same for the same seed, whatever ran before."""
        return trial.inputs(self.seed, self.folder.id)

    def recorded_call(self, trial: Trial, inputs: list[Argument], again: bool = False) -> PackedCall:
        """Returns the recorded call with these inputs, without their values; again: of a second call. Cached."""
        request = _record_request(trial, inputs)
        key = repr(request), again
        self._wait_for(key)
        if key not in self._recorded_calls:
            recorded = self._record(request, self.process)
            with self._news:
                self._recorded_calls[key] = recorded
                self._news.notify_all()
        return self._recorded_calls[key]

    def work_ahead(self, work: Callable[[], None]) -> None:
        """Starts a thread for `work`, which records and compiles calls of later tests while others are judged."""

        def to_its_end() -> None:
            try:
                work()
            except MachineFault:  # raised again to the next that asks
                pass
            finally:
                with self._news:
                    self._ahead = None
                    self._news.notify_all()

        self._ahead = threading.Thread(target=to_its_end, daemon=True, name="ahead")
        self._ahead.start()

    def _wait_for(self, key: tuple[str, bool] | None) -> None:
        """Waits until this is recorded, or nothing is recorded ahead any more; not on the thread that records ahead."""
        if threading.current_thread() is not self._ahead:
            with self._news:
                self._news.wait_for(lambda: key in self._recorded_calls or self._ahead is None)

    def record_in_drawn_order(self, foreseen: list[Foreseen], between: Callable[[], None] = lambda: None) -> None:
        """Records calls that will be asked for, each twice and with others between, in orders that the seed draws.

        So the state that a file keeps from one call, or what it does in some calls only, meets other calls than it was
        written for. Ends at the first call that cannot be recorded, and when it takes long: the others are recorded
        when they are asked for. Calls that are asked for only if all values are right are left out from the first wrong
        call on. `between`: called when each has been recorded once.
        """
        most = self._seconds_of_recording + MOST_AHEAD
        rounds = in_drawn_order(foreseen, random.Random(f"{self.seed} order of calls"))
        for number, calls in enumerate(rounds, 1):
            for request in calls:
                if request.if_right and self.history.values_are_wrong:
                    continue
                try:
                    call = self.recorded_call(
                        request.trial, without_values(request.trial.data, request.trial.dtype), again=number % 2 == 0
                    ).call
                except ChildEnded:  # raised again to the test that asks for it
                    return
                is_long = self._seconds_of_recording > most
                if call.error is not None or call.refusals or is_long or self._ending:
                    return
            if number == len(rounds) - 1:
                between()

    @property
    def _seconds_of_recording(self) -> float:
        return self.process.seconds_of_a_core + self.front_end.seconds_of_a_core

    def recorded_alone(self, trial: Trial, inputs: list[Argument]) -> PackedCall:
        """Returns the recorded call with these inputs, without their values, as the first call of a process."""
        if self.sandboxed:  # a sandbox has room for one child
            self._wait_for(None)
            self.process.end()
            return self._record(_record_request(trial, inputs), self.process)
        another = SubmissionProcess(self.submission, self.filename, self.model, spent=self.process.spent)
        try:
            return self._record(_record_request(trial, inputs), another)
        finally:
            another.end()

    @contextmanager
    def process_with_its_own_account(self) -> Iterator[SubmissionProcess]:
        """Gives a process of the submission whose calls count for no limit of the run, and ends it."""
        if self.sandboxed:  # a sandbox has room for one child
            self.process.end()
        sandbox = SUBMISSION if self.sandboxed else None
        another = SubmissionProcess(self.submission, self.filename, self.model, sandbox)
        try:
            yield another
        finally:
            another.end()

    def _record(self, request: RecordRequest, process: SubmissionProcess) -> PackedCall:
        return PackedCall(record_call(request, process, self.front_end, RECORD_LIMIT))

    def measured(self, entry: str, gpu: SimulatedGpu | LentGpu, process: SubmissionProcess | None = None) -> Answer:
        """Returns what an entry that measures answers about the kernel of a GPU. process: to be asked in the place of
        the run's own. Raises ChildEnded; EndlessMeasurement or ReplayEnded, as the GPU is simulated or real."""
        process = process or self.process
        request: JsonObject = {"kind": "measure", "entry": entry}
        messages = 0
        while True:
            told = process.ask(request, b"", MEASURE_LIMIT, device_calls.read_told, messages % COUNTED == 0)
            if isinstance(told, Answer):
                return told
            messages += 1
            try:
                now, events = gpu.answer(told)
            except EndlessMeasurement:
                process.end()  # it still waits for an answer
                raise
            except NoCall as error:
                process.end()
                raise ChildEnded("garbled", str(error)) from None
            request = {"kind": "told", "now": now, "events": events}

    def call(self, trial: Trial, inputs: list[Argument], again: bool = False, **options) -> Reply:
        """Records a call of the entry, interprets it, and returns the reply. `options` are fields of InterpretRequest.

        `again`: a second call on the same inputs. Raises ChildEnded, MachineFault.
        """
        recorded = self.recorded_call(trial, inputs, again)
        reply = recorded.reply(trial.exercise.written)
        if reply.error is not None or reply.refusals:
            return reply
        return self._carried_out(trial, inputs, recorded, **options)

    def call_with_products(self, trial: Trial, inputs: list[Argument]) -> Reply | None:
        """Returns the reply to the call with sums turned into products, as the compiler does it; None without any."""
        recorded = self.recorded_call(trial, inputs)
        texts = [self.machine_code.with_products(kernel) for kernel in recorded.call.kernels]
        if not any(texts):
            return None
        sources = [text or kernel.source for text, kernel in zip(texts, recorded.call.kernels)]
        return self._carried_out(trial, inputs, recorded.with_sources(sources))

    def exact(self, trial: Trial, inputs: list[Argument], **options) -> Reply:
        """Returns the reply to the exact run of a call, in which every float has 64 bits. Raises NoExactRun.

        It counts for no limit of the run, so that no outcome depends on whether it is asked for.
        """
        recorded, specs, blob = self.exactly(trial, inputs)
        return self._asked_exactly(self._request(trial, recorded, specs, **options), blob)

    def exactly(
        self, trial: Trial, inputs: list[Argument], edited: bytes | None = None
    ) -> tuple[PackedCall, list[TensorSpec], bytes]:
        """Returns a call with 64 bits for every float: recorded, the specs of its arguments, and its blob with their
        values; `edited`: with kernels as this file has them. Raises NoExactRun."""
        call = self.recorded_call(trial, inputs).call
        if edited is not None:
            call = self._with_texts_of(edited, call, _record_request(trial, inputs))
        recorded = PackedCall(exact_call(call, _specs(trial, inputs), self.filename))
        return recorded, *_with_values(recorded, trial, exact_inputs(inputs))

    def _with_texts_of(self, source: bytes, call: RecordedCall, request: RecordRequest) -> RecordedCall:
        """Returns a call with the texts that another file gives its kernels. Raises NoExactRun where it gives none."""
        self.front_end.take(submission_of(self.submission.path, source))
        try:
            kernels = []
            for kernel in call.kernels:
                text = self.front_end.text(kernel.recipe, request.small_dots, request.constants)
                if text.failure is not None:
                    raise NoExactRun(Why.ENDED, text.failure.line, text.failure.message)
                kernels.append(replace(kernel, source=text.source))
            return replace(call, kernels=kernels)
        finally:
            self.front_end.take(self.submission)

    def mends(
        self, trial: Trial, inputs: list[Argument], results: dict[str, torch.Tensor], work: int,
        keys: list[str] | None = None, lines: list[int] | None = None, first_is_enough: bool = False,
        edited: bytes | None = None, closely: bool = False, **options,
    ) -> Reply:  # fmt: skip
        """Returns the reply that tells which edits make an exact call right. `results`: what it should give, by name;
        `edited`: a file that its kernels are taken from; further arguments as in Mending. Raises NoExactRun."""
        recorded, specs, blob = self.exactly(trial, inputs, edited)
        expected = []
        for name, ref in results.items():
            spec, data = spec_and_bytes(name, ref.clone(memory_format=torch.contiguous_format), len(blob))
            expected.append(spec)
            blob += data
        tree, launches = self.submission.tree, recorded.call.launches(trial.config)
        meant = [(one.line, name) for one in launches for name in sorted(given_by_name(tree, one.line))]
        mending = Mending(expected, work, keys, lines, first_is_enough, closely, meant)
        request = self._request(trial, recorded, specs, mending=mending, **options)
        return self._asked_exactly(replace(request, limit=MENDING_LIMIT), blob)

    def _asked_exactly(self, request: InterpretRequest, blob: bytes) -> Reply:
        try:
            ran = self.interpreter.ask(request, blob)
        except (ChildEnded, MachineFault) as why:
            raise NoExactRun(Why.ENDED, what=str(why)) from None
        if ran.error is not None:
            raise NoExactRun(Why.ENDED, ran.error.line, ran.error.message)
        return ran

    def kernels(self, trial: Trial, inputs: list[Argument]) -> list[KernelFacts]:
        """Returns the facts of the kernel of each launch of a recorded call, read from its text."""
        call = self.recorded_call(trial, inputs).call
        numbers = [launch.kernel for launch in call.launches(trial.config)]
        read = {number: KernelFacts(parse(call.kernels[number].source, self.filename)) for number in set(numbers)}
        return [read[number] for number in numbers]

    def line_without_strides(self, trial: Trial, inputs: list[Argument], name: str) -> int:
        """Returns the only line in which a kernel addresses this argument, if it leaves out a stride there that it was
        given; else 0."""
        call, tensor = self.recorded_call(trial, inputs).call, dict(tensors_of(trial.arguments, inputs))[name]
        needed = {stride for size, stride in zip(tensor.shape, tensor.stride()) if size > 1 and stride > 1}
        lines = []
        for launch, facts in zip(call.launches(trial.config), self.kernels(trial, inputs)):
            pointers = [
                parameter.name for parameter in launch.parameters
                if parameter.type == "pointer" and parameter.buffer >= 0 and call.buffers[parameter.buffer].name == name
            ]  # fmt: skip
            numbers = {one.name: int(one.value) for one in launch.parameters if one.type in ("i32", "i64")}
            # A stride may equal a size: then the launch may have handed over the size alone.
            given = [number for number in needed if list(numbers.values()).count(number) > tensor.shape.count(number)]
            lines += [facts.line_without_strides(pointers, numbers, given)] if pointers else []
        return the_only(lines)

    def _carried_out(self, trial: Trial, inputs: list[Argument], recorded: PackedCall, **options) -> Reply:
        specs, blob = _with_values(recorded, trial, inputs)
        return self._interpreted(trial, recorded, specs, blob, **options)

    def sample(
        self, trial: Trial, inputs: list[Argument], tables: list[torch.Tensor], programs: int,
        **options,
    ) -> Reply:  # fmt: skip
        """Runs some programs of each launch on inputs without values: their memory repeats the `tables` of a Sample.

        `options` are fields of InterpretRequest. Raises ChildEnded, MachineFault.
        """
        recorded = self.recorded_call(trial, inputs)
        reply = recorded.reply(trial.exercise.written)
        if reply.error is not None or reply.refusals:
            return reply
        blob, places = recorded.blob, []
        for table in tables:
            data = table.view(torch.uint8).numpy().tobytes()
            places.append((len(blob), len(data)) if data else None)
            blob += data
        specs = [spec_of(name, tensor) for name, tensor in tensors_of(trial.arguments, inputs)]
        sample = Sample(programs, self.seed, places)
        return self._interpreted(trial, recorded, specs, blob, sample=sample, **options)

    def _interpreted(
        self, trial: Trial, recorded: PackedCall, specs: list[TensorSpec], blob: bytes, **options
    ) -> Reply:
        if self._steps > MOST_STEPS * self.rounds or self._lanes > MOST_LANES * self.rounds:
            raise ChildEnded("work", f"{self._steps:,}", Where(_launch_of_elements(recorded.call, trial, specs)))
        ran = self.interpreter.ask(self._request(trial, recorded, specs, **options), blob)
        self._steps, self._lanes = self._steps + ran.steps, self._lanes + ran.lanes
        self.lines.add(ran)
        return recorded.reply(trial.exercise.written, ran)

    def _request(self, trial: Trial, recorded: PackedCall, specs: list[TensorSpec], **options) -> InterpretRequest:
        return InterpretRequest(
            *recorded.places, self.filename, specs, trial.exercise.written,
            [result.name for result in trial.exercise.returned], list(trial.exercise.updates),
            config=trial.config, limit=trial.exercise.time_limit, **options,
        )  # fmt: skip

    def launch_plan(
        self,
        trial: Trial,
        texts: tuple[str, ...] = (),
        inputs: list[Argument] | None = None,
    ) -> PackedPlan:
        """Records a call of the entry and adds its kernels' machine code, ready for a GPU.

        `texts`: which intermediate representations to keep, besides FACTS. `inputs`: for the replay, if they are there.
        Raises ChildEnded, MachineFault, BadPlan.
        """
        arguments = inputs or without_values(trial.data, trial.dtype)
        specs = _specs(trial, arguments)
        call = self.recorded_call(trial, arguments).call
        results = results_by_name(
            call.returned, specs, [result.name for result in trial.exercise.returned], trial.exercise.updates
        )
        return PackedPlan.of(self.machine_code.plan(call, specs, results, texts), specs)

    def compile_ahead(self, foreseen: list[Foreseen]) -> None:
        """Begins to compile calls that will be asked for, up to the first that cannot be recorded."""
        for one in foreseen:
            if one.if_right and self.history.values_are_wrong:
                continue
            try:
                call = self.recorded_call(one.trial, without_values(one.trial.data, one.trial.dtype)).call
            except ChildEnded:  # raised again to the test that asks for it
                return
            if call.error is not None or call.refusals or self._ending:
                return
            self.machine_code.begin(call, if_right=one.if_right)

    def files_changed_beside(self) -> list[str]:
        """Returns the names of the exercise's files that were changed or deleted since the run began.

        Deleted files are put back. For children without a fence. The learner's own file is left alone: an editor may be
        saving it.
        """
        changed = [p for p, content in self._beside.items() if not p.exists() or p.read_bytes() != content]
        for path in changed:
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(self._beside[path])
        return [path.name for path in changed]

    def end(self) -> None:
        self._ending = True
        self.process.kill()
        self.front_end.kill()
        self._wait_for(None)
        self.process.end()
        self.front_end.end()
        if "run_of_ours" in vars(self):
            self.run_of_ours.end()
        if self._ends_interpreter:
            self.interpreter.end()
        self.machine_code.end()


@functools.lru_cache(maxsize=128)  # more than an exercise's mistakes, which are taken one by one for each wrong call
def _of_ours(path: Path, text: str) -> Submission:
    return submission_of(path, text.encode())


def _record_request(trial: Trial, inputs: list[Argument]) -> RecordRequest:
    specs, numbers = _specs(trial, inputs), numbers_of(inputs)
    return RecordRequest(trial.exercise.entry, specs, trial.constants, numbers, trial.small_dots, trial.begins)


def _specs(trial: Trial, arguments: list[Argument]) -> list[TensorSpec]:
    """Returns the specs of the tensors among the arguments."""
    return [spec_of(name, tensor) for name, tensor in tensors_of(trial.arguments, arguments)]


def _with_values(recorded: PackedCall, trial: Trial, inputs: list[Argument]) -> tuple[list[TensorSpec], bytes]:
    """Returns the specs of the tensors among the arguments, and the call's blob with their values behind it."""
    specs, blob = [], recorded.blob
    for name, tensor in tensors_of(trial.arguments, inputs):
        spec, data = spec_and_bytes(name, tensor, len(blob))
        specs.append(spec)
        blob += data
    return specs, blob


def _files_of(folder: Folder) -> dict:
    """Returns the bytes of each of the exercise's own files but the learner's, by path; they are few and small."""
    files = (path for path in folder.path.glob("*") if path.is_file() and path != folder.learner_file)
    return {path: path.read_bytes() for path in files}


def _launch_of_elements(call: RecordedCall, trial: Trial, arguments: list[TensorSpec]) -> int:
    """Returns the line of the first launch with as many programs as the largest argument or result has elements, which
    have 4 bytes at most; 0 if there is none, or there is but one element."""
    allocated = [buffer.bytes // 4 for buffer in call.buffers if not buffer.argument]
    elements = max([*allocated, *(math.prod(spec.shape) for spec in arguments)], default=0)
    lines = (one.line for one in call.launches(trial.config) if 1 < elements <= math.prod(one.grid))
    return next(lines, 0)
