"""A step of a traced program in words: the numbers of small tiles, the range of large tiles, and odd lanes.

A line is a list of pieces. A piece is a text and its meaning: "", or a key of MEANINGS.
"""

from __future__ import annotations

import math
from dataclasses import replace

from grader.wire.traced_program import TracedStep

Piece = tuple[str, str]
Line = list[Piece]

# The styles in which a terminal shows the pieces, by meaning.
MEANINGS = {
    "quiet": "dim", "masked": "dim", "empty": "bold red", "name": "cyan", "here": "reverse", "source": "",
}  # fmt: skip
NOTHING = "a masked lane without other, of memory that nobody has written, or of a lane out of bounds"
UNSHOWN = "descriptor", "block pointer"
EXACTLY = "  exactly"
WIDEST = 16  # numbers in a line


def short(name: str, step: TracedStep) -> Line:
    """Returns a single line about a step, to show next to the source: the first numbers."""
    head: Line = [(_head(name, step), "name")]
    rows = _rows(step, aligned=False)
    if not rows:
        return [*head, *_range(step), *[(f", {text}", "quiet") for text in _odd_lanes(step)]]
    shown: Line = []
    for row in rows:
        if len(shown) >= WIDEST:
            shown.append((" ...", "quiet"))
            break
        shown += [(" ", "")] * bool(shown) + row
    return [*head, ("[", "quiet"), *shown, ("]", "quiet")] if len(rows) > 1 else [*head, *shown]


def full(name: str, step: TracedStep) -> list[Line]:
    """Returns all lines about a step, and below them those of the exact run, where it is shown and has others."""
    lines, exactly = _lines(name, step), getattr(step, "exactly", None)
    return lines if exactly is None else lines + _lines(EXACTLY, replace(exactly, variable=EXACTLY, kind="value"))


def _lines(name: str, step: TracedStep) -> list[Line]:
    head: Line = [(_head(name, step), "name")]
    rows = _rows(step)
    about = [(f"  {text}", "quiet") for text in [_about(step)] if text]
    if not rows:
        return [[*head, *_range(step), *about]]
    indent = " " * len(head[0][0])
    lines = [[*(head if number == 0 else [(indent, "")]), *row] for number, row in enumerate(rows)]
    lines[0] += about
    return lines


def plain(line: Line) -> str:
    return "".join(text for text, _ in line)


def legend(steps: list[TracedStep]) -> list[Line]:
    """Returns a line for each mark that occurs, with its meaning."""
    marks = "".join(step.marks for step in steps)
    lines = []
    masked = {step.kind for step in steps if "m" in step.marks}
    if masked:
        of_a_load = ["in a load v is its other, or a descriptor's padding"] if "load" in masked else []
        of_a_store = ["in a store v is not stored"] if "store" in masked else []
        lines.append([("(v)", "masked"), (", ".join([" a lane that is masked off", *of_a_load, *of_a_store]), "quiet")])
    if "?" in marks:
        lines.append([("?", "empty"), (f" holds nothing: it comes of {NOTHING}", "quiet")])
    return lines


def _head(name: str, step: TracedStep) -> str:
    if step.kind in ("store", "atomic") and step.argument:
        place = place_of(step)
        return f"{name + ' ' if step.kind == 'atomic' else ''}{place} <- "
    if step.kind == "printed":
        return f"printed {name} "
    if step.dtype == "pointer":
        plus = "" if step.numbers == ["0"] else " + "
        return f"{name} -> {step.argument or 'memory'}{plus}"
    if step.operation == name and name:
        return f"{name}: "
    return f"{name} = "


def place_of(step: TracedStep) -> str:
    """Returns the place of an access: "x[1, 0:5]", or "9 elements within x[0:4, 0:5]"."""
    if not step.box:
        return f"nothing of {step.argument}"
    spans = list(zip(step.box[::2], step.box[1::2]))
    where = ", ".join(str(low) if low == high else f"{low}:{high + 1}" for low, high in spans)
    whole = math.prod(high + 1 - low for low, high in spans) == step.elements
    return f"{'' if whole else f'{step.elements} elements within '}{step.argument}[{where}]"


def _rows(step: TracedStep, aligned: bool = True) -> list[Line]:
    if not step.numbers or step.dtype in UNSHOWN:
        return []
    cells = [_cell(number, mark) for number, mark in zip(step.numbers, step.marks)]
    if step.dtype == "pointer" and step.numbers == ["0"]:
        return [[]]
    if not step.shape:
        return [[(("false", "true")[int(step.numbers[0])], "")]] if _is_true(step) and step.marks == "." else [cells]
    width = min(step.shape[-1] if max(step.shape) < len(cells) else len(cells), WIDEST)  # a column is shown as a row
    widest = max(len(text) for text, _ in cells)
    rows: list[Line] = []
    for start in range(0, len(cells), width):
        row: Line = [("[", "quiet")]
        for place, (text, meaning) in enumerate(cells[start : start + width]):
            space = " " * (place > 0)
            row.append((space + (text.rjust(widest) if aligned and len(cells) > width else text), meaning))
        rows.append([*row, ("]", "quiet")])
    return rows


def _cell(number: str, mark: str) -> Piece:
    if mark == "?":
        return "?", "empty"
    return (f"({number})", "masked") if mark == "m" else (number, "")


def _is_true(step: TracedStep) -> bool:
    return step.dtype == "bool" and not step.shape and bool(step.numbers)


def _range(step: TracedStep) -> Line:
    if step.dtype in UNSHOWN:
        return [(f"a {step.dtype} of {step.shape}{_described(step)}", "")]
    if step.dtype == "bool":
        return [(f"true in {step.elements} of {math.prod(step.shape)} lanes", "")]
    if not step.low:
        return [("no number", "")]
    return [(step.low if step.low == step.high else f"{step.low} .. {step.high}", "")]


def _described(step: TracedStep) -> str:
    """Returns shape and strides of the tensor that a descriptor cuts blocks of; "" if they are not known."""
    sizes, strides = (", ".join(part) for part in (step.numbers[: len(step.shape)], step.numbers[len(step.shape) :]))
    return f" from shape [{sizes}], strides [{strides}]" if step.numbers else ""


def _about(step: TracedStep) -> str:
    """Returns the dtype, the place of a load, and odd lanes, in words."""
    typed = step.dtype not in ("pointer", *UNSHOWN)
    parts = [f"{step.dtype} {step.shape}" if step.shape else step.dtype] if typed else []
    if step.kind == "load" and step.argument:
        parts.append(f"from {place_of(step)}")
    return ", ".join(parts + _odd_lanes(step))


def _odd_lanes(step: TracedStep) -> list[str]:
    lanes, empty = math.prod(step.shape), 0 if step.numbers else step.empty  # the numbers show empty lanes
    counts = (step.masked, "masked off"), (step.outside, "out of bounds"), (empty, "hold nothing")
    odd = [f"{count} of {lanes} lanes {what}" if step.shape else what for count, what in counts if count]
    return odd + [f"{step.nans} NaN"] * bool(step.nans)
