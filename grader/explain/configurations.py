"""Explains mistakes in the configurations of an autotuned kernel, or in the choice among them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, zip_longest

from grader.explain.causes import Cause
from grader.explain.verdict import Verdict, failed
from grader.sentences import Said, Sentence
from grader.submission.text import Submission
from grader.submission.tuning_lines import (
    function_of_key,
    line_of_config,
    line_of_configs,
    line_of_grid,
    line_of_key,
    name_of_pruning,
)
from grader.wire.recorded_call import RecordedCall, RecordedParameter
from grader.wire.recorded_parts import Choice, PlannedLaunch, Sequence, Tuning

# Causes that show with a configuration whose blocks do not suit the grid.
OF_ANOTHER_GRID = (Cause.UNWRITTEN, Cause.DOUBLE_WRITE)
OF_MEMORY_NOT_CLEARED = (Cause.NOT_ZEROED, Cause.UNINITIALISED_READ)


class Configurations(Sentence):
    """Sentences about configurations; {config} holds the settings of a configuration: "BLOCK_N: 64, num_warps: 4"."""

    ONE = "This is configuration {number} of {among} ({config}). The fastest one is used, and that may be any."
    ONE_AFTER_RIGHT_ONES = (
        "This is configuration {number} of {among} ({config}); those before it are right. The fastest one is used, and "
        "that may be any."
    )
    FIXED_GRID = (
        "One grid, {grid}, is launched for all configurations, though they differ in {names:,}: configuration {number} "
        "of {count} ({config}) goes wrong with it, configuration {right} does not."
    )
    ADVICE_GRID = (
        "A grid that counts blocks is a function of the configuration: kernel[lambda META: (triton.cdiv(N, "
        'META["BLOCK_N"]),)](...).'
    )

    # The key.
    KEY_OF_NO_ARGUMENT = (
        "The key names {name}, and the kernel has no argument of this name: Triton leaves it out, and a choice made "
        "for one size is used for all."
    )
    ADVICE_NAMES = "Names in the key are written as in the kernel's signature."
    KEY_OF_A_TENSOR = (
        "The key names {name}, a tensor: each call brings another one, and all configurations are tried again in every "
        "call."
    )
    ADVICE_SIZES = "Name the sizes that the choice depends on."
    KEY_OF_ITS_OWN = (
        "A second call with the same arguments has another {name} in its key: all configurations are tried again."
    )
    ADVICE_SHAPES = "What is in the key may depend on shapes and dtypes alone."
    PRUNED = (
        "A configuration ({config}) is pruned away for this call, but an earlier call with the same key ({key:,}) may "
        "have chosen it, and then it runs here too."
    )
    PRUNED_WITHOUT_KEY = (
        "A configuration ({config}) is pruned away for this call, but an earlier call with this key, which is empty, "
        "may have chosen it, and then it runs here too."
    )
    CANNOT_RUN = "{message}"
    ADVICE_PRUNING = "Whatever the pruning looks at belongs in the key."
    REUSED = (
        "A call with {name} = {now} instead of {before} gets the configuration that was chosen for the first: its key "
        "({key}) is the same."
    )
    REUSED_FOR_OTHER_SIZES = (
        "A call with other sizes gets the configuration that was chosen for the first: its key ({key}) is the same."
    )
    ADVICE_EACH_SIZE = (
        "The fastest tile for a large product is a poor one for a small product. Each size that the choice depends on "
        "belongs in the key{returned}."
    )

    # Trial runs.
    CLEARED = "reset_to_zero clears {name} before the call's own run: {result} is made from what it held."
    ADVICE_RESTORE_WHAT_IS_CLEARED = 'restore_value=["{name}"] puts back what it held after each trial.'
    CHANGES = (
        "{name} changes while the configurations are tried: each trial is a run on the call's own memory and updates "
        "it once more."
    )
    CHANGE = (
        "{names} change while the configurations are tried: each trial is a run on the call's own memory and updates "
        "them once more."
    )
    RIGHT_LATER = "{result} is right only in later calls, which try nothing."
    ADVICE_RESTORE = (
        "@triton.autotune(..., restore_value=[{quoted}]) puts back what was there after each trial; reset_to_zero is "
        "for memory that holds zeros before the call."
    )
    CLEARED_ONLY_WHILE_TRIED = (
        "reset_to_zero clears {names:,} while configurations are tried. A later call with the same key tries nothing: "
        "allocate with torch.zeros."
    )

    # The number of configurations.
    NOT_TUNED = "{entry} launches its kernel in one configuration: there is nothing to choose from."
    ADVICE_AUTOTUNE = "@triton.autotune(configs=[triton.Config({{...}}), ...], key=[...]) stands above @triton.jit."
    HOW_MANY = "{count:#configuration} to choose from; {least} to {most} are asked for."
    ADVICE_COST = (
        "Each costs compiling and timing in the first call of every size; too few leave out the one that is fastest "
        "for some size."
    )


def which(call: Sequence, config: int) -> dict[str, int | str]:
    """Returns the fields of "configuration 2 of 3 (BLOCK_N: 64, num_warps: 4)"."""
    return dict(number=config + 1, count=call.configs, config=call.config_text(config))


def named_configuration(
    call: RecordedCall, config: int, verdict: Verdict, submission: Submission, right_before: bool
) -> Verdict:
    """Returns the verdict on a failing configuration with a second sentence that names the configuration.

    right_before: whether the configurations before it are right. A verdict without a line gets the configuration's, if
    the text tells it.
    """
    sentence = Configurations.ONE_AFTER_RIGHT_ONES if right_before else Configurations.ONE
    text = call.config_text(config)
    verdict.said.insert(1, sentence(number=config + 1, among=_among(call, submission), config=text))
    verdict.line = verdict.line or line_of_config(submission.tree, text)
    return verdict


def _among(call: RecordedCall, submission: Submission) -> str:
    """Returns "4", or "the 2 that fits leaves of 4" if the file's function `fits` prunes the others for this call."""
    listed = [tuning.listed for _, tuning in _tunings(call)]
    if len(listed) != 1 or listed[0] <= call.configs:
        return str(call.configs)
    return f"the {call.configs} that {name_of_pruning(submission.tree) or 'pruning'} leaves of {listed[0]}"


# ---- the grid --------------------------------------------------------------------------------------------------------


def fixed_grid(call: RecordedCall, wrong: int, right: int, verdict: Verdict) -> Verdict | None:
    """Returns the verdict that blames the grid if it suits the configuration `right` and not `wrong`; else None.

    verdict: on the configuration `wrong`.
    """
    if verdict.id not in OF_ANOTHER_GRID or not any(tuning.fixed_grid for _, tuning in _tunings(call)):
        return None
    pairs = zip(call.launches(wrong), call.launches(right))
    launch = next((one for one, other in pairs if one.constants != other.constants and one.grid == other.grid), None)
    if launch is None:
        return None
    grid, names = tuple(launch.grid[: launch.dimensions]), _differing(call, wrong, right)
    said = Configurations.FIXED_GRID(grid=grid, names=names, right=right + 1, **which(call, wrong))
    advice = Configurations.ADVICE_GRID()
    return failed(Cause.FIXED_GRID, said, verdict.said[0], advice, kind="cause", line=launch.line)


def _differing(call: RecordedCall, wrong: int, right: int) -> list[str]:
    """Returns the names of the constants that differ between two configurations."""
    names: dict[str, None] = {}
    for one, other in zip(call.launches(wrong), call.launches(right)):
        names |= dict.fromkeys(name for name, value in one.constants.items() if other.constants.get(name) != value)
    return list(names)


# ---- the key ---------------------------------------------------------------------------------------------------------


def wrong_key(call: RecordedCall, again: RecordedCall | None) -> Verdict | None:
    """Returns the verdict on a key that names no argument, or a tensor, or changes between two equal calls; else None.

    again: the same call, recorded once more; None: no second call is looked at.
    """
    for choice, tuning in _tunings(call):
        for part in tuning.key:
            if part.kind == "unknown":
                said = Configurations.KEY_OF_NO_ARGUMENT(name=part.name)
                return _wrong_key(choice, said, Configurations.ADVICE_NAMES())
            if part.kind == "tensor":
                said = Configurations.KEY_OF_A_TENSOR(name=part.name)
                return _wrong_key(choice, said, Configurations.ADVICE_SIZES())
    if again is not None and _keys(call) != _keys(again):
        choice, _ = next(chain(_tunings(call), _tunings(again)))  # a key may stand in one of the calls alone
        name, _ = next(one or other for one, other in zip_longest(_keys(call), _keys(again)) if one != other)
        said = Configurations.KEY_OF_ITS_OWN(name=name)
        return _wrong_key(choice, said, Configurations.ADVICE_SHAPES())
    return None


def left_over(call: RecordedCall, config: int, verdict: Verdict) -> Verdict | None:
    """Returns the verdict on a failing configuration that is pruned for this call, and that an earlier call with the
    same key may have chosen; None if it is not pruned."""
    for choice, tuning in _tunings(call):
        if choice.alternatives[config % len(choice.alternatives)].left_over:
            return _pruned(choice, tuning, config, verdict.said[0])
    return None


def left_over_in_vain(call: RecordedCall) -> Verdict | None:
    """Returns the verdict on a configuration that is pruned for this call and cannot run, and that an earlier call with
    the same key may have chosen; None if there is none."""
    for choice, tuning in _tunings(call):
        for config, alternative in enumerate(choice.alternatives):
            if alternative.left_over and alternative.error:
                message = alternative.error.splitlines()[0]
                found = Configurations.CANNOT_RUN(message=message) if message else None
                return _pruned(choice, tuning, config, found)
    return None


def _pruned(choice: Choice, tuning: Tuning, config: int, found: Said | None) -> Verdict:
    names = [part.name for part in tuning.key]
    text = _short(choice.alternatives[config % len(choice.alternatives)].config)
    said = Configurations.PRUNED(config=text, key=names) if names else Configurations.PRUNED_WITHOUT_KEY(config=text)
    return _wrong_key(choice, said, found, Configurations.ADVICE_PRUNING())


def reused(first: RecordedCall, other: RecordedCall, submission: Submission) -> Verdict | None:
    """Returns the verdict if a call of other sizes has the key of the first call, and so gets its choice; else None."""
    if _keys(first) != _keys(other):
        return None
    (choice, tuning), *_ = _tunings(first)
    listed = [part.name for part in tuning.key]
    key = ", ".join(listed) or "nothing"
    changed = next((pair for pair in _numbers_that_differ(first, other) if pair[0].name not in listed), None)
    if changed is None:
        said = Configurations.REUSED_FOR_OTHER_SIZES(key=key)
    else:
        one, two = changed
        said = Configurations.REUSED(name=one.name, now=two.number, before=one.number, key=key)
    function = function_of_key(submission.tree)
    returned = f" that {function} returns" if function else ""
    return _wrong_key(choice, said, Configurations.ADVICE_EACH_SIZE(returned=returned))


def _numbers_that_differ(
    first: RecordedCall, other: RecordedCall
) -> Iterator[tuple[RecordedParameter, RecordedParameter]]:
    for one, two in zip(first.launches(), other.launches()):
        for a, b in zip(one.parameters, two.parameters):
            if a.name == b.name and a.value and b.value and a.value != b.value:
                yield a, b


def _wrong_key(choice: Choice, *said: Said | None) -> Verdict:
    return failed(Cause.WRONG_KEY, *said, kind="cause", line=choice.line)


def _keys(call: RecordedCall) -> list[tuple[str, str]]:
    return [(part.name, part.value) for _, tuning in _tunings(call) for part in tuning.key]


# ---- trial runs ------------------------------------------------------------------------------------------------------


def changed_by_tuning(call: RecordedCall, result: str, updated: list[str], shown: Said | None) -> Verdict:
    """Returns the verdict on a result that is wrong because trial runs change the call's own memory.

    result: its name. updated: the kernel's arguments that trial runs change. shown: the first wrong element.
    """
    choice, tuning = next(_tunings(call))
    cleared = [name for name in tuning.zeroed if name in updated]
    if cleared:
        said = [
            Configurations.CLEARED(name=cleared[0], result=result),
            shown,
            Configurations.ADVICE_RESTORE_WHAT_IS_CLEARED(name=cleared[0]),
        ]
    else:
        several = len(updated) > 1
        said = [
            Configurations.CHANGE(names=" and ".join(updated)) if several else Configurations.CHANGES(name=updated[0]),
            Configurations.RIGHT_LATER(result=result),
            shown,
            Configurations.ADVICE_RESTORE(quoted=", ".join(f'"{name}"' for name in updated)),
        ]
    return failed(Cause.CHANGED_BY_TUNING, *said, kind="cause", line=choice.line)


def cleared_only_while_tried(call: RecordedCall, verdict: Verdict) -> None:
    """Says that reset_to_zero clears memory in the first call with a key alone, if the verdict may be due to this."""
    names = [name for _, tuning in _tunings(call) for name in tuning.zeroed]
    if names and verdict.id in OF_MEMORY_NOT_CLEARED:
        verdict.said.insert(1, Configurations.CLEARED_ONLY_WHILE_TRIED(names=names))


# ---- the number of configurations ------------------------------------------------------------------------------------


def not_tuned(call: RecordedCall, entry: str, least: int, most: int) -> Verdict | None:
    """Returns the verdict if the kernel is not autotuned, or lists fewer than `least` or more than `most`
    configurations; else None."""
    launch = next(call.launches(), None)
    tunings = list(_tunings(call))
    if not tunings:
        said, line = Configurations.NOT_TUNED(entry=entry), launch.line if launch else 0
        return failed(Cause.NOT_TUNED, said, Configurations.ADVICE_AUTOTUNE(), kind="cost", line=line)
    count = min(tuning.listed for _, tuning in tunings)
    if least <= count <= most:
        return None
    said = Configurations.HOW_MANY(count=count, least=least, most=most)
    return failed(Cause.NOT_TUNED, said, Configurations.ADVICE_COST(), kind="cost", line=tunings[0][0].line)


def _tunings(call: RecordedCall) -> Iterator[tuple[Choice, Tuning]]:
    return ((choice, choice.tuning) for choice in call.choices if choice.tuning is not None)


def _short(config: str) -> str:
    """Returns the settings of a configuration without Triton's defaults, as "maxnreg: None" and "num_ctas: 1"."""
    return ", ".join(one for one in config.split(", ") if not one.endswith(": None") and one != "num_ctas: 1")


def at_its_line(verdict: Verdict, submission: Submission) -> Verdict:
    """Returns the verdict with the line of the key, the list or the grid; until now it has the line of the launch.

    The line is 0 if the text does not tell it: what is wrong with a choice does not stand at the launch.
    """
    if verdict.id == Cause.WRONG_KEY:
        verdict.line = line_of_key(submission.tree)
    elif verdict.id == Cause.NOT_TUNED:
        verdict.line = line_of_configs(submission.tree)
    elif verdict.id == Cause.FIXED_GRID:
        verdict.line = line_of_grid(submission.tree, verdict.line)
    return verdict


def launched_lines(call: RecordedCall) -> set[int]:
    """Returns the lines of the launches that have a choice of configurations."""
    steps = (step for choice, _ in _tunings(call) for one in choice.alternatives for step in one.steps)
    return {step.line for step in steps if isinstance(step, PlannedLaunch)}
