"""`course story`: a model that tells a story on the learner's own kernels, and says where the time of a token goes."""

from __future__ import annotations

import ast
import importlib.metadata
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.course.by_name import course_root
from grader.course.folder import Folder, all_folders
from grader.places import COURSE, missing
from grader.progress.standing import PASSED, read_progress, state

if TYPE_CHECKING:
    from grader.learn.story.messages import StorySpeeds, WholeStory, Wrong

FEW, MORE = 8, 24  # tokens without a GPU, and with one
MODEL = "llama.py"
MEND = "Next: mend it, or delete it and run course update"
NOTHING_LOST = "Your files and your progress are as they were."


@dataclass(frozen=True)
class StoryKernel:
    """A kernel of a story: its exercise, the function there, and whose file is taken."""

    folder: Folder
    entry: str
    own: bool

    @property
    def file(self) -> Path:
        return self.folder.learner_file if self.own else self.folder.solution_file


@click.command(short_help="a small transformer that tells a story on your own kernels")
@click.argument("name", metavar="NAME")
@click.option("--tokens", type=click.IntRange(1, 200), metavar="N", help="how many (default: 8, on a GPU 24)")
def story(name: str, tokens: int | None) -> None:
    """Has a small transformer with random weights tell a story on your kernels, and compares it with torch's.

    What you have not passed yet is taken from the solutions. On a GPU it measures tokens per second and what each
    kernel takes of a token, and writes a picture. Your files run in a process of their own, which is not fenced.

    \b
    Example:  course story llama
    """
    if lack := missing():
        raise click.ClickException(lack)
    root = course_root()
    told_by = _story(root, name)
    parts = _parts(root, told_by)
    _tell(root, told_by, parts, tokens)


def _story(root: Path, name: str) -> Path:
    """Returns the story's folder: the learner's, where there is one."""
    places = [folder / "stories" / name for folder in (root, COURSE)]
    found = next((place for place in places if name.isidentifier() and (place / MODEL).is_file()), None)
    if found is None:
        raise click.ClickException(f"There is no story {name!r}. Next: course story llama")
    return found


def _parts(root: Path, story: Path) -> dict[str, StoryKernel]:
    """Returns the kernels by the names of the model's table KERNELS, which is read and not run."""
    path, done = story / MODEL, read_progress(root)
    folders = {folder.number: folder for folder in (*all_folders(COURSE), *all_folders(root))}
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        table = next(node.value for node in tree.body if isinstance(node, ast.Assign) and _names(node, "KERNELS"))
        return {
            name: StoryKernel(folders[number], entry, state(done.of(folders[number].id)) == PASSED)
            for name, (number, entry) in ast.literal_eval(table).items()
        }
    except (OSError, SyntaxError, StopIteration, KeyError, ValueError) as error:
        raise click.ClickException(f"{path} has no table KERNELS that can be read: {error}. {MEND}") from None


def _names(assignment: ast.Assign, name: str) -> bool:
    return isinstance(target := assignment.targets[0], ast.Name) and target.id == name


def _tell(root: Path, story: Path, parts: dict[str, StoryKernel], tokens: int | None) -> None:
    from grader.gpu.device import Device, device_here
    from grader.learn.story.messages import StorySpeeds, WholeStory
    from grader.learn.story.teller import Teller
    from grader.show.terminal import console

    device, out = device_here(), console()
    if isinstance(device, str):
        _refuse_an_interpreter_that_fails()
    for name, part in parts.items():
        whose = "yours" if part.own else "the solution's, as yours has not passed"
        out.print(f"  {part.folder.number} {name:18}  {whose}", markup=False)
    files = {name: [str(part.file), part.entry] for name, part in parts.items()}
    gpu = device.uuid if isinstance(device, Device) else ""
    teller = Teller(story, root, files, gpu, tokens or (MORE if gpu else FEW))
    try:
        with out.status("importing torch") as status:
            for message in teller.messages(status.update):
                if isinstance(message, WholeStory):
                    _show_story(message, parts)
                elif isinstance(message, StorySpeeds):
                    _show_speeds(root, story.name, message, parts)
                else:
                    raise click.ClickException(_what_is_wrong(message, parts, story))
    finally:
        teller.end()
    if isinstance(device, str):
        out.print(f"Kernels ran in Triton's interpreter ({device}): a GPU shows their speed, too.", markup=False)
    _your_turn(story, parts)


def _refuse_an_interpreter_that_fails() -> None:
    """Triton 3.6's interpreter makes a number of an array with one element, and numpy does that no more since 2.4."""
    triton, numpy = map(importlib.metadata.version, ("triton", "numpy"))
    if triton.startswith("3.6.") and tuple(map(int, numpy.split(".")[:2])) >= (2, 4):
        raise click.ClickException(
            f"Without a GPU kernels run in Triton's interpreter, and that of Triton {triton} fails with numpy {numpy}. "
            'Next: pip install "numpy<2.4"'
        )


def _show_story(told: WholeStory, parts: dict[str, StoryKernel]) -> None:
    from grader.show.terminal import console, say

    out = console()
    out.print(f"\n{told.prompt} ...", markup=False)
    out.print(f"{' '.join(told.tokens)}\n", style="bold", markup=False)
    count = len(told.tokens)
    out.print(f"The same {count} token{'s' * (count != 1)} as torch in fp32, with the greedy choice.", markup=False)
    if count < told.asked:
        out.print("There the story ends: its next two candidates are nearer to each other than fp16 can tell.")
    by = parts[told.loss_kernel].folder.number if told.loss_kernel in parts else told.loss_kernel
    say(f"The loss of the prompt: {told.loss} by {by}, {told.torch_loss} by torch.")


def _show_speeds(root: Path, name: str, speeds: StorySpeeds, parts: dict[str, StoryKernel]) -> None:
    from grader.learn.matplotlib_cache import keep_caches_in
    from grader.learn.story.table import compared, steps_table, ways_table
    from grader.show.terminal import console, shown

    out = console()
    if speeds.why:
        out.print(f"Speed was not measured: {speeds.why}.", markup=False)
        return
    out.print(f"\nTokens per second on {speeds.gpu}, one sequence, fp16", style="bold", markup=False)
    out.print(ways_table(speeds))
    out.print(compared(speeds), markup=False)
    if not speeds.steps:
        return
    numbers = {kernel: part.folder.number for kernel, part in parts.items()}
    out.print("\nA token, step by step, each step in a CUDA graph of its own", style="bold")
    out.print(steps_table(speeds, numbers))
    others = [
        f"{number} {kernel}" for kernel, number in numbers.items() if kernel not in {s.kernel for s in speeds.steps}
    ]
    out.print(f"For the prompt alone: {', '.join(others)}.", markup=False)
    keep_caches_in(root)
    from grader.show.story_svg import story_svg

    path = root / f"story_{name}.svg"
    try:
        path.write_text(story_svg(name, speeds.gpu, [(s.kernel, s.torch_ns, s.kernel_ns) for s in speeds.steps]))
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}.") from None
    out.print(f"Picture: {shown(path)}", markup=False, soft_wrap=True)


def _what_is_wrong(wrong: Wrong, parts: dict[str, StoryKernel], story: Path) -> str:
    """Returns one sentence, and the next action."""
    from grader.learn.story.messages import MODEL as ITSELF
    from grader.show.terminal import shown

    when = f"at token {wrong.token}" if wrong.token else "at the prompt"
    line = f" (line {wrong.line})" if wrong.line else ""
    if wrong.kernel == ITSELF:
        return f"The model in {shown(story / MODEL)} ends with an error: {wrong.raised}{line}. {MEND}"
    if wrong.raised:
        what = f"the story ends {when}: {wrong.raised}{line}"
    elif wrong.token:
        what = f"the story becomes another one: token {wrong.token} is {wrong.got}, and torch's is {wrong.expected}"
    else:
        what = f"the prompt's loss is {wrong.got}, and torch's is {wrong.expected}"
    part = parts.get(wrong.kernel)
    if part is None:
        run = " ".join(shown(each.folder.path) for each in parts.values() if each.own)
        return f"With all kernels together {what}. {NOTHING_LOST} Next: {f'pytest {run}' if run else 'course doctor'}"
    whose = "your" if part.own else "the solution's"
    following = f"pytest {shown(part.folder.path)}" if part.own else "course doctor"
    return f"With {whose} {part.folder.id} {what}. {NOTHING_LOST} Next: {following}"


def _your_turn(story: Path, parts: dict[str, StoryKernel]) -> None:
    from grader.show.terminal import console, shown

    out = console()
    out.print(
        f"\nYour turn: copy {shown(story)}, which has the model and its operators, profile a token, and choose what to "
        "fuse next. The products with gate and up read the same z, so they can be one; a product can end in the step "
        "that follows it; rope can write into the cache at once. course judge FILE compares your kernel with torch.",
        markup=False,
    )
    left = next((part.folder for part in parts.values() if not part.own), None)
    next_step = (
        f"course open {left.number}, so that this kernel is yours, too" if left else f"open {shown(story / MODEL)}"
    )
    out.print(f"Next: {next_step}", markup=False, soft_wrap=True)
