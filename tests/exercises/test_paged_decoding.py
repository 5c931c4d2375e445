"""Paged decoding: how far a right kernel may lie from the exact result, and what is said of wrong ones."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import torch

from grader import in_pages, normal
from grader.course.folder import Folder, load_test_file
from grader.explain.verdict import PASS
from grader.judging.uses import TrafficUse
from grader.numerics.arguments import exact
from grader.numerics.bounds import tolerance
from grader.numerics.comparison import compare
from grader.numerics.data_sets import Data, generator_for, seed_place
from grader.numerics.rounding_models import ATTENTION, scores
from tests.conftest import ROOT, mutant
from tests.slow import in_turn

ID = "28_paged_decoding"
FOLDER = Folder(ROOT / "exercises" / ID)
EXERCISE = load_test_file(FOLDER).exercise
BOUND = EXERCISE.bounds["o"]
SOLUTION = FOLDER.solution_file.read_text()
SMALL = dict(BLOCK_N=32, SPLITS=3)
RAGGED = normal(2, 6, 32), *in_pages(20, 16, 2, 32, lengths=(77, 130))


def drawn(*data: Data, dtype: torch.dtype = torch.float16, seed: int = 1) -> list[torch.Tensor]:
    return [one.tensor(dtype, generator_for(seed, seed_place(one, place))) for place, one in enumerate(data)]


def expected(inputs: list[torch.Tensor]) -> torch.Tensor:
    (ref,) = EXERCISE.expected(exact(inputs))
    return ref


def sequences(inputs: list[torch.Tensor]) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Yields q [HK, G, D], k and v [HK, N, D] of each sequence."""
    q, k_cache, v_cache, table, lengths = inputs
    page, HK = k_cache.shape[1:3]
    for b, length in enumerate(lengths.tolist()):
        n = torch.arange(length)
        at = table[b, n // page], n % page
        yield q[b].unflatten(0, (HK, -1)), k_cache[at].transpose(0, 1), v_cache[at].transpose(0, 1)


def with_rounded_p(inputs: list[torch.Tensor], splits: int = 3) -> torch.Tensor:
    """Returns what the best of right kernels gives: p is rounded in each split, all else is in float64."""
    found = []
    for q, k, v in sequences(exact(inputs)):
        parts = []
        for s, values in zip(scores(q, k).chunk(splits, -1), v.chunk(splits, -2)):
            m = s.amax(dim=-1, keepdim=True)
            p = torch.exp(s - m)
            parts.append((m, p.sum(-1, keepdim=True), p.to(inputs[0].dtype).double() @ values))
        top = torch.stack([m for m, _, _ in parts]).amax(dim=0)
        total = sum(torch.exp(m - top) * total for m, total, _ in parts)
        found.append((sum(torch.exp(m - top) * acc for m, _, acc in parts) / total).flatten(0, 1))
    return torch.stack(found).to(inputs[0].dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("seed", range(5))
def test_a_kernel_that_rounds_p_and_nothing_else_stays_well_below_the_bound(dtype, seed):
    inputs = drawn(*RAGGED, dtype=dtype, seed=seed)
    assert compare(with_rounded_p(inputs), expected(inputs), BOUND, exact(inputs)).largest_error < 0.6


def test_what_fp16_loses_of_small_probabilities_is_paid_for():
    inputs = drawn(normal(1, 1, 64) * 0.1 + 1, *in_pages(40, 16, 1, 64, lengths=(600,), sink=True))
    assert compare(with_rounded_p(inputs), expected(inputs), BOUND, exact(inputs)).largest_error < 0.6


def test_the_bound_is_that_of_attention_to_the_keys_of_each_sequence():
    inputs = exact(drawn(normal(3, 6, 32), *in_pages(20, 16, 2, 32, lengths=(77, 0, 130))))
    ref = expected(inputs)
    allowed = tolerance(BOUND, inputs, ref, torch.float16)
    for b, (q, k, v) in enumerate(sequences(inputs)):
        if k.shape[1]:
            own = tolerance(ATTENTION, [q[None], k[None], v[None]], ref[b].view(1, 2, 3, 32), torch.float16)
            assert torch.equal(own.flatten(0, 2), allowed[b])
        else:
            assert float(allowed[b].max()) <= 2.0**-24 and not bool(ref[b].any())
    assert bool(allowed.isfinite().all())  # rows that hold no key are NaN, and count nowhere


# ---- what is said of wrong kernels -----------------------------------------------------------------------------------


OTHER_PAGES = {
    "pages of 8": in_pages(40, 8, 2, 32, lengths=(77, 130)),
    "pages of 64": in_pages(8, 64, 2, 32, lengths=(77, 130)),
    "heads before rows": tuple(one.stored_as(0, 2, 1, 3) if len(one.shape) == 4 else one for one in RAGGED[1:]),
    "shared pages": in_pages(9, 16, 2, 32, lengths=(77, 130)),
}
SAID = {
    "acc_not_rescaled": "not-rescaled",
    "average_of_splits": "wrong-join",
    "join_in_another_base": "bases-mixed",
    "split_floor": "keys-lost",
    "split_not_blocks": "keys-twice",
    "tail_zero": "padding-counted",
}
WHERE = [(name, pages) for place, name in enumerate(SAID) for pages in in_turn([*OTHER_PAGES], place)]


@pytest.mark.parametrize("name, pages", WHERE)
def test_a_mistake_of_arithmetic_is_named_wherever_the_pages_lie(bench, name, pages):
    verdict = bench(mutant(f"{ID}/{name}"), ID).check(RAGGED[0], *OTHER_PAGES[pages], **SMALL)
    assert verdict.id == SAID[name], verdict.lines


def test_what_is_no_key_is_said_to_be_none(bench):
    judge = bench(mutant(f"{ID}/row_in_page"), ID)
    one_page = in_pages(1, 32, 2, 32, lengths=(32,))
    assert judge.check(normal(1, 6, 32), *one_page, **SMALL).outcome == PASS
    verdict = judge.check(normal(1, 6, 32), *in_pages(500, 4, 2, 32, lengths=(77,)), **SMALL)
    assert verdict.id in ("row-beyond-page", "table-ignored", "no-key-read"), verdict.lines
    assert "nan" not in verdict.lines[0]


def test_the_share_of_a_program_its_scratch_and_its_atomics_are_limited_where_a_test_asks_for_it(bench):
    def cost(text: str, **limits):
        return TrafficUse.of("a test", *RAGGED, reads={}, writes={}, **limits, **SMALL).verdict(bench(text, ID).judge)

    numbers = 2 * 6 * 3 * 34
    assert cost(SOLUTION, kept=numbers, float_atomics=False).outcome == PASS
    refused = cost(SOLUTION, kept=numbers - 1)
    assert refused.id == "traffic" and refused.lines[0] == (
        f"Kernels keep {numbers} numbers in memory that only they see; {numbers - 1} are enough."
    )
    half = cost(mutant(f"{ID}/half_scratch"), kept=numbers)
    assert half.id == "low-precision" and half.lines[0].startswith("scratch acc holds numbers of 2 bytes each")
    by_atomics = mutant(f"{ID}/joined_by_atomics")
    assert cost(by_atomics).outcome == PASS
    assert cost(by_atomics, float_atomics=False).id == "race"


# ---- the lesson ------------------------------------------------------------------------------------------------------


def test_the_algorithm_of_the_lesson_gives_what_the_reference_gives(capsys):
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", (FOLDER.path / "README.md").read_text(), re.DOTALL)
               if "def join" in block)  # fmt: skip
    names: dict = {}
    exec(code, names)
    assert "nan" in capsys.readouterr().out
    q, k_cache, v_cache, table, lengths = exact(drawn(normal(1, 1, 16), *in_pages(9, 4, 1, 16, lengths=(23,))))
    for splits in (1, 3, 7):
        o = names["decode_by_splits"](q[0], k_cache[:, :, 0], v_cache[:, :, 0], table[0], 23, splits)
        assert torch.allclose(o, expected([q, k_cache, v_cache, table, lengths])[0], rtol=1e-12)
