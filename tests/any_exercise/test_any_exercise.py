"""What an operation may have, all at once: 4-D views, indices, numbers, scratch, several results, updated arguments."""

from __future__ import annotations

from dataclasses import replace
from textwrap import indent

import pytest

from grader import Elements, indices, normal
from grader.author.accepted_constants import accepted_constants
from grader.course.drawn_calls import drawn_calls
from grader.explain.verdict import FAIL, PASS
from grader.judging.uses import CompiledUse, DrawnUse, TrafficUse, uses_asked
from tests.any_exercise.conftest import FOLDER

SOLUTION = FOLDER.solution_file.read_text(encoding="utf-8")
ONE_DTYPE = {"dtypes": ("float16",)}


def data(x=None, picks: int = 100, clamp: bool = False) -> tuple:
    x = normal(2, 3, 20, 8).stored_as(0, 2, 1, 3) if x is None else x
    return x, normal(picks).of("float32"), indices(picks, below=x.shape[0] * x.shape[1]), 0.5, clamp


def changed(*pairs: tuple[str, str]) -> str:
    text = SOLUTION
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


SECOND_LAUNCH = """    pick_peaks_kernel[(triton.cdiv(K, BLOCK_K),)](
        peaks, state, index, z, K, state.stride(0), scale, CLAMP=clamp, BLOCK_K=BLOCK_K
    )
"""
STATE_STORE = "tl.store(state_ptr + picks * stride_state, state + peaks, mask=mask)"
RETURN = "    return z, counts\n"
EMPTY_COUNTS = "torch.empty((B, H), dtype=torch.int32, device=x.device)"

CALLS = ("BLOCK_S, BLOCK_K = 16, 64", "BLOCK_S, BLOCK_K, CALLS = 16, 64, []")

# Each: what is changed, the verdict's id, and words of its sentences, which name the result or argument concerned.
MUTANTS = {
    "the second output is wrong": (
        [("tile > 0", "tile > 1")], "wrong-values",
        ["counts is wrong in", "First wrong element: counts[0, 0] of program (0,) is "],
    ),
    "the first output is wrong": (
        [("z = peaks * scale", "z = peaks * scale + 1.0")], "wrong-values", ["z is wrong in every element", "z[0]"],
    ),
    "an output has another dtype": (
        [("dtype=torch.int32", "dtype=torch.float32")], "wrong-result-type",
        ["counts has dtype fp32; int32 was expected"],
    ),
    "an output has another shape": (
        [("torch.empty((B, H),", "torch.empty((H, B),")], "wrong-result-type",
        ["counts has shape (3, 2); (2, 3) was expected."],
    ),
    "outputs have changed places": (
        [(RETURN, "    return counts, z\n")], "wrong-result-type", ["z has shape (2, 3); (100,) was expected."],
    ),
    "one output is missing": (
        [(RETURN, "    return z\n")], "wrong-result-type",
        ["pick_peaks returns an object of type Tensor; a tuple of 2 was expected: (z, counts)."],
    ),
    "nothing is returned": (
        [(RETURN, "")], "wrong-result-type",
        ["returns nothing (None); a tuple of 2 was expected: (z, counts).", "end with `return`?"],
    ),
    "an output too many": (
        [(RETURN, "    return z, counts, state\n")], "wrong-result-type", ["returns 3 results; a tuple of 2"],
    ),
    "an output is no tensor": (
        [(RETURN, "    return z, 3\n")], "wrong-result-type",
        ["returns an object of type int for counts, not a tensor of shape (2, 3) and dtype int32."],
    ),
    "outputs share their memory": (
        [("z = torch.empty(K, dtype=x.dtype, device=x.device)", "z = torch.empty(400, dtype=x.dtype, device=x.device)"),
         (EMPTY_COUNTS, "z.view(torch.int32)[:B * H].view(B, H)"), (RETURN, "    return z[:K], counts\n")],
        "wrong-result-type", ["z and counts share their memory"],
    ),
    "an output is an argument's memory": (
        [(EMPTY_COUNTS, "state.view(torch.int32)[:B * H].view(B, H)")], "wrong-result-type",
        ["counts shares its memory with state"],
    ),
    "the argument is updated twice by a second call": (
        [CALLS, (SECOND_LAUNCH, f"    CALLS.append(1)\n    for _ in CALLS:\n{indent(SECOND_LAUNCH, '    ')}")],
        "stateful", ["A second call with the same inputs gives another state."],
    ),
    "the argument is updated twice": (
        [(SECOND_LAUNCH, 2 * SECOND_LAUNCH)], "updated-twice",
        ["state is updated twice: it holds what a second call would make of it."],
    ),
    "the argument is not updated": (
        [(STATE_STORE, "")], "unwritten", 
        ["Nothing was written to state: no store of 2 launches reaches it.", "100 of 100 elements of state were never"],
    ),
    "the argument is written as it was": (
        [("state + peaks", "state")], "unchanged", ["state still holds what it held before: it has to be updated"],
    ),
    "the argument's update is wrong": (
        [("state + peaks", "state - peaks")], "wrong-values", ["state is wrong in", "First wrong element: state[0]"],
    ),
    "an argument is changed by a kernel": (
        [(STATE_STORE, STATE_STORE + "\n    tl.store(index_ptr + picks, index, mask=mask)")], "input-changed",
        ["The kernel writes to index, an input: it has to stay as it is.", "index[0]"],
    ),
    "an argument is changed by the host": (
        [(RETURN, "    index.zero_()\n" + RETURN)], "input-changed", ["pick_peaks changes index: inputs have to stay"],
    ),
    "an index leads past the scratch": (
        [("peaks_ptr + index,", "peaks_ptr + index + 1,")], "oob-load",
        ["The address leads outside of scratch peaks. It is made with index", "reads element 6 of scratch peaks"],
    ),
    "the index is read past its end": (
        [("tl.load(index_ptr + picks, mask=mask, other=0)", "tl.load(index_ptr + picks)")], "oob-load",
        ["no mask: lanes past the end of index take part in it", "element 100 of index; index has elements 0 to 99"],
    ),
    "the updated argument is written past its end": (
        [(STATE_STORE, STATE_STORE.replace(", mask=mask", ""))], "oob-store", ["lanes past the end of state take part"],
    ),
    "scratch is read before it is written": (
        [("pick_peaks_reduce_kernel[(B * H,)]", "pick_peaks_reduce_kernel[(B * H - 1,)]")], "uninitialised-read",
        ["The kernel reads scratch peaks before anything was written there"],
    ),
    "an output is not covered": (
        [("tl.store(counts_ptr + pid,", "tl.store(counts_ptr + pid % 5,")], "double-write", ["both write counts[0, 0]"],
    ),
    "strides are ignored": (
        [("*x.stride()", "H * S * D, S * D, D, 1")], "stride-ignored",
        ["The strides of x are not used: it is read as if contiguous."],
    ),
    "z is summed from one call to the next": (
        [CALLS, (RETURN, "    CALLS.append(1)\n" + RETURN), ("(0), scale,", "(0), scale + len(CALLS),")],
        "stateful", ["A second call with the same inputs gives another z."],
    ),
    "a number is not used": (
        [("peaks * scale", "peaks")], "wrong-values", ["z is wrong in"],
    ),
}  # fmt: skip


def test_the_solution_is_right(graded):
    assert graded(SOLUTION).check(*data()).outcome == PASS


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_rejected_with_a_sentence_about_what_is_concerned(graded, name):
    pairs, id, sentences = MUTANTS[name]
    verdict = graded(changed(*pairs)).check(*data(), **ONE_DTYPE)
    said = "\n".join(verdict.lines)
    assert (verdict.outcome, verdict.id) == (FAIL, id), said
    assert all(sentence in said for sentence in sentences), said


TUNED = """@triton.autotune([triton.Config({"BLOCK_K": size}) for size in (32, 64)], key=["K"],
                 restore_value=["state_ptr"])
@triton.jit
def pick_peaks_kernel("""
ATOMIC = "tl.atomic_add(counts_ptr + pid, tl.sum(tl.sum(count, 1), 0))"
RIGHT = {
    "a list": [(RETURN, "    return [z, counts]\n")],
    "results side by side in one allocation": [
        ("z = torch.empty(K, dtype=x.dtype, device=x.device)",
         "memory = torch.empty(K * x.element_size() + 4 * B * H, dtype=torch.uint8, device=x.device)\n"
         "    z = memory[4 * B * H :].view(x.dtype)"),
        (EMPTY_COUNTS, "memory[: 4 * B * H].view(torch.int32).view(B, H)"),
    ],
    "atomics on a workspace of zeros": [
        (EMPTY_COUNTS, EMPTY_COUNTS.replace("empty", "zeros")),
        ("tl.store(counts_ptr + pid, tl.sum(tl.sum(count, 1), 0))", ATOMIC),
    ],
    "configurations to choose from": [
        ("@triton.jit\ndef pick_peaks_kernel(", TUNED), ("CLAMP=clamp, BLOCK_K=BLOCK_K", "CLAMP=clamp"),
        ("(triton.cdiv(K, BLOCK_K),)", "lambda meta: (triton.cdiv(K, meta['BLOCK_K']),)"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels_may_look_different(graded, name):
    verdict = graded(changed(*RIGHT[name])).check(*data(), **ONE_DTYPE)
    assert verdict.outcome == PASS, verdict.lines


def test_counts_on_memory_that_is_not_zeroed_are_told(graded):
    pairs = [("tl.store(counts_ptr + pid, tl.sum(tl.sum(count, 1), 0))", ATOMIC)]
    verdict = graded(changed(*pairs)).check(*data(), **ONE_DTYPE)
    assert verdict.id == "not-zeroed" and "Atomics add to counts, which nobody has set to 0" in verdict.lines[0]


def test_findings_name_the_result_that_lies_there_where_several_share_an_allocation(graded):
    pairs = [*RIGHT["results side by side in one allocation"], ("counts_ptr + pid,", "counts_ptr + pid % 5,")]
    verdict = graded(changed(*pairs)).check(*data(), **ONE_DTYPE)
    assert verdict.id == "double-write" and "both write counts[0, 0]" in verdict.lines[1]


def test_a_view_of_nothing_may_begin_where_its_memory_ends(graded):
    pairs = [
        (
            "z = torch.empty(K, dtype=x.dtype, device=x.device)",
            "z = torch.empty((2, K), dtype=x.dtype, device=x.device)[1]",
        )
    ]
    for picks in (0, 100):
        verdict = graded(changed(*pairs)).check(*data(picks=picks), **ONE_DTYPE)
        assert verdict.outcome == PASS, verdict.lines


# ---- cost, drawn calls, numbers --------------------------------------------------------------------------------------


def test_each_result_and_the_updated_argument_have_their_own_traffic(graded):
    judge = graded(SOLUTION).judge
    call = data(normal(2, 3, 37, 16))

    def verdict(**limits):
        return TrafficUse.of("a test", *call, **limits).verdict(judge)

    right = verdict()
    assert right.outcome == PASS and right.note == (
        "x read once, state read once, index read once, z written once, counts written once, state written once"
    )
    assert right.figures["counts_written"] == right.figures["state_read"] == 1
    assert verdict(writes={"counts": 0.5}).lines == ["counts is written once; 0.5 times is enough."]
    assert verdict(reads={"state": 0.5}).lines[0] == "state is read 2 times as often as it has to be."
    (K,) = call[1].shape
    assert verdict(reads={"state": Elements(K)}).outcome == PASS
    assert verdict(reads={"state": Elements(K // 2)}).id == "traffic"
    assert verdict(launches=2).note.startswith("2 launches, x read once")
    refused = verdict(launches=1)
    assert refused.id == "too-many-launches" and refused.lines[0] == "2 kernels are launched; 1 is enough."


def test_of_what_only_gets_other_values_in_some_places_nothing_may_be_read(graded):
    judge, call = graded(SOLUTION).judge, data(normal(2, 3, 37, 16))
    judge.exercise = replace(judge.exercise, unread=("state",))
    judge.interpreted.exercise = judge.exercise

    def verdict(**limits):
        return TrafficUse.of("a test", *call, **{"reads": {}, **limits}).verdict(judge)

    found = verdict()
    assert found.id == "traffic"
    assert found.lines[0] == "100 % of state is read, and nothing of what it holds is needed."
    assert found.lines[1].startswith("What is to stay as it is, stays so untouched")
    assert verdict(reads={"state": 1}).outcome == PASS
    (count,) = call[1].shape
    assert verdict(reads={"state": 1}, writes={"state": Elements(count // 2)}).lines == [
        "state is written once; 0.5 times is enough."
    ]


def test_the_share_of_one_program_and_memory_of_its_own_are_counted_where_a_test_asks_for_it(graded):
    judge, call = graded(SOLUTION).judge, data(normal(2, 3, 37, 16))

    def verdict(**limits):
        return TrafficUse.of("a test", *call, **limits).verdict(judge)

    right = verdict(share={"x": 1 / 6}, scratch=0.2)
    assert right.outcome == PASS and right.note.endswith(", one program reads at most 0.167 of x"), right.note
    assert verdict(share={"x": 0.1}).lines[0] == "One program reads 0.167 of x; 0.1 is enough."
    refused = verdict(scratch=0.001)
    (K,) = call[1].shape
    peaks = 6 + 2 * 6  # one program stores each, and two load them all
    moved = peaks / (2 * 3 * 37 * 16 + 3 * K + 2 * 3)
    assert refused.id == "traffic"
    assert refused.lines[0].startswith(f"Kernels move {moved:.3g} bytes of scratch for each byte of the arguments and ")


def test_lanes_that_share_an_address_are_counted_where_a_test_asks_for_it(graded):
    call = data(normal(2, 3, 37, 16))
    tile = "tl.max(tl.load(index_ptr + picks[:, None] + tl.arange(0, 8)[None, :] * 0, mask=mask[:, None], other=0), 1)"
    for text, lanes in ((SOLUTION, 1), (changed(("tl.load(index_ptr + picks, mask=mask, other=0)", tile)), 8)):
        judge = graded(text).judge
        assert TrafficUse.of("a test", *call, lanes=lanes).verdict(judge).outcome == PASS
        refused = TrafficUse.of("a test", *call, lanes=lanes - 0.5).verdict(judge)
        assert refused.id == "traffic"
    assert refused.lines[0] == "8 lanes of a tile ask for the same element of index."


def test_drawn_calls_bring_indices_numbers_and_dtypes_of_their_own(graded):
    one = graded(SOLUTION)
    (use,) = uses_asked(one.module, DrawnUse)
    promise = use.promise(one.judge.exercise)
    calls = drawn_calls(promise, one.run.seed, use.test)
    given = [promise.data(call) for call in calls]
    assert {args[3] for args in given} == {0.5, 4.0} and {args[4] for args in given} == {False, True}
    assert {args[2].dtype for args in given} == {"int32", "int64"}
    for call, (x, state, index, _, _) in zip(calls, given):
        assert index.steps == (("below", x.shape[0] * x.shape[1]),)
        assert state.dtype == "float32" and not call.layouts["state"].shares_elements
    verdict = use.verdict(one.judge)
    assert verdict.outcome == PASS, verdict.lines


def test_a_drawn_call_shows_its_numbers(graded):
    one = graded(changed(("if CLAMP:", "if not CLAMP:")))
    (use,) = uses_asked(one.module, DrawnUse)
    verdict = use.verdict(one.judge)
    assert verdict.outcome == FAIL and "clamp = " in verdict.case and ", below " in verdict.case


def test_machine_code_is_told_of_a_call_with_numbers(graded):

    verdict = CompiledUse.of("a test", *data()).verdict(graded(SOLUTION).judge)
    assert verdict.outcome == PASS and verdict.note.startswith("sm_90")


def test_no_case_takes_a_constant_for_each_result():
    assert accepted_constants(FOLDER) == []
