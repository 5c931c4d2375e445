"""All configurations of an autotuned call, and the trial runs that choose between them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from grader.course.trial import Trial
from grader.explain import configurations
from grader.explain.values import first_wrong
from grader.explain.verdict import PASS, Verdict
from grader.judging.early_failures import not_ended
from grader.numerics.arguments import Argument, without_values
from grader.sentences import count_text
from grader.submission.text import Submission
from grader.wire.recorded_call import RecordedCall
from grader.wire.reply import Reply

if TYPE_CHECKING:
    from grader.judging.in_interpreter import Interpreted

MOST_COMPARED = 4  # configurations, before a failure of the first is taken for a failure of all
SAYS_WHERE = ("memory", "values", "guess", "cause")  # kinds of failures that may belong to one configuration


def of_configurations(
    interpreted: Interpreted, trial: Trial, inputs: list[Argument], first: Reply, verdict: Verdict, twice: bool
) -> Verdict:
    """Returns the verdict on all configurations of a call, of which the first gave `first` and `verdict`.

    twice: whether a second call with the same inputs is looked at, too.
    """
    configured = _of_configurations(interpreted, trial, inputs, first, verdict, twice)
    return configurations.at_its_line(configured, interpreted.run.submission)


def _of_configurations(
    interpreted: Interpreted, trial: Trial, inputs: list[Argument], first: Reply, verdict: Verdict, twice: bool
) -> Verdict:
    run = interpreted.run
    call = run.recorded_call(trial, inputs).call
    if not call.choices:
        return verdict
    if verdict.outcome != PASS:
        return _of_the_first(interpreted, trial, inputs, first, call, verdict)
    for config in first.configurations[1:]:
        other = interpreted.of_config(trial, inputs, config)
        if other.outcome != PASS:
            return configurations.left_over(call, config, other) or _of_another(
                call, trial.config, config, other, run.submission
            )
    again = run.recorded_call(trial, inputs, again=True).call if twice else None
    mistake = configurations.left_over_in_vain(call) or configurations.wrong_key(call, again)
    return mistake or _after_a_trial(interpreted, trial, inputs, first, call) or verdict


def _of_the_first(
    interpreted: Interpreted, trial: Trial, inputs: list[Argument], first: Reply, call: RecordedCall, verdict: Verdict
) -> Verdict:
    configurations.cleared_only_while_tried(call, verdict)
    if call.configs == 1 or verdict.kind not in SAYS_WHERE:
        return verdict
    for config in first.configurations[1:MOST_COMPARED]:
        if interpreted.of_config(trial, inputs, config).outcome == PASS:
            mistake = configurations.fixed_grid(call, trial.config, config, verdict)
            submission = interpreted.run.submission
            return mistake or configurations.named_configuration(call, trial.config, verdict, submission, False)
    return verdict  # all fail alike: the mistake is not in the first alone


def _of_another(call: RecordedCall, first: int, config: int, verdict: Verdict, submission: Submission) -> Verdict:
    """Returns the verdict on a failure that first appears in this configuration."""
    grid = configurations.fixed_grid(call, config, first, verdict)
    return grid or configurations.named_configuration(call, config, verdict, submission, True)


def _after_a_trial(
    interpreted: Interpreted, trial: Trial, inputs: list[Argument], first: Reply, call: RecordedCall
) -> Verdict | None:
    """Returns what is wrong with the first call of a key, after a trial of each configuration; None if nothing is.

    The trials run on the call's own memory. A kernel that reads nothing of what it writes does the same after any
    number of trials.
    """
    lines = configurations.launched_lines(call)
    updated = list(dict.fromkeys(name for launch in first.launches if launch.line in lines for name in launch.updated))
    if not updated:
        return None
    wrong = interpreted.wrong_after_a_trial(trial, inputs)
    if wrong is None:
        return None
    for name in updated:  # an argument that alone makes the difference, if there is any
        if len(updated) > 1 and interpreted.wrong_after_a_trial(trial, inputs, [name]) is None:
            updated = [name]
            break
    return configurations.changed_by_tuning(call, wrong.returns, updated, first_wrong(wrong))


def choice_verdict(interpreted: Interpreted, trials: list[Trial], count: tuple[int, int]) -> Verdict:
    """Returns the verdict on the choice of the first trial; the trials of other sizes have to make their own choices.

    count: the least and the most configurations that the kernel may list.
    """
    run, exercise = interpreted.run, trials[0].exercise
    calls = []
    for trial in trials:
        calls.append(run.recorded_call(trial, without_values(trial.data, trial.dtype)).call)
        if early := not_ended(run, exercise, calls[-1]):
            return early
    first, *others = calls
    if mistake := configurations.not_tuned(first, exercise.entry, *count) or configurations.wrong_key(first, None):
        return configurations.at_its_line(mistake, run.submission)
    for other in others:
        if mistake := configurations.reused(first, other, run.submission):
            return configurations.at_its_line(mistake, run.submission)
    return Verdict(PASS, note=f"{count_text(first.configs, 'configuration')}, and a choice for each size")


def with_a_config_that_runs(interpreted: Interpreted, trial: Trial, inputs: list[Argument]) -> Trial:
    """Returns the trial with the first configuration that can run: Triton may pass over the call's first one."""
    usable = interpreted.run.recorded_call(trial, inputs).call.usable_configs
    return replace(trial, config=usable[0]) if usable and usable[0] != trial.config else trial
