"""Completes a recorded call: adds the texts of its kernels, and what the compiler refuses of them.

The process that runs the submission's Python tells which kernels it launches, and no more: the front end makes their
texts from the file's own text, so that nobody can hand over another kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from grader.processes.faults import ChildEnded
from grader.processes.front_end_process import FrontEnd, KernelText
from grader.processes.submission_process import SubmissionProcess
from grader.processes.where import Where
from grader.wire.launch_abi import MOST_THREADS, WARP_SIZE
from grader.wire.messages import Failure, RecordRequest
from grader.wire.recorded_call import Recipe, RecordedCall, accept_multiples, read_recorded
from grader.wire.recorded_parts import BadPlan, Choice, PlannedLaunch, Step

MAKES_A_DESCRIPTOR = '"tt.make_tensor_descriptor"'


def record_call(request: RecordRequest, process: SubmissionProcess, front_end: FrontEnd, limit: float) -> RecordedCall:
    """Returns what the entry does in the call of this request, with the texts of the kernels that it launches.

    limit: seconds of a core for the call. A call that breaks the rules of a plan is returned with an error. Raises
    ChildEnded, of the child that records or of the front end.
    """
    try:
        call = process.ask(request.to_json(), b"", limit, lambda header, _: read_recorded(header, request.arguments))
        accept_multiples(call, {*request.begins, *(name for name, _ in request.begins.values())})
    except BadPlan as refused:
        return RecordedCall(error=Failure("not-recordable", message=str(refused)))
    add_texts(call, lambda recipe: front_end.text(recipe, request.small_dots, request.constants))
    return call


def add_texts(call: RecordedCall, text_of: Callable[[Recipe], KernelText]) -> None:
    """Completes the call in place. Raises ChildEnded where making a text has ended its process.

    A kernel that the compiler refuses is the call's error. It comes first: on a GPU the launch would have raised it,
    and what the host function did later, which may be another error, would not have happened. A configuration that
    Triton passes over gets its own error, and no steps.
    """
    texts = _Texts(call, text_of)
    try:
        if call.error is None and not call.refusals:
            texts.of_steps(call.steps)
        else:
            texts.of_certain_kernels()
    except _Refused as refused:
        call.error, call.refusals = refused.failure, []
        call.kernels, call.steps, call.buffers = [], [], []


class _Refused(Exception):
    def __init__(self, failure: Failure, is_passed_over: bool = False) -> None:
        self.failure, self.is_passed_over = failure, is_passed_over


class _Texts:
    def __init__(self, call: RecordedCall, text_of: Callable[[Recipe], KernelText]) -> None:
        self.call, self.text_of = call, text_of

    def of_certain_kernels(self) -> None:
        """Makes the texts of launches before the call's own error. Raises _Refused for a text that is refused."""
        for kernel in self.call.kernels:
            self._text(kernel.recipe, 0)
        self.call.kernels = []

    def of_steps(self, steps: list[Step]) -> None:
        for step in steps:
            if isinstance(step, Choice):
                self._choice(step)
            elif isinstance(step, PlannedLaunch):
                self._launch(step)

    def _choice(self, choice: Choice) -> None:
        refused = []
        for alternative in choice.alternatives:
            try:
                self.of_steps(alternative.steps)
            except _Refused as why:
                if not why.is_passed_over:
                    raise
                refused.append(why)
                alternative.error, alternative.steps = why.failure.message or why.failure.type, []
        if len(refused) == len(choice.alternatives):
            raise refused[0]
        if choice.tuning is not None:
            self.of_steps(choice.tuning.before + choice.tuning.after)

    def _launch(self, launch: PlannedLaunch) -> None:
        kernel = self.call.kernels[launch.kernel]
        threads = kernel.recipe.options.get("num_warps", 1) * WARP_SIZE
        if threads > MOST_THREADS:
            message = f"out of resource: threads, Required: {threads}, Hardware limit: {MOST_THREADS}"
            raise _Refused(Failure("resources", "OutOfResources", message, launch.line), is_passed_over=True)
        source = self._text(kernel.recipe, launch.line)
        if launch.no_scratch and MAKES_A_DESCRIPTOR in source:
            type, _, message = launch.no_scratch.partition(": ")
            raise _Refused(Failure("host", type, message, launch.line))
        self.call.kernels[launch.kernel] = replace(kernel, source=source)

    def _text(self, recipe: Recipe, line: int) -> str:
        """Returns the text of a kernel. Raises _Refused, ChildEnded. `line`: of the launch, 0 if it is not known."""
        try:
            text = self.text_of(recipe)
        except ChildEnded as ended:
            if ended.how != "time":
                raise
            raise ChildEnded("time", ended.detail, Where(line, compiling=True)) from None
        if text.failure is not None:
            failure = replace(text.failure, line=text.failure.line or line)
            raise _Refused(failure, is_passed_over=not text.fits)
        return text.source
