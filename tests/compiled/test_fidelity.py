"""A recorded plan says all that a GPU has to know: carried out from the plan alone, it gives torch's result."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from grader.protocol import LENGTHS, TensorSpec, pack, unpack_header, unpack_lengths
from grader.reply import spec_and_bytes, spec_of, tensor_of

ROOT = Path(__file__).resolve().parent.parent.parent
SOLUTIONS, ACCEPTED = ROOT / "solutions", ROOT / "tests/accepted"
SMALL = {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32, "GROUP_M": 2}


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(3)).to(dtype)


def matmul_inputs() -> dict:
    return {"a": normal(67, 107, dtype=torch.float16), "b": normal(107, 70, dtype=torch.float16)}


CASES = {
    "fills": (
        ACCEPTED / "01_masked_add/assigned_zeros.py", "masked_add", {"x": normal(2411), "y": normal(2411)}, torch.add,
    ),
    "configurations": (
        ACCEPTED / "01_masked_add/autotuned.py", "masked_add", {"x": normal(2411), "y": normal(2411)}, torch.add,
    ),
    "views": (
        SOLUTIONS / "02_strided_blocks/strided_blocks.py", "strided_copy",
        {"x": normal(70, 37).t(), "z": torch.empty(37, 140)[:, ::2]}, lambda x, z: x,
    ),
    "scratch memory, two kernels": (
        ACCEPTED / "03_softmax/several_programs_per_row.py", "softmax", {"x": normal(12, 781)}, lambda x: x.softmax(-1),
    ),
    "constants": (
        SOLUTIONS / "05_grouped_matmul/grouped_matmul.py", "matmul", matmul_inputs(),
        lambda a, b: a.float() @ b.float(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("path, entry, inputs, reference", CASES.values(), ids=CASES)
def test_a_plan_gives_the_result(recording, path, entry, inputs, reference):
    recorded = recording(path)
    shapes = {name: _without_memory(tensor) for name, tensor in inputs.items()}
    plan = recorded.plan(entry, constants=SMALL if entry == "matmul" else {}, **shapes)
    for config in range(plan.configs):
        found = _carried_out(recorded, path, inputs, config)
        torch.testing.assert_close(found.float(), reference(*inputs.values()).float(), rtol=2e-3, atol=2e-3)


def _without_memory(tensor: torch.Tensor) -> torch.Tensor:
    storage = torch.empty(tensor.untyped_storage().nbytes(), dtype=torch.uint8, device="meta").untyped_storage()
    made = torch.empty(0, dtype=tensor.dtype, device="meta")
    return made.set_(storage, tensor.storage_offset(), tensor.shape, tensor.stride())


def _carried_out(recorded, path: Path, inputs: dict[str, torch.Tensor], config: int) -> torch.Tensor:
    specs, blob = [], b""
    for name, tensor in inputs.items():
        spec, data = spec_and_bytes(name, tensor, len(blob))
        assert replace(spec, start=0) == spec_of(name, tensor)
        specs.append(spec)
        blob += data
    header = {
        "kind": "carry out", "plan": recorded.header, "config": config, "code_bytes": len(recorded.blob),
        "arguments": [spec.to_json() for spec in specs],
    }  # fmt: skip
    dtype = str(next(iter(inputs.values())).dtype).removeprefix("torch.")
    command = [sys.executable, str(Path(__file__).with_name("carry_out.py")), str(path), dtype]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRITON_DEFAULT_FP_FUSION": "1"}
    done = subprocess.run(command, input=pack(header, recorded.blob + blob), capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    header_bytes, _ = unpack_lengths(done.stdout[: LENGTHS.size])
    reply = unpack_header(done.stdout[LENGTHS.size : LENGTHS.size + header_bytes])
    data = done.stdout[LENGTHS.size + header_bytes :]
    return tensor_of(TensorSpec.from_json(reply["result"], len(data)), data)
