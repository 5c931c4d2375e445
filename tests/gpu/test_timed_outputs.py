"""What is timed is verified, against inputs that no kernel can reach. On the CPU, torch playing the kernel."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from grader.course.folder import Folder, all_folders, load_test_file
from grader.course.trial import trial_of
from grader.course.wanted_results import wanted_of
from grader.gpu.device import Device, device_here
from grader.gpu.inside.guarded_buffers import Buffers
from grader.gpu.plan import Plan, PlannedBuffer, PlannedView
from grader.judging.gate_measurement import timed_calls
from grader.numerics.bounds import Bound, RoundingModel, tolerance
from grader.numerics.data_sets import Data, normal, with_some
from grader.numerics.rounding_models import PRODUCT, SOFTMAX
from grader.numerics.roundoff import EXACT, U32
from grader.wire.reply import spec_of
from tests.conftest import ROOT

measuring = pytest.importorskip("grader.gpu.inside.measuring", exc_type=ImportError)  # wants cuda-bindings
N = 1000


class Timed:
    """An add of two arguments, on two sets of buffers."""

    def __init__(self, data: Data | None = None) -> None:
        data = data or normal(N)
        exercise = load_test_file(Folder(ROOT / "exercises" / "01_masked_add")).exercise
        specs = [spec_of(name, normal(N).shape_on("meta", torch.float32)) for name in ("x", "y")]
        buffers = [
            PlannedBuffer("x", True, 4 * N),
            PlannedBuffer("y", True, 4 * N),
            PlannedBuffer("allocation2", False, 4 * N),
        ]
        self.plan = Plan(buffers, results={"z": PlannedView(2, 0, "float32", [N], [1])})
        self.speed = measuring.SpeedRequest(
            exercise, {"z": "exact"}, [data] * 2, torch.float32, specs, "copy", seed=5, device="cpu"
        )
        self.slots = [Buffers(self.plan, device="cpu") for _ in range(2)]
        self.chain = measuring.plan_chain(self.plan, None, self.speed, self.slots)

    def tensors(self, slot: int) -> tuple[torch.Tensor, ...]:
        buffers = self.slots[slot]
        x, y = (buffers.argument(number, spec) for number, spec in enumerate(self.speed.arguments))
        return x, y, buffers.view(self.plan.results["z"])

    def add(self) -> None:
        for slot in range(2):
            x, y, z = self.tensors(slot)
            z.copy_(x + y)


@pytest.fixture
def timed() -> Timed:
    found = Timed()
    found.chain.refresh()
    return found


def test_a_right_result_of_every_call_is_right(timed):
    timed.add()
    assert timed.chain.verify() == ""


def test_a_right_result_is_right_where_a_quick_look_cannot_tell():
    timed = Timed(with_some(torch.nan, normal(N)))
    timed.chain.refresh()
    timed.add()
    assert bool(timed.tensors(0)[2].isnan().any()) and timed.chain.verify() == ""
    x, _, z = timed.tensors(0)
    z[int(x.isnan().nonzero()[0])] = 0.0
    assert timed.chain.verify() == "an output of a timed call is wrong"


def quick_look(id: str, dtype: torch.dtype, bound: Bound, change: Callable[[torch.Tensor], None]) -> bool:
    """Whether a quick look is enough for the exact result, rounded once to this dtype and then changed."""
    exercise, seed = load_test_file(Folder(ROOT / "exercises" / id)).exercise, 7
    data = {"01_masked_add": [normal(N)] * 2, "04_transpose": [normal(30, 50)], "03_softmax": [normal(30, 50)]}
    data |= {"05_grouped_matmul": [normal(30, 300), normal(300, 50)]}
    specs = [spec_of("x", one.shape_on("meta", dtype)) for one in data[id]]
    buffers = [PlannedBuffer("x", True, spec.size) for spec in specs]
    (name,) = (result.name for result in exercise.results)
    speed = measuring.SpeedRequest(exercise, {name: bound}, data[id], dtype, specs, "copy", seed=5, device="cpu")
    result = exercise.reference(*measuring._drawn_again(speed, seed, torch.float64)).to(dtype).contiguous()
    change(result)
    buffers.append(PlannedBuffer("allocation", False, result.numel() * dtype.itemsize))
    view = PlannedView(len(specs), 0, str(dtype).removeprefix("torch."), list(result.shape), list(result.stride()))
    plan = Plan(buffers, results={name: view})
    held = Buffers(plan, device="cpu")
    held.view(view).copy_(result)
    looked = bool(measuring._surely_clean(plan, speed, held, seed))
    assert not looked or measuring._complaint(plan, speed, held, seed) == ""
    return looked


LOOKED_AT = [
    ("01_masked_add", torch.float32, "exact"),
    ("01_masked_add", torch.float16, "exact"),
    ("01_masked_add", torch.float64, "exact"),
    ("04_transpose", torch.bfloat16, "bits"),
    ("03_softmax", torch.float32, SOFTMAX),
    ("03_softmax", torch.float16, SOFTMAX),
    ("03_softmax", torch.float64, SOFTMAX),
    ("05_grouped_matmul", torch.float32, PRODUCT),
    ("05_grouped_matmul", torch.float16, PRODUCT),
    ("05_grouped_matmul", torch.bfloat16, PRODUCT),
]


@pytest.mark.parametrize("id, dtype, bound", LOOKED_AT)
def test_a_quick_look_is_enough_for_a_right_result(id, dtype, bound):
    assert quick_look(id, dtype, bound, lambda result: None)


@pytest.mark.parametrize("id, dtype, bound", LOOKED_AT)
def test_a_quick_look_sees_one_wrong_element(id, dtype, bound):
    def change(result: torch.Tensor) -> None:
        result.view(-1)[result.abs().argmax()] *= 1 + max(40 * torch.finfo(dtype).eps, 1e-3)

    assert not quick_look(id, dtype, bound, change)


TIMED = [(folder.id, number) for folder in all_folders(ROOT) for number, _ in enumerate(timed_calls(folder))]


@pytest.mark.skipif(not isinstance(device_here(), Device), reason="needs a GPU")
@pytest.mark.parametrize("id, number", TIMED)
def test_what_a_quick_look_expects_has_half_of_the_error_that_arithmetic_may_make(id, number):
    """The other half is the result's: so what passes lies within the bound of the exact result."""
    folder = Folder(ROOT / "exercises" / id)
    exercise, call = load_test_file(folder).exercise, timed_calls(folder)[number]
    trial = trial_of(exercise, call.test, call.data, exercise.dtypes[0])
    specs = [spec_of("x", one.shape_on("meta", trial.dtype)) for one in call.data if isinstance(one, Data)]
    speed = measuring.SpeedRequest(exercise, trial.bounds, list(call.data), trial.dtype, specs, "copy", seed=5)
    quick, exact = (measuring._drawn_again(speed, 7, precision) for precision in (torch.float32, torch.float64))
    with measuring.tensor_cores(measuring.are_exact(exercise, trial.dtype)):
        expected = exercise.expected(quick)
    shares = {}
    for one, mine, ref in zip(wanted_of(trial), expected, exercise.expected(exact), strict=True):
        if one.bound in EXACT:
            continue
        allowed = tolerance(one.bound, exact, ref, torch.float64)
        error = (mine.double() - ref).abs()
        share = float(torch.where(error == 0, 0.0, error / allowed).max())  # of a 0 nothing is allowed to be lost
        print(f"{id} {one.name} {trial.dtype}: {share:.3f} of what arithmetic may add")
        shares[one.name] = share
    assert not shares or max(shares.values()) < 0.5, shares
    del quick, exact, expected
    torch.cuda.empty_cache()  # other tests run beside this one


def test_a_result_that_was_not_written_is_wrong(timed):
    assert timed.chain.verify() == "an output of a timed call is wrong"


def test_one_wrong_element_of_one_call_is_enough(timed):
    timed.add()
    timed.tensors(1)[2][77] += 1
    assert timed.chain.verify() == "an output of a timed call is wrong"


def test_within_a_bound_it_is_said_how_far_a_wrong_element_is_off(timed):
    timed.speed.bounds["z"] = RoundingModel(lambda z, x, y: U32 * (x.abs() + y.abs()))
    timed.add()
    timed.tensors(1)[2][77] += 1
    said = re.fullmatch(r"an output of a timed call is wrong: it is off by (\S+) times .*", timed.chain.verify())
    assert said and float(said[1]) > 1e5


def test_inputs_changed_so_that_the_result_fits_are_of_no_use(timed):
    for slot in range(2):
        for tensor in timed.tensors(slot):
            tensor.zero_()
    assert timed.chain.verify() == "an output of a timed call is wrong"


def test_a_result_of_the_round_before_is_wrong(timed):
    timed.add()
    kept = [timed.tensors(slot)[2].clone() for slot in range(2)]
    timed.chain.refresh()
    assert bool(timed.tensors(0)[2].isnan().all())
    for slot in range(2):
        timed.tensors(slot)[2].copy_(kept[slot])
    assert timed.chain.verify() == "an output of a timed call is wrong"


def test_inputs_differ_between_calls_and_rounds(timed):
    first = [timed.tensors(slot)[0].clone() for slot in range(2)]
    timed.chain.refresh()
    second = [timed.tensors(slot)[0] for slot in range(2)]
    assert not any(torch.equal(a, b) for a in first for b in [*second, *first] if a is not b)


def test_a_byte_beside_a_buffer_is_told(timed):
    timed.add()
    timed.slots[1].memory[0][timed.slots[1].starts[0] + 4 * N] = 1
    assert timed.chain.verify() == "a timed call wrote outside of x"


def test_a_call_moves_each_element_once():
    timed = Timed()
    assert measuring.least_bytes(timed.plan, timed.speed.arguments, timed.speed.exercise) == 12 * N


# ---- large results, compared where they are --------------------------------------------------------------------------


@pytest.fixture
def checking(monkeypatch):
    """In parts of 300 elements."""
    monkeypatch.setattr("grader.gpu.inside.checking.MOST_COMPARED", 300)
    return pytest.importorskip("grader.gpu.inside.checking", exc_type=ImportError)


def test_a_large_result_is_compared_on_inputs_drawn_anew(checking):
    timed, seeds = Timed(), [3, 4]
    data, specs = timed.speed.all_stated, timed.speed.arguments
    checking.drawn(data, specs, seeds, "cpu")(timed.slots[0])
    x, y, z = timed.tensors(0)
    z.copy_(x + y)

    def summary():
        return checking.compared(timed.speed.exercise, {"z": "exact"}, {"z": z}, data, torch.float32, seeds)["z"]

    assert summary().wrong == 0
    x.zero_()
    y.zero_()
    assert summary().wrong == 0  # what the result was made of counts, not what the buffers hold now
    z[617] += 5
    z[618:].view(torch.int32).fill_(-1)
    found = summary()
    assert (found.first, found.wrong, found.unwritten) == ([617], N - 617, N - 618)
    assert float(found.found) - float(found.expected) == pytest.approx(5, rel=1e-4)
    assert found.elements == N and found.largest_error == 1e300
    z.view(torch.int32).fill_(-1)
    found = summary()
    assert found.wrong == found.unwritten == N and found.first == [0] and found.found == "nan"


@pytest.mark.parametrize(
    "id, bound, shapes",
    [("03_softmax", SOFTMAX, [(40, 50)]), ("05_grouped_matmul", PRODUCT, [(40, 30), (30, 20)])],
)
def test_rows_are_held_to_the_bound_of_their_own_inputs(checking, id, bound, shapes):
    exercise, data = load_test_file(Folder(ROOT / "exercises" / id)).exercise, [normal(*shape) for shape in shapes]
    seeds = list(range(len(data)))
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    inputs = [one.tensor(torch.float32, generator, torch.float32) for one, generator in zip(data, generators)]
    out = exercise.reference(*inputs)

    (name,) = (result.name for result in exercise.results)

    def found():
        return checking.compared(exercise, {name: bound}, {name: out}, data, torch.float32, seeds)[name]

    assert found().wrong == 0 and 0 < found().largest_error < 0.5
    out[33, 7] *= 1.001
    assert found().first == [33, 7]


def test_a_number_and_a_row_seen_many_times_are_compared(checking):
    add = load_test_file(Folder(ROOT / "exercises" / "01_masked_add")).exercise
    one = normal(1)
    value = one.tensor(torch.float64, torch.Generator().manual_seed(1))

    def wrong(reference: Callable, out: torch.Tensor) -> int:
        exercise = replace(add, reference=reference)
        return checking.compared(exercise, {"z": "exact"}, {"z": out}, [one], torch.float64, [1])["z"].wrong

    assert wrong(lambda x: x[0], value[0].clone()) == 0 and wrong(lambda x: x[0], value[0] + 1) == 1
    assert wrong(lambda x: x.expand(1000, 2), value.expand(1000, 2).clone()) == 0


def test_what_differs_between_repeats_is_counted_in_every_part(checking):
    one = torch.zeros(1000)
    other = one.clone()
    other[[3, 650, 999]] = -0.0
    assert checking._differing(one, other) == 3 and checking._differing(one[0], other[3]) == 1
    assert checking._differing(one, one) == 0
