"""The commands `course ...`. A command's module is imported when the command is used.

A click.ClickException ends a command with its sentence and exit status 1, wherever it is raised. A fault of the machine
is turned into a click.ClickException here.

Modules of commands import torch, triton or pytest inside the functions that need them: `course status` has to answer
at once.
"""

from __future__ import annotations

from importlib import import_module

import click

from grader.places import missing
from grader.processes.faults import MachineFault
from grader.show import terminal_encoding
from grader.wire.printable import several_lines

COMMANDS = {
    "demo": "grader.learn.demo:demo",
    "init": "grader.learn.init:init",
    "update": "grader.learn.update:update",
    "status": "grader.learn.status:status",
    "open": "grader.learn.lesson:lesson",
    "predict": "grader.learn.predict:predict",
    "watch": "grader.learn.watch:watch",
    "hint": "grader.learn.hint:hint",
    "why": "grader.learn.why:why",
    "explain": "grader.site.explain_command:explain",
    "mend": "grader.learn.known_mend:mend",
    "solution": "grader.learn.solution:solution",
    "reset": "grader.learn.reset:reset",
    "programs": "grader.learn.programs:programs",
    "trace": "grader.learn.trace.command:trace",
    "inspect": "grader.learn.inspection:inspect_kernel",
    "plot": "grader.learn.plot:plot",
    "ladder": "grader.learn.ladder.command:ladder",
    "report": "grader.learn.report_page:report",
    "story": "grader.learn.story.command:story",
    "judge": "grader.own.judge_command:judge",
    "serve": "grader.own.serve_command:serve",
    "site": "grader.site.site_command:site",
    "doctor": "grader.doctor.doctor:doctor",
    "new": "grader.author.author_commands:new",
    "check": "grader.author.author_commands:check",
    "stub": "grader.author.author_commands:stub",
    "gate": "grader.author.author_commands:gate",
    "notebooks": "grader.classroom.class_commands:notebooks",
    "grade": "grader.classroom.class_commands:grade",
    "autograder": "grader.classroom.class_commands:autograder",
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports each when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name].partition(":")
        return getattr(import_module(module), attribute)

    def resolve_command(self, ctx: click.Context, args: list[str]):
        import difflib

        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], COMMANDS, 1, 0.5)
            also = f"Did you mean {near[0]}?" if near else "course --help lists the commands."
            ctx.fail(f"There is no command {args[0]!r}. {also}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except MachineFault as fault:
            raise click.ClickException(several_lines(f"{fault}. Next: course doctor")) from None
        except ModuleNotFoundError as error:
            if not (said := missing()):
                raise
            raise click.ClickException(said) from error
        except click.ClickException as error:
            # click declares `message` as final, and shows what it holds; a new exception would lose the command's usage
            error.message = several_lines(error.message)  # type: ignore[misc]
            raise


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog='Completion in bash: eval "$(_COURSE_COMPLETE=bash_source course)"; zsh and fish likewise.',
)
def main() -> None:
    """A course in writing GPU kernels with Triton. pytest grades an exercise: pytest exercises/01_masked_add

    \b
    Example:  course status
    """
    terminal_encoding.prepare()
