"""Keeps the curves of an exercise's last plot, from which the report draws them."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path

from grader.course.folder import Folder
from grader.files import write_whole
from grader.progress import progress
from grader.show.curves import Curves


def keep(folder: Folder, curves: Curves) -> None:
    """Keeps the curves for the report. Raises OSError."""
    progress.state_folder(folder.root).joinpath("plots").mkdir(exist_ok=True)
    write_whole(_file(folder), json.dumps(asdict(curves)) + "\n")


def kept(folder: Folder) -> Curves | None:
    """Returns the curves of the last plot; None if there are none that can be read."""
    try:
        curves = Curves(**json.loads(_file(folder).read_text(encoding="utf-8")))
        return curves if _is_sound(curves) else None
    except (OSError, ValueError, TypeError, AttributeError, OverflowError):
        return None


def _is_sound(curves: Curves) -> bool:
    """Returns True if the curves can be drawn. Raises TypeError, AttributeError or OverflowError for other data."""
    texts = (curves.exercise, curves.gpu, curves.shape, curves.unit, curves.ceiling)
    numbers = [rate for rates in curves.rates.values() for rate in rates if rate is not None]
    return (
        all(isinstance(text, str) for text in texts)
        and all(isinstance(number, int) and number > 0 for number in (curves.l2_bytes, *curves.sizes))
        and {len(rates) for rates in curves.rates.values()} == {len(curves.sizes)}
        and all(math.isfinite(rate) and rate > 0 for rate in numbers)
        and curves.ceiling in curves.rates
        and bool(curves.sizes)
    )


def _file(folder: Folder) -> Path:
    return folder.root / progress.STATE_FOLDER / "plots" / f"{folder.id}.json"
