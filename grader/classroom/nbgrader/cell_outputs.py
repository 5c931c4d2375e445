"""A result as the outputs of a notebook's cells: plain text, a picture, and a score."""

from __future__ import annotations

from grader.classroom.rubric import Item, report_of
from grader.learn.notebooks.cells import picture_of
from grader.wire.printable import several_lines

MOST_REPORT = 20_000  # characters


def report_outputs(result: dict | None, notes: list[str]) -> list[dict]:
    """Returns the outputs of the check cell: the notes on the hand-in, then the judge's report and picture."""
    text = "\n".join(notes)
    if result is not None:
        text = "\n\n".join(part for part in (text, report_of(result)) if part)
    outputs = [_text(text[:MOST_REPORT])]
    if result is not None and (picture := picture_of(result)):
        outputs.append({"output_type": "display_data", "data": {"image/svg+xml": picture}, "metadata": {}})
    return outputs


def item_outputs(item: Item | None, why_open: str) -> list[dict]:
    """Returns the outputs of a grade cell: the item's tests, and its score, or the reason why there is none.

    nbgrader would take a missing output for full marks.
    """
    lines = list(item.lines) if item is not None else []
    if item is None or why_open:
        return [
            _text(
                "\n".join([*lines, f"Not graded yet: {why_open.removesuffix('.')}. These points are open, not lost."])
            )
        ]
    data = {"text/plain": repr(float(item.reached))}
    score = {"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": None}
    return [_text("\n".join(lines)), score]


def _text(text: str) -> dict:
    return {"output_type": "stream", "name": "stdout", "text": several_lines(text) + "\n"}
