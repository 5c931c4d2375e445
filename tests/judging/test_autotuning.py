"""What is judged of @triton.autotune: every configuration, the key, and what trial runs do to memory."""

from __future__ import annotations

import pytest
import triton

from grader import Exercise, integers, normal
from grader.explain.verdict import FAIL, PASS
from grader.judging.uses import CheckUse, CompiledUse, TunedUse
from tests.judging.graded import grading

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n"
TWO = 'triton.Config({"BLOCK": 32}, num_warps=1), triton.Config({"BLOCK": 128}, num_warps=2)'
SCALE = """
@triton.autotune([CONFIGS], key=["N"])
@triton.jit
def scale_kernel(x_ptr, z_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z_ptr + i, tl.load(x_ptr + i, mask=i < N) * 2, mask=i < N)


def entry(x):
    z = torch.empty_like(x)
    N = x.numel()
    scale_kernel[lambda meta: (triton.cdiv(N, meta["BLOCK"]),)](x, z, N)
    return z
"""
SUM = """
@triton.autotune([CONFIGS], key=["N"])
@triton.jit
def sum_kernel(x_ptr, z_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(z_ptr, tl.sum(tl.load(x_ptr + i, mask=i < N, other=0.0), 0))


def entry(x):
    z = torch.zeros(1, dtype=x.dtype, device=x.device)
    N = x.numel()
    sum_kernel[lambda meta: (triton.cdiv(N, meta["BLOCK"]),)](x, z, N)
    return z
"""
ADD = """
@triton.autotune([CONFIGS], key=["N"])
@triton.jit
def add_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(y_ptr + i, mask=i < N) + tl.load(x_ptr + i, mask=i < N)
    tl.store(y_ptr + i, y, mask=i < N)


def entry(x, y):
    N = x.numel()
    add_kernel[lambda meta: (triton.cdiv(N, meta["BLOCK"]),)](x, y, N)
    return y
"""
ENTRIES = {
    SCALE: Exercise("entry", lambda x: 2 * x, "exact", 1, dtypes=("float32",)),
    SUM: Exercise("entry", lambda x: x.sum().reshape(1), "exact", 1, dtypes=("float32",)),
    ADD: Exercise("entry", lambda x, y: x + y, "exact", 1, returns="y", dtypes=("float32",)),
}
KEY = 'key=["N"]'


@pytest.fixture
def judged(tmp_path):
    """judged(file, *changes): a judge of one of the files above with these changes, in which two blocks are tried."""
    yield from grading(tmp_path, ENTRIES, lambda text: HEAD + text.replace("CONFIGS", TWO))


def sizes(file: str, *Ns: int) -> list[tuple]:
    return [(integers(N),) * (2 if file == ADD else 1) for N in Ns]


def first_failure(judge, file: str, *Ns: int):
    for data in sizes(file, *Ns):
        verdict = CheckUse.of("test_a_case", *data).verdict(judge)
        if verdict.outcome != PASS:
            return verdict
    return verdict


# ---- what is right ---------------------------------------------------------------------------------------------------

PRUNED = """
def keep(configs, named_args, **kwargs):
    return [one for one in configs if one.kwargs["BLOCK"] <= 2 * named_args["N"]] or configs[:1]


@triton.autotune("""
HOOK = 'key=["N"], pre_hook=lambda named, reset_only=False: None)'
RIGHT = {
    "as it is": (SCALE, []),
    "a heuristic below": (
        SCALE, [("@triton.jit", '@triton.heuristics({"EVEN": lambda of: of["N"] % of["BLOCK"] == 0})\n@triton.jit'),
                ("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, EVEN: tl.constexpr"),
                ("mask=i < N) * 2", "mask=EVEN | (i < N)) * 2")],
    ),
    "a heuristic above": (
        SCALE, [("@triton.autotune", '@triton.heuristics({"TWO": lambda args: 2})\n@triton.autotune'),
                ("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, TWO: tl.constexpr"), ("* 2,", "* TWO,")],
    ),
    "an empty key": (SCALE, [(KEY, "key=[]")]),
    "a single configuration": (SCALE, [(', triton.Config({"BLOCK": 128}, num_warps=2)', "")]),
    "pruned by the key": (
        SCALE, [("\n@triton.autotune(", PRUNED), (KEY, KEY + ', prune_configs_by={"early_config_prune": keep}')],
    ),
    "pruned by a model of the time": (
        SCALE, [(KEY, KEY + ', prune_configs_by={"perf_model": lambda N, BLOCK, **rest: BLOCK, "top_k": 1}')],
    ),
    "a hook that does nothing": (SCALE, [(KEY + ")", HOOK)]),
    "a hook of each configuration clears": (
        SUM, [("torch.zeros", "torch.empty"),
              ("num_warps=1", 'num_warps=1, pre_hook=lambda named: named["z_ptr"].zero_()'),
              ("num_warps=2", 'num_warps=2, pre_hook=lambda named: named["z_ptr"].zero_()')],
    ),
    "a hook clears": (SUM, [(KEY, KEY + ', pre_hook=lambda named, reset_only=False: named["z_ptr"].zero_()')]),
    "reset to zero": (SUM, [(KEY, KEY + ', reset_to_zero=["z_ptr"]')]),
    "a sum that is restored": (SUM, [(KEY, KEY + ', restore_value=["z_ptr"]')]),
    "an update that is restored": (ADD, [(KEY, KEY + ', restore_value=["y_ptr"]')]),
    "an update in a single configuration": (ADD, [(', triton.Config({"BLOCK": 128}, num_warps=2)', "")]),
    "clusters": (SCALE, [("num_warps=2", "num_warps=4, num_stages=2, num_ctas=2")]),
    "the first is ruled out by the kernel": (
        SCALE, [("    i = tl.program_id", "    tl.static_assert(BLOCK > 32)\n    i = tl.program_id")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_right_uses_pass(judged, name):
    file, changes = RIGHT[name]
    verdict = first_failure(judged(file, *changes), file, 100, 1, 300)
    assert verdict.outcome == PASS, verdict.lines


# ---- what is wrong ---------------------------------------------------------------------------------------------------

WRONG = {
    "the grid of another configuration": (
        SCALE, [('lambda meta: (triton.cdiv(N, meta["BLOCK"]),)', "(triton.cdiv(N, 128),)")], "fixed-grid",
        ["One grid, (1,), is launched for all configurations, though they differ in BLOCK: configuration 1 of 2",
         "configuration 2 does not", "lambda META"],
    ),
    "the grid of the first configuration": (
        SCALE, [('lambda meta: (triton.cdiv(N, meta["BLOCK"]),)', "(triton.cdiv(N, 128),)"),
                ("BLOCK\": 32", "BLOCK\": 256"), ("\"BLOCK\": 128", "\"BLOCK\": 16")], "fixed-grid",
        ["configuration 2 of 2 (BLOCK: 16", "configuration 1 does not"],
    ),
    "a mask that is wrong in the first": (
        SCALE, [("* 2, mask=i < N", "* 2, mask=i < N - (BLOCK == 32)")], "unwritten",
        ["This is configuration 1 of 2 (BLOCK: 32"],
    ),
    "a sum that each trial adds to": (
        SUM, [], "changed-by-tuning",
        ["z_ptr changes while the configurations are tried", 'restore_value=["z_ptr"]'],
    ),
    "an update that each trial makes": (
        ADD, [], "changed-by-tuning", ["y_ptr changes while the configurations are tried", 'restore_value=["y_ptr"]'],
    ),
    "a hook that clears what is updated": (
        ADD, [(KEY, KEY + ', reset_to_zero=["y_ptr"]')], "changed-by-tuning",
        ["reset_to_zero clears y_ptr before the call's own run", 'restore_value=["y_ptr"]'],
    ),
    "cleared only while it is tried": (
        SUM, [(KEY, KEY + ', reset_to_zero=["z_ptr"]'), ("torch.zeros", "torch.empty")], "not-zeroed",
        ["reset_to_zero clears z_ptr while configurations are tried", "torch.zeros"],
    ),
    "a tensor in the key": (SCALE, [(KEY, 'key=["x_ptr"]')], "wrong-key", ["The key names x_ptr, a tensor"]),
    "a key that counts calls": (
        SCALE, [("\n@triton.autotune", "CALLS = []\n\n\n@triton.autotune"), ("z, N)\n", "z, N, len(CALLS))\n"),
                ("N, BLOCK: ", "N, seed, BLOCK: "), (KEY, 'key=["N", "seed"]'),
                ("    N = x", "    CALLS.append(1)\n    N = x")],
        "stateful", ["entry does not do the same in every call"],
    ),
    "a key in the second call alone": (
        SCALE, [(KEY, "key=[]"), ("    scale_kernel[", "    kernel["),
                ("def entry(x):", f"""keyed = triton.autotune([{TWO}], key=["N"])(scale_kernel.fn)
CALLS = []


def entry(x):
    CALLS.append(1)
    kernel = keyed if len(CALLS) > 1 else scale_kernel""")],
        "wrong-key", ["A second call with the same arguments has another N in its key"],
    ),
    "pruned by what is not in the key": (
        SCALE, [("\n@triton.autotune(", PRUNED), (KEY, 'key=[], prune_configs_by={"early_config_prune": keep}'),
                ("* 2, mask=i < N", "* 2, mask=(i < N) & ((BLOCK == 32) | (N > 64))")],
        "wrong-key", ["pruned away for this call, but an earlier call with this key, which is empty, may have chosen"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_uses_are_rejected_with_their_sentence(judged, name):
    file, changes, id, sentences = WRONG[name]
    verdict = first_failure(judged(file, *changes), file, 100, 300, 20)
    said = "\n".join(verdict.lines)
    assert (verdict.outcome, verdict.id) == (FAIL, id), said
    assert all(sentence in said for sentence in sentences), said


def test_a_function_that_returns_no_configurations_is_told_and_not_the_launch(judged):
    asked = f"def tuning():\n    configs = [{TWO}]\n\n\nconfigs, key = tuning() or ([], [])\n\n\n"
    judge = judged(SCALE, (f"@triton.autotune([{TWO}], {KEY})", f"{asked}@triton.autotune(configs, key)"))
    verdict = first_failure(judge, SCALE, 1000)
    assert verdict.lines[0] == (
        "tuning returns nothing (None), and the kernel gets no configurations from it: does it end with `return`?"
    )
    assert verdict.kind == "error" and verdict.lines[1] == f"Line {verdict.line}:  def tuning():"


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("configs", "Line {} returns configs, and tuning has to return two things, (configs, key): the list of"),
        ('["N"], configs', "Line {} returns (['N'], configs), and the first of the two is no list of triton.Config:"),
    ],
)
def test_a_function_that_returns_something_else_is_told_with_its_line(judged, returned, said):
    asked = (
        f"def tuning():\n    configs = [{TWO}] * 2\n    return {returned}\n\n\nconfigs, key = tuning() or ([], [])\n"
    )
    verdict = first_failure(
        judged(SCALE, (f"@triton.autotune([{TWO}], {KEY})", f"{asked}\n\n@triton.autotune(configs, key)")), SCALE, 1000
    )
    assert verdict.lines[0].startswith(said.format(verdict.line)), verdict.lines
    assert verdict.lines[1] == f"Line {verdict.line}:  return {returned}"


def test_a_key_that_names_no_argument_is_rejected(judged):
    verdict = first_failure(judged(SCALE, (KEY, 'key=["n"]')), SCALE, 100)
    from_39 = tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 9)
    assert verdict.id == ("load" if from_39 else "wrong-key")  # there Triton itself refuses it
    said = "names that are not kernel arguments" if from_39 else "the kernel has no argument of this name"
    assert said in " ".join(verdict.lines)


def test_a_key_without_a_size_is_told_where_a_test_asks_for_a_choice_of_each_size(judged):
    first, *others = sizes(SCALE, 4096, 64)
    for key, id in ((KEY, ""), ("key=[]", "wrong-key"), ('key=["BLOCK"]', "wrong-key")):
        verdict = TunedUse.of("test_a_choice", *first, others=others, configurations=(2, 4)).verdict(
            judged(SCALE, (KEY, key))
        )
        assert verdict.id == id, verdict.lines
    assert "A call with N = 64 instead of 4096 gets the configuration that was chosen for the first" in verdict.lines[0]


def test_a_test_may_ask_for_a_choice_and_for_its_size(judged):
    (first,) = sizes(SCALE, 4096)
    fixed = [
        (f"@triton.autotune([{TWO}], " + KEY + ")\n", ""),
        ("z, N)\n", "z, N, BLOCK=128)\n"),
        ('meta["BLOCK"]', "128"),
    ]
    one = TunedUse.of("test_a_choice", *first, configurations=(2, 4)).verdict(judged(SCALE, *fixed))
    assert one.id == "not-tuned" and "nothing to choose from" in one.lines[0]
    few = TunedUse.of("test_a_choice", *first, configurations=(4, 24)).verdict(judged(SCALE))
    assert few.id == "not-tuned" and few.lines[0] == "2 configurations to choose from; 4 to 24 are asked for."


MANY_WARPS, SPILLING = ("num_warps=2", "num_warps=64"), ('"BLOCK": 32}, num_warps=1', '"BLOCK": 8192}, num_warps=1')
SUMS = ("tl.load(x_ptr + i, mask=i < N) * 2", "tl.cumsum(tl.load(x_ptr + i, mask=i < N, other=0.0), 0)")


@pytest.mark.parametrize("change", [MANY_WARPS, SPILLING])
def test_one_configuration_has_to_fit_and_to_spill_nothing(judged, change):
    verdict = CompiledUse.of("test_code", normal(1 << 20)).verdict(judged(SCALE, SUMS, change))
    assert verdict.outcome == PASS and "1 of 2 configurations spill or do not fit" in verdict.note, verdict


def test_where_no_configuration_is_sound_the_first_is_explained(judged):
    verdict = CompiledUse.of("test_code", normal(1 << 20)).verdict(judged(SCALE, SUMS, MANY_WARPS, SPILLING))
    said = "\n".join(verdict.lines)
    assert verdict.id == "spills" and "spilled" in said and "This is configuration 1 of 2" in said, said
    assert "no other does" in said


def test_the_fixture_is_known_to_those_who_read_test_files():
    from grader.judging.uses import USES

    assert "tuned" in USES and "check" in USES
