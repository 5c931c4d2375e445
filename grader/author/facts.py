"""Facts that prove the answers of a lesson's questions: about a call of the solution or a mutant, about its machine
code, about a number, or kept figures.

A question's `proof` is a table that names a fact and its subject:

    { fact = "programs" }                            programs of all launches; `launch = 2`: of the second alone
    { fact = "launches" }                            launches of the call
    { fact = "idle" }                                programs that load and store nothing
    { fact = "loads", of = "x" }                     bytes that are loaded of x, divided by the bytes of x
    { fact = "stores", of = "z" }                    bytes that are stored to z, divided by the bytes of z
    { fact = "bytes" }                               bytes that are loaded and stored, of all tensors
    { fact = "masked", of = "x", program = [2] }     lanes that are masked off in the program's first access to x
    { fact = "first", of = "x", program = [2] }      the least element number that this access touches
    { fact = "value", of = "m", program = [0] }      a variable's number in lane 0 at the end; `lane = 3`: in lane 3;
                                                     `iteration = 2`: after iteration 2 of the first loop
    { fact = "result", of = "z", at = [0, 1] }       an element of a result
    { fact = "wrong", of = "z" }                     elements of a result that the reference contradicts
    { fact = "width", of = "load" }                  bytes that a thread moves in the narrowest "load", or "store"
    { fact = "instructions", of = "ex2" }            instructions of the PTX whose name begins so
    { fact = "versions", calls = [{ ... }, ...] }    compiled versions of the kernel that these calls need
    { fact = "rounded", number = 257, dtype = "bfloat16" }    what a number becomes in a dtype of torch
    { fact = "faster", rungs = ["one", "two"] }      0 or 1: which rung of the ladder was measured as the faster
    { fact = "times faster", rungs = ["one", "two"] }    the second rung's speed, divided by the first rung's

    { fact = "answer", seconds = 3e-5, gpu = { launch = 2e-5 } }    microseconds that an entry answers that measures, on
                                                     a simulated GPU with these of its traits

The call is the exercise's small example, or is stated as `call = { x = [[1, 2, 3]], BLOCK_N = 4 }`. This gives for
each argument its numbers, or its shape as "3 x 5", for which whole numbers are drawn, or "none" to leave out an option;
and constants of the file. `dtype = "float16"` replaces the exercise's first dtype; `mutant = "name"` the solution. A
page without an exercise says which one is meant: `exercise = "01_masked_add"`.
"""

from __future__ import annotations

import json
import math
import random
import re
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from grader.course.folder import Folder, load_test_file

if TYPE_CHECKING:
    import torch

    from grader.course.exercise import Exercise
    from grader.course.trial import Trial
    from grader.gpu.plan import Plan
    from grader.judging.run import Run
    from grader.numerics.arguments import DataOrNumber
    from grader.wire.messages import LoggedAccess
    from grader.wire.reply import Reply

SEED = 0
WRONG = 0.01  # absolute and relative tolerance: a wrong element of a question differs by more than rounding
NONE = "none"  # stands for an option that a call leaves out
SHAPE = re.compile(r"\d+(?: x \d+)*")
INSTRUCTION = re.compile(r"^\s*(?:@!?%p\d+\s+)?([a-z][\w.:]*)\s", re.MULTILINE)  # a row of PTX
OF_FILE = frozenset({"exercise", "dtype", "mutant"})
OF_CALL = OF_FILE | {"call"}
FIELDS = {  # for each fact, the fields that it needs, and the fields that it may have
    "programs": (frozenset(), OF_CALL | {"launch"}),
    "launches": (frozenset(), OF_CALL),
    "idle": (frozenset(), OF_CALL),
    "bytes": (frozenset(), OF_CALL),
    "loads": (frozenset({"of"}), OF_CALL),
    "stores": (frozenset({"of"}), OF_CALL),
    "masked": (frozenset({"of", "program"}), OF_CALL | {"launch"}),
    "first": (frozenset({"of", "program"}), OF_CALL | {"launch"}),
    "value": (frozenset({"of", "program"}), OF_CALL | {"launch", "iteration", "lane"}),
    "result": (frozenset({"of", "at"}), OF_CALL),
    "wrong": (frozenset({"of"}), OF_CALL),
    "width": (frozenset({"of"}), OF_CALL),
    "instructions": (frozenset({"of"}), OF_CALL),
    "versions": (frozenset({"calls"}), OF_FILE),
    "rounded": (frozenset({"number", "dtype"}), frozenset()),
    "answer": (frozenset({"seconds"}), frozenset({"gpu", "mutant"})),
    "faster": (frozenset({"rungs"}), frozenset({"exercise"})),
    "times faster": (frozenset({"rungs"}), frozenset({"exercise"})),
}


class NoFact(Exception):
    """A proof from which no answer follows; the message says why."""


@dataclass(frozen=True)
class ExaminedCall:
    """A call whose facts are asked for: the trial, its inputs, and the interpreter's reply."""

    run: Run
    trial: Trial
    inputs: list
    reply: Reply


def fact_of(folder: Folder, proof: dict) -> float:
    """Returns the number that a proof names. Raises NoFact."""
    fact, stated = proof.get("fact"), proof.keys() - {"fact"}
    if fact not in FIELDS:
        raise NoFact(f"no proof tells the fact {fact!r}; there are {', '.join(FIELDS)}")
    needed, possible = FIELDS[fact]
    if not needed <= stated <= needed | possible:
        raise NoFact(f"the fact {fact!r} needs {sorted(needed)}, may have {sorted(possible)} and has {sorted(stated)}")
    if fact == "rounded":
        return _rounded(proof["number"], proof["dtype"])
    folder = _exercise(folder, proof.get("exercise", folder.id))
    if "rungs" in needed:
        return _of_ladder(folder, fact, proof["rungs"])
    with tempfile.TemporaryDirectory() as scratch:
        submission = _submission(folder, proof.get("mutant", ""), Path(scratch))
        if fact == "answer":
            return _answer(folder, proof["seconds"], proof.get("gpu", {}), submission)
        return _of_call(folder, fact, proof, submission)


def _exercise(folder: Folder, id: str) -> Folder:
    found = Folder(folder.path.with_name(id))
    if not found.is_exercise:
        raise NoFact(f'{id} is no exercise: a page\'s proof names one, as `exercise = "01_masked_add"`')
    return found


def _submission(folder: Folder, mutant: str, scratch: Path) -> str:
    from grader.author.mutants import BadMutant, mutant_of

    if not mutant:
        return "solutions"
    path = scratch / f"{folder.name}.py"
    try:
        path.write_text(mutant_of(folder, mutant).text, encoding="utf-8")
    except (KeyError, BadMutant) as error:
        raise NoFact(str(error).strip("\"'")) from None
    return str(path)


# ---- numbers ---------------------------------------------------------------------------------------------------------


def _rounded(number: float, dtype: str) -> float:
    import torch

    kind = getattr(torch, dtype, None)
    if not isinstance(kind, torch.dtype):
        raise NoFact(f"{dtype!r} is no dtype of torch")
    return float(torch.tensor(number, dtype=torch.float32).to(kind))


def _answer(folder: Folder, seconds: float, traits: dict[str, float], submission: str) -> float:
    from grader.gpu.simulated_gpu import SimulatedGpu, drawn_traits
    from grader.judging.run import Run

    run = Run(folder, submission, SEED)
    gpu = SimulatedGpu(replace(drawn_traits(random.Random(SEED)), **traits), seconds, SEED)
    try:
        answer = run.measured(load_test_file(folder).exercise.entry, gpu)
    finally:
        run.end()
    if answer.seconds is None:
        raise NoFact("the entry answers no time")
    return answer.seconds * 1e6


# ---- kept figures ----------------------------------------------------------------------------------------------------


def _of_ladder(folder: Folder, fact: str, rungs: list[str]) -> float:
    shares = figures_of(folder)
    if unknown := [rung for rung in rungs if rung not in shares]:
        raise NoFact(f"{folder.id} has no figures of the rung {unknown[0]!r}; there are {', '.join(shares) or 'none'}")
    first, second = (shares[rung] for rung in rungs)
    return float(second > first) if fact == "faster" else second / first


def figures_of(folder: Folder) -> dict[str, float]:
    """Returns the share of the anchor's speed that each measured rung of the ladder reaches, by the rung's name."""
    path = folder.solution_file.with_name("ladder.json")
    rungs = json.loads(path.read_text(encoding="utf-8"))["rungs"] if path.exists() else {}
    return {name: figures["share"] for name, figures in rungs.items() if figures["share"]}


# ---- calls -----------------------------------------------------------------------------------------------------------


def _of_call(folder: Folder, fact: str, proof: dict, submission: str) -> float:
    from grader.judging.run import Run

    run = Run(folder, submission, SEED)
    exercise = load_test_file(folder).exercise
    try:
        if fact in TOLD_OF_CODE:
            calls = [{**proof, "call": call} for call in proof["calls"]] if "calls" in proof else [proof]
            plans = [_compiled(run, exercise, one) for one in calls]
            return TOLD_OF_CODE[fact](run, plans, proof)
        return TOLD[fact](_carried_out(run, exercise, fact, proof), proof)
    finally:
        run.end()


def _carried_out(run: Run, exercise: Exercise, fact: str, proof: dict) -> ExaminedCall:
    from grader.gpu.plan import BadPlan
    from grader.processes.faults import ChildEnded

    trial, inputs = _trial(exercise, proof, run)
    traced = [*proof["program"]] if fact == "value" else None
    options = {"traced": traced} if traced is not None else {"log_accesses": True, "count_traffic": True}
    try:
        reply = run.call(trial, inputs, fill="zero", **options)
    except (ChildEnded, BadPlan) as error:
        raise NoFact(f"the call does not come to its end: {error}") from None
    failure = run.process.load_failure or reply.error
    if failure is not None:
        raise NoFact(f"the call ends in line {failure.line}: {failure.message}")
    return ExaminedCall(run, trial, inputs, reply)


def _trial(exercise: Exercise, proof: dict, run: Run) -> tuple[Trial, list]:
    """Returns the call that a proof states as a trial, and its arguments. Raises NoFact."""
    from grader.course.trial import Trial
    from grader.wire.reply import DTYPES

    example, stated = exercise.example, dict(proof.get("call", {}))
    dtype = DTYPES.get(proof.get("dtype", exercise.dtypes[0]))
    if dtype is None or not isinstance(proof.get("call", {}), dict):
        raise NoFact("`dtype` names a dtype of torch, and `call` is a table")
    constants = {name: stated.pop(name) for name in list(stated) if name.isupper()}
    if not stated:
        if example is None:
            raise NoFact("the exercise has no small example: state `call`")
        data, constants = list(example.data), {**example.constants, **constants}
    else:
        data = _stated_data(exercise, stated)
    trial = Trial(exercise, "question", tuple(data), dtype, exercise.bound, constants, small_dots=True)
    return trial, _with_stated_values(trial, run.inputs(trial), stated)


def _stated_data(exercise: Exercise, stated: dict) -> list[DataOrNumber]:
    from grader.numerics.data_sets import integers

    if missing := [name for name in exercise.arguments if name not in stated]:
        raise NoFact(f"`call` states no {missing[0]}; the arguments are {', '.join(exercise.arguments)}")
    if unknown := sorted(stated.keys() - set(exercise.arguments)):
        raise NoFact(f"`call` states {unknown[0]}, which is no argument; they are {', '.join(exercise.arguments)}")
    in_example = exercise.example.data if exercise.example else [None] * len(exercise.arguments)
    found: list[DataOrNumber] = []
    for name, known in zip(exercise.arguments, in_example):
        value, dtype = stated[name], getattr(known, "dtype", "")  # indices are whole numbers in every run
        if isinstance(value, str) and SHAPE.fullmatch(value):
            found.append(integers(*map(int, value.split(" x "))).of(dtype))
        elif isinstance(value, list):
            found.append(integers(*_shape_of(value)).of(dtype))
        elif value == NONE:
            found.append(None)
        elif isinstance(value, int | float):
            found.append(value)
        else:
            raise NoFact(f"`call`: {name} is a list of numbers, a number without quotes, or a shape such as '3 x 5'")
    return found


def _shape_of(values: object) -> tuple[int, ...]:
    return (len(values), *_shape_of(values[0] if values else 0)) if isinstance(values, list) else ()


def _with_stated_values(trial: Trial, inputs: list, stated: dict) -> list:
    import torch

    from grader.numerics.data_sets import Data

    found = []
    for name, data, drawn in zip(trial.arguments, trial.data, inputs):
        value = stated.get(name)
        if isinstance(value, list) and isinstance(data, Data):
            drawn = data.holding(torch.tensor(value), trial.dtype)
        found.append(drawn)
    return found


# ---- facts of a call -------------------------------------------------------------------------------------------------


def _programs(call: ExaminedCall, proof: dict) -> float:
    launches = call.reply.launches
    if "launch" in proof:
        launches = launches[proof["launch"] - 1 : proof["launch"]]
    if not launches:
        raise NoFact("the call has no such launch")
    return sum(math.prod(launch.grid) for launch in launches)


def _launches(call: ExaminedCall, proof: dict) -> float:
    return len(call.reply.launches)


def _idle(call: ExaminedCall, proof: dict) -> float:
    return sum(launch.idle for launch in call.reply.launches)


def _loads(call: ExaminedCall, proof: dict) -> float:
    return _times(call, proof["of"], "read")


def _stores(call: ExaminedCall, proof: dict) -> float:
    return _times(call, proof["of"], "written")


def _times(call: ExaminedCall, name: str, direction: str) -> float:
    of = [one for one in call.reply.traffic if one.argument == name]
    if not of or not of[0].size:
        raise NoFact(f"no traffic of {name} was counted")
    return sum(getattr(one, direction) for one in of) / of[0].size


def _bytes(call: ExaminedCall, proof: dict) -> float:
    return sum(one.read + one.written for one in call.reply.traffic)


def _masked(call: ExaminedCall, proof: dict) -> float:
    return sum(element < 0 for element in _first_access(call, proof).elements)


def _first(call: ExaminedCall, proof: dict) -> float:
    touched = [element for element in _first_access(call, proof).elements if element >= 0]
    if not touched:
        raise NoFact(f"program {proof['program']} touches nothing of {proof['of']}")
    return min(touched)


def _first_access(call: ExaminedCall, proof: dict) -> LoggedAccess:
    wanted, launch = (proof["of"], _padded(proof["program"])), proof.get("launch", 1) - 1
    from grader.interpreter.access_log import MOST_LANES

    for access in call.reply.accesses:
        if (access.argument, _padded(access.program)) == wanted and access.launch == launch:
            if len(access.elements) >= MOST_LANES:
                raise NoFact(f"a trace keeps {MOST_LANES} lanes of an access: state smaller blocks")
            return access
    raise NoFact(f"program {proof['program']} does not touch {proof['of']}")


def _padded(program: list[int]) -> tuple[int, ...]:
    return (*program, 0, 0)[:3]


def _value(call: ExaminedCall, proof: dict) -> float:
    programs = call.reply.traced
    launch = proof.get("launch", 1) - 1
    if launch >= len(programs):
        raise NoFact("the call has no such launch")
    held = _held(programs[launch].steps, proof["of"], proof.get("iteration"))
    if not held:
        raise NoFact(f"no variable {proof['of']} was seen there")
    lane = proof.get("lane", 0)
    if lane >= len(held):
        raise NoFact(f"{proof['of']} has {len(held)} lanes")
    return float(held[lane])


def _held(steps: list, variable: str, iteration: int | None) -> list[str]:
    """Returns the numbers that a variable held last, up to the end of an outermost loop's iteration; [] for none."""
    found: list[str] = []
    for step in steps:
        if iteration is not None and step.kind == "iteration" and step.depth == 1 and step.iteration > iteration:
            break
        if step.variable == variable and step.numbers and step.kind != "store":
            found = step.numbers
    return found


def _result(call: ExaminedCall, proof: dict) -> float:
    try:
        return float(_output(call, proof["of"])[tuple(proof["at"])])
    except (IndexError, RuntimeError, ValueError):
        raise NoFact(f"{proof['of']} has no element {proof['at']}") from None


def _output(call: ExaminedCall, name: str) -> torch.Tensor:
    if name not in call.reply.outputs:
        raise NoFact(f"{name} is no result; they are {', '.join(call.reply.outputs)}")
    return call.reply.outputs[name]


def _wrong(call: ExaminedCall, proof: dict) -> float:
    import torch

    from grader.numerics.arguments import exact

    found = _output(call, proof["of"]).double()
    results = [one.name for one in call.trial.exercise.results]
    expected = call.trial.exercise.expected(exact(call.inputs))[results.index(proof["of"])].double()
    close = torch.isclose(found, expected, rtol=WRONG, atol=WRONG, equal_nan=True)
    return int((~close).sum())


TOLD = {
    "programs": _programs, "launches": _launches, "idle": _idle, "loads": _loads, "stores": _stores, "bytes": _bytes,
    "masked": _masked, "first": _first, "value": _value, "result": _result, "wrong": _wrong,
}  # fmt: skip


# ---- facts of machine code -------------------------------------------------------------------------------------------


def _compiled(run: Run, exercise: Exercise, proof: dict) -> Plan:
    """Returns the launches of a call with their kernels, compiled and not run. Raises NoFact."""
    from grader.gpu.plan import BadPlan
    from grader.processes.faults import ChildEnded

    trial, _ = _trial(exercise, proof, run)
    try:
        plan = run.launch_plan(trial, ("ttir", "ttgir", "ptx")).plan
    except (ChildEnded, BadPlan) as error:
        raise NoFact(f"the call does not compile: {error}") from None
    failure = run.process.load_failure or plan.error
    if failure is not None:
        raise NoFact(f"the call ends in line {failure.line}: {failure.message}")
    return plan


def _width(run: Run, plans: list[Plan], proof: dict) -> float:
    from grader.gpu.compiled_facts import facts_of

    accesses = [one for kernel in plans[0].kernels for one in facts_of(kernel, run.filename).accesses]
    widths = [one.bytes for one in accesses if one.kind == proof["of"]]
    if not widths:
        raise NoFact(f"the machine code has no {proof['of']!r}: `of` is load or store")
    return min(widths)


def _instructions(run: Run, plans: list[Plan], proof: dict) -> float:
    rows = "\n".join(kernel.texts["ptx"] for kernel in plans[0].kernels)
    return sum(name.startswith(proof["of"]) for name in INSTRUCTION.findall(rows))


def _versions(run: Run, plans: list[Plan], proof: dict) -> float:
    return len({kernel.texts["ttir"] for plan in plans for kernel in plan.kernels})


TOLD_OF_CODE = {"width": _width, "instructions": _instructions, "versions": _versions}
