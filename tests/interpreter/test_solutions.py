"""The five solutions run clean and right, in every order of programs and with either fill of masked lanes."""

from pathlib import Path

import pytest
import torch

SOLUTIONS = Path(__file__).resolve().parents[2] / "solutions"


def padded(tensor: torch.Tensor) -> torch.Tensor:
    wide = torch.full((tensor.shape[0], tensor.shape[1] + 5), float("nan"), dtype=tensor.dtype)
    wide[:, : tensor.shape[1]] = tensor
    return wide[:, : tensor.shape[1]]


def poisoned(*shape: int) -> torch.Tensor:
    return torch.full(shape, float("nan"))


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


ENTRIES = {
    "01_masked_add": "masked_add",
    "02_strided_blocks": "strided_copy",
    "03_softmax": "softmax",
    "04_transpose": "transpose",
    "05_grouped_matmul": "matmul",
}
SMALL_TILES = dict(BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP_M=2)
CASES = {
    "01_masked_add": [
        (dict(x=normal(n), y=normal(n)), {}, lambda x, y: x + y) for n in (0, 1, 1023, 1025, 2411)
    ],
    "02_strided_blocks": [
        (dict(x=x, z=z), {}, lambda x, z: x)
        for x, z in [
            (normal(37, 153), poisoned(37, 153)),
            (normal(153, 37).t(), padded(poisoned(37, 153))),
            (normal(37, 306)[:, ::2], poisoned(153, 37).t()),
            (normal(153).expand(37, 153), poisoned(37, 306)[:, ::2]),
        ]
    ],
    "03_softmax": [
        (dict(x=x), {}, lambda x: torch.softmax(x, -1))
        for x in (normal(40, 781), normal(40, 1), padded(normal(33, 70)), normal(70, 33).t(), normal(33, 140)[:, ::2])
    ],
    "04_transpose": [
        (dict(x=x), constants, lambda x: x.t())
        for x, constants in [
            (normal(131, 77), {}), (padded(normal(77, 131)), {}), (normal(77, 131), dict(BLOCK_M=16, BLOCK_N=32)),
        ]
    ],
    "05_grouped_matmul": [
        (dict(a=a.half(), b=b.half()), SMALL_TILES, lambda a, b: (a.double() @ b.double()))
        for a, b in [(normal(67, 97), normal(97, 131)), (padded(normal(97, 131)), normal(67, 131).t())]
    ],
}  # fmt: skip
ORDERS = [("forward", "poison"), ("reverse", "zero"), (3, "poison")]


@pytest.mark.parametrize("order, fill", ORDERS)
@pytest.mark.parametrize("exercise", CASES)
def test_solution_is_clean_and_right(child, exercise, order, fill):
    path = SOLUTIONS / exercise / f"{exercise[3:]}.py"
    loaded = child.load(path)
    assert loaded.error is None
    entry = ENTRIES[exercise]
    for arguments, constants, reference in CASES[exercise]:
        writable = ["z"] if "z" in arguments else []
        options = dict(order=order, fill=fill, constants=constants, writable=writable)
        reply = child.run(entry, options, **arguments)
        assert reply.error is None and reply.findings == [] and reply.refusals == [] and reply.changed == []
        assert (reply.writer >= 0).all()
        assert reply.result["same_as"] == ("z" if "z" in arguments else "")
        torch.testing.assert_close(reply.output.double(), reference(**arguments).double(), rtol=1e-3, atol=1e-3)
