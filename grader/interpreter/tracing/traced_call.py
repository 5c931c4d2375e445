"""A call of which one program of each launch is traced.

The call is carried out several times, with other values in everything that holds no value: masked lanes without
`other`, lanes out of bounds, memory that nobody has written. A lane that differs between the runs was computed from
these values, however indirectly. A lane agrees by luck only if a maximum skips a NaN, or zero adds nothing. So the
values are infinite in the first run, then zero, then large.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from grader.interpreter.batch import Batch
from grader.interpreter.buffers import FILLS, Buffer
from grader.interpreter.call import InterpretedCall
from grader.interpreter.launch import run_launch
from grader.interpreter.program import ReadyKernel
from grader.interpreter.tracing.described_steps import described
from grader.interpreter.tracing.tracer import Tracer
from grader.wire.messages import Launch
from grader.wire.traced_program import MOST_LAUNCHES, MOST_STEPS, TracedProgram, TracedStep

OTHER_FILLS = "zero", "large"
SHARE, OTHER_SHARE = 0.5, 0.2  # shares of the call's time: of the run that is reported, and of each other run
OUT_OF_TIME = ("endless", "grid")


@dataclass
class _TracedLaunch:
    launch: Launch
    program: list[int]
    tracer: Tracer


class TracedCall(InterpretedCall):
    def run(self) -> tuple[dict, bytes]:
        first, reply, blob = self._run_with("poison", SHARE)
        ended = reply["error"] is not None and reply["error"]["kind"] in OUT_OF_TIME
        others = [self._run_with(fill, OTHER_SHARE)[0].traced for fill in OTHER_FILLS if not ended]
        room, reply["traced"] = MOST_STEPS, []
        for number, traced in enumerate(first.traced):
            program = _program(traced, [other[number].tracer for other in others if number < len(other)], room)
            room -= len(program.steps)
            reply["traced"].append(_as_json(program))
        return reply, blob

    def _run_with(self, fill: str, share: float) -> tuple[_Once, dict, bytes]:
        request = replace(self.request, fill=fill, limit=self.request.limit * share)
        call = _Once(request, self.recorded, self.kernels, self.inputs)
        return call, *call.run()


def _program(traced: _TracedLaunch, others: list[Tracer], room: int) -> TracedProgram:
    steps, launch = described(traced.tracer, others), traced.launch
    left_out = max(0, len(steps) - room)
    return TracedProgram(launch.kernel, launch.line, launch.grid, traced.program, steps[:room], left_out)


def _as_json(program: TracedProgram) -> dict:
    """Returns the program as JSON. There are many steps, so fields with their usual value are left out of them."""
    usual = vars(TracedStep(""))
    steps = [{name: value for name, value in vars(step).items() if value != usual[name]} for step in program.steps]
    return asdict(replace(program, steps=[])) | {"steps": steps}


@dataclass
class _Once(InterpretedCall):
    traced: list[_TracedLaunch] = field(default_factory=list)

    def _buffers(self) -> Iterator[Buffer]:
        self.memory.other_outside = False
        for number, buffer in enumerate(super()._buffers()):
            if not self.recorded.buffers[number].argument:
                buffer.bytes[:] = FILLS[self.request.fill]
            yield buffer

    def _run(self, kernel: ReadyKernel, batch: Batch, arguments: list[Any], grid: tuple[int, ...]) -> None:
        programs, chosen = range(math.prod(grid)), self.request.traced or []
        if not programs or len(self.traced) == MOST_LAUNCHES:
            super()._run(kernel, batch, arguments, grid)
            return
        program = [*chosen, 0, 0, 0]
        x, y, z = (min(max(at, 0), size - 1) for at, size in zip(program, grid))
        number = (z * grid[1] + y) * grid[0] + x
        run_launch(kernel, batch, arguments, programs[:number])
        self._trace(kernel, batch, arguments, number)
        run_launch(kernel, batch, arguments, programs[number + 1 :])

    def _trace(self, kernel: ReadyKernel, batch: Batch, arguments: list[Any], number: int) -> None:
        tracer, memory, log = Tracer(), self.memory, self.memory.observer
        tracer.arguments = list(memory.arguments)
        self.traced.append(_TracedLaunch(self.launches[-1], memory.name(number), tracer))
        memory.observer = tracer
        try:
            run_launch(kernel, batch, arguments, range(number, number + 1), tracer)
        finally:
            memory.observer = log
