"""A recorded call and the machine code of its kernels: the launch plan that a GPU replays.

A launch of a text binds the arguments of the text's function. Machine code takes other parameters: a descriptor that
the host made becomes a tensor map, or before sm_90 its parts, and pointers to scratch memory follow at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from grader.compiler.result import CompilerResult, Failed
from grader.gpu.plan import Plan, PlannedKernel, PlannedParameter, TensorMap, accept
from grader.wire import recorded_call as recorded
from grader.wire.frames import ProtocolError
from grader.wire.launch_abi import (
    SCRATCH,
    TENSOR_MAP_TF32,
    TENSOR_MAP_TYPES,
    TensorMapForm,
    parts_of_a_descriptor,
    settings_taken,
)
from grader.wire.messages import GpuModel, TensorSpec
from grader.wire.recorded_parts import Alternative, Choice, PlannedBuffer, PlannedLaunch, PlannedView, Step

SKIPPED = ("resources", "assembler")  # failures for which Triton's autotuner passes over a configuration


class NotCompiled(Exception):
    """A kernel that the call launches cannot be compiled."""

    def __init__(self, kernel: str, line: int, failed: Failed) -> None:
        super().__init__(f"{kernel}: {failed.message}")
        self.kernel, self.line, self.failed = kernel, line, failed


def plan_of(
    call: recorded.RecordedCall,
    compiled: Callable[[recorded.RecordedKernel], CompilerResult | Failed],
    arguments: list[TensorSpec],
    results: dict[str, PlannedView],
    model: GpuModel,
) -> Plan:
    """Returns the call's plan, with the machine code that `compiled` returns for each kernel that is launched.

    A configuration whose kernel fails in a way that SKIPPED lists becomes an alternative with an error and no steps.
    Raises NotCompiled for other failures, and where no configuration compiles; BadPlan and ProtocolError as
    grader.gpu.plan.accept does. The plan of a call with an error or refusals has only these.
    """
    plan = Plan(error=call.error, refusals=call.refusals)
    if call.error is None and not call.refusals:
        plan.results = results
        _Planner(call, compiled, plan).fill()
        accept(plan, arguments, model)
    return plan


class _Planner:
    def __init__(self, call: recorded.RecordedCall, compiled: Callable, plan: Plan) -> None:
        self.call, self.compiled, self.plan = call, compiled, plan
        self.scratch = PlannedBuffer(SCRATCH[0], False, 0)  # shared by all launches: they run one after the other

    def fill(self) -> None:
        self.plan.buffers = list(self.call.buffers)
        self.plan.steps = self._steps(self.call.steps)
        if self.scratch.bytes:
            self.plan.buffers.append(self.scratch)

    def _steps(self, steps: list[Step]) -> list[Step]:
        made = (self._step(step) for step in steps)
        return [step for step in made if step is not None]

    def _step(self, step: Step) -> Step | None:
        if isinstance(step, Choice):
            return Choice(self._alternatives(step), step.line)
        if isinstance(step, PlannedLaunch):
            return self._launch(step) if min(step.grid) > 0 else None  # Triton launches nothing either
        return step

    def _alternatives(self, choice: Choice) -> list[Alternative]:
        """Returns a choice's alternatives, compiled. Raises the first's NotCompiled if none can run, as Triton does."""
        made, refused = [], []
        for alternative in choice.alternatives:
            try:
                made.append(replace(alternative, steps=self._steps(alternative.steps)))
            except NotCompiled as error:
                if error.failed.what not in SKIPPED:
                    raise
                refused.append(error)
                made.append(replace(alternative, error=error.failed.message, steps=[]))
        if refused and all(compiled.error for compiled in made):
            raise refused[0]
        return made

    def _launch(self, launch: PlannedLaunch) -> PlannedLaunch:
        kernel = self.call.kernels[launch.kernel]
        answer = self.compiled(kernel)
        if isinstance(answer, Failed):
            raise NotCompiled(kernel.name, launch.line, answer)
        parameters = _parameters(launch, answer) + self._scratch(launch, answer)
        return replace(launch, kernel=self._number_of(answer.kernel), parameters=parameters)

    def _number_of(self, kernel: PlannedKernel) -> int:
        """Returns the kernel's number in the plan, and adds the kernel unless the plan has one with the same code."""
        codes = [known.code for known in self.plan.kernels]
        if kernel.code not in codes:
            self.plan.kernels.append(kernel)
        return codes.index(kernel.code) if kernel.code in codes else len(codes)

    def _scratch(self, launch: PlannedLaunch, answer: CompilerResult) -> list[PlannedParameter]:
        blocks = launch.grid[0] * launch.grid[1] * launch.grid[2] * answer.metadata.num_ctas
        needed = blocks * answer.metadata.global_scratch_size
        self.scratch.bytes = max(self.scratch.bytes, needed)
        at = len(self.call.buffers) if needed else -1
        return [PlannedParameter(name, "pointer", buffer=place) for name, place in zip(SCRATCH, (at, -1))]


def _parameters(launch: PlannedLaunch, answer: CompilerResult) -> list[PlannedParameter]:
    """Returns the parameters of the machine code, except for scratch memory.

    Raises ProtocolError where a descriptor has no tiled tensor map, though others have tensor maps.
    """
    forms, flags = iter(answer.descriptors), _flags(launch, answer)
    found: list[PlannedParameter] = []
    for parameter in launch.parameters:
        place = {"buffer": parameter.buffer, "offset": parameter.offset}
        if parameter.descriptor is None:
            found.append(PlannedParameter(parameter.name, parameter.type, parameter.value, **place))
        elif answer.descriptors:
            form = next(forms, None)
            if form is None or form.is_im2col:
                raise ProtocolError("a descriptor without a tiled tensor map")
            found.append(PlannedParameter(parameter.name, "tensormap", **place, map=_map(parameter.descriptor, form)))
        else:
            found += _parts(parameter, parameter.descriptor, flags)
    return found


def _map(descriptor: recorded.RecordedDescriptor, form: TensorMapForm) -> TensorMap:
    *outer, inner = descriptor.shape
    data_type = TENSOR_MAP_TF32 if descriptor.tf32 else TENSOR_MAP_TYPES.get(form.elem_type, -1)
    shape = [*outer, inner * (2 if form.fp4_padded else 1)]
    nan_padding = descriptor.padding == "nan"
    return TensorMap(
        data_type, form.elem_size, form.swizzle, form.block_size, shape, descriptor.strides, nan_padding
    )  # fmt: skip


def _parts(
    parameter: recorded.RecordedParameter, descriptor: recorded.RecordedDescriptor, flags: int
) -> list[PlannedParameter]:
    """Returns a descriptor's parts, for a GPU without tensor maps: an address, sizes, strides, and `flags` settings."""
    settings = [descriptor.padding == "nan", descriptor.tf32][:flags]
    parts = parts_of_a_descriptor(parameter.name, descriptor.shape, descriptor.strides, settings)
    address = PlannedParameter(parameter.name, "pointer", buffer=parameter.buffer, offset=parameter.offset)
    return [address, *(PlannedParameter(*part) for part in parts)]


def _flags(launch: PlannedLaunch, answer: CompilerResult) -> int:
    """Returns the number of settings of each descriptor among the parameters of the machine code."""
    ranks = [len(parameter.descriptor.shape) for parameter in launch.parameters if parameter.type == "descriptor"]
    return settings_taken(len(answer.kernel.cubin.parameters), len(launch.parameters), ranks)
