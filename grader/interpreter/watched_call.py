"""A call of which one program of each launch is watched.

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
from grader.interpreter.call import Call
from grader.interpreter.launch import run_launch
from grader.interpreter.program import Kernel
from grader.interpreter.told_steps import told
from grader.interpreter.watcher import Watcher
from grader.wire.messages import Launch
from grader.wire.watched_program import MOST_LAUNCHES, MOST_STEPS, WatchedProgram, WatchedStep

OTHER_FILLS = "zero", "large"
SHARE, OTHER_SHARE = 0.5, 0.2  # shares of the call's time: of the run that is reported, and of each other run
OUT_OF_TIME = ("endless", "grid")


@dataclass
class _Watched:
    launch: Launch
    program: list[int]
    watcher: Watcher


class WatchedCall(Call):
    def run(self) -> tuple[dict, bytes]:
        first, reply, blob = self._run_with("poison", SHARE)
        ended = reply["error"] is not None and reply["error"]["kind"] in OUT_OF_TIME
        others = [self._run_with(fill, OTHER_SHARE)[0].watched for fill in OTHER_FILLS if not ended]
        room, reply["watched"] = MOST_STEPS, []
        for number, one in enumerate(first.watched):
            program = _program(one, [other[number].watcher for other in others if number < len(other)], room)
            room -= len(program.steps)
            reply["watched"].append(_as_json(program))
        return reply, blob

    def _run_with(self, fill: str, share: float) -> tuple[_Once, dict, bytes]:
        request = replace(self.request, fill=fill, limit=self.request.limit * share)
        call = _Once(request, self.recorded, self.kernels, self.inputs)
        return call, *call.run()


def _program(one: _Watched, others: list[Watcher], room: int) -> WatchedProgram:
    steps, launch = told(one.watcher, others), one.launch
    left_out = max(0, len(steps) - room)
    return WatchedProgram(launch.kernel, launch.line, launch.grid, one.program, steps[:room], left_out)


def _as_json(program: WatchedProgram) -> dict:
    """Returns the program as JSON. There are many steps, so fields with their usual value are left out of them."""
    usual = vars(WatchedStep(""))
    steps = [{name: value for name, value in vars(step).items() if value != usual[name]} for step in program.steps]
    return asdict(replace(program, steps=[])) | {"steps": steps}


@dataclass
class _Once(Call):
    watched: list[_Watched] = field(default_factory=list)

    def _buffers(self) -> Iterator[Buffer]:
        self.memory.other_outside = False
        for number, buffer in enumerate(super()._buffers()):
            if not self.recorded.buffers[number].argument:
                buffer.bytes[:] = FILLS[self.request.fill]
            yield buffer

    def _run(self, kernel: Kernel, batch: Batch, given: list[Any], grid: tuple[int, ...]) -> None:
        programs, watch = range(math.prod(grid)), self.request.watch or []
        if not programs or len(self.watched) == MOST_LAUNCHES:
            super()._run(kernel, batch, given, grid)
            return
        asked = [*watch, 0, 0, 0]
        x, y, z = (min(max(at, 0), size - 1) for at, size in zip(asked, grid))
        number = (z * grid[1] + y) * grid[0] + x
        run_launch(kernel, batch, given, programs[:number])
        self._watch(kernel, batch, given, number)
        run_launch(kernel, batch, given, programs[number + 1 :])

    def _watch(self, kernel: Kernel, batch: Batch, given: list[Any], number: int) -> None:
        watcher, memory, log = Watcher(), self.memory, self.memory.log
        watcher.arguments = list(memory.arguments)
        self.watched.append(_Watched(self.launches[-1], memory.name(number), watcher))
        memory.log = watcher
        try:
            run_launch(kernel, batch, given, range(number, number + 1), watcher)
        finally:
            memory.log = log
