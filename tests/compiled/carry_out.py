"""Carries out a launch plan in Triton's interpreter: python carry_out.py FILE < request > reply, in frames.

Buffers, offsets, fills, grids and numbers come from the plan alone; of FILE only the kernels are used. So a result that
is right shows that the plan says all that a GPU has to know, except for the machine code.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import sys

os.environ["TRITON_INTERPRET"] = "1"  # before the first import of triton

import torch

from grader.child.interpreter import apply_fixes
from grader.child.shortcuts import take_shortcuts
from grader.gpu.models import MODELS
from grader.gpu.plan import Fill, Plan, PlannedLaunch, View, read_plan, steps_with
from grader.protocol import LENGTHS, TensorSpec, pack, unpack_header, unpack_lengths
from grader.reply import spec_and_bytes

POISON = 0xFF  # in every byte: NaN in all floating-point formats


class Carried:
    def __init__(self, plan: Plan, module, inputs: list[bytes]):
        self.plan, self.module = plan, module
        self.bytes = [torch.full((max(buffer.bytes, 1),), POISON, dtype=torch.uint8) for buffer in plan.buffers]
        for memory, data in zip(self.bytes, inputs):
            if data:
                memory.copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))

    def view(self, view: View) -> torch.Tensor:
        dtype = getattr(torch, view.dtype)
        elements = self.bytes[view.buffer].view(dtype)
        return elements.as_strided(view.shape, view.strides, view.offset // dtype.itemsize)

    def carry_out(self, config: int) -> None:
        for step in steps_with(self.plan.steps, config):
            if isinstance(step, Fill):
                self.view(step.view).fill_(step.value)
            else:
                self._launch(step)

    def _launch(self, launch: PlannedLaunch) -> None:
        kernel = getattr(self.module, self.plan.kernels[launch.kernel].name)
        while hasattr(kernel, "configs") or hasattr(kernel, "values"):  # autotune, heuristics
            kernel = kernel.fn
        known = {name: ast.literal_eval(value) for name, value in launch.constants.items()}
        for parameter in launch.parameters:
            if parameter.type == "pointer" and parameter.name in kernel.arg_names:
                known[parameter.name] = self._pointer(parameter.buffer, parameter.offset)
            elif parameter.name in kernel.arg_names:
                known[parameter.name] = ast.literal_eval(parameter.value)
        kernel[tuple(launch.grid)](**known)

    def _pointer(self, buffer: int, offset: int) -> torch.Tensor:
        """A tensor that begins at the address: all that a pointer is. Its dtype is that of the buffer's views."""
        return self.bytes[buffer][offset:].view(getattr(torch, DTYPE))


def main() -> None:
    requests, replies = sys.stdin.buffer, sys.stdout.buffer
    header_bytes, blob_bytes = unpack_lengths(requests.read(LENGTHS.size))
    header, blob = unpack_header(requests.read(header_bytes)), requests.read(blob_bytes)
    code, inputs = blob[: header["code_bytes"]], blob[header["code_bytes"] :]
    specs = [TensorSpec.from_json(spec, len(inputs)) for spec in header["arguments"]]
    plan = read_plan(header["plan"], code, specs, MODELS["sm_90"])
    apply_fixes()
    take_shortcuts()
    spec = importlib.util.spec_from_file_location("submission", sys.argv[1])
    module = importlib.util.module_from_spec(spec)
    sys.modules["submission"] = module
    spec.loader.exec_module(module)
    carried = Carried(plan, module, [inputs[one.start : one.start + one.size] for one in specs])
    carried.carry_out(header["config"])
    result, data = spec_and_bytes("result", carried.view(plan.result).clone(), 0)
    replies.write(pack({"kind": "carried", "result": result.to_json()}, data))


DTYPE = sys.argv[2] if len(sys.argv) > 2 else "float32"

if __name__ == "__main__":
    main()
