"""How long a class takes when all of it is judged: reading, results, tables, exports, the page.

    python benchmarks/after_judging.py [STUDENTS]

The seeded class of benchmarks/large_class.py with all exercises. Ten students are judged here, in a minute or two, and
what they got is laid down as the result of every other text. It needs the extra classroom.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from grader.classroom.plain_folder.submissions import read_submissions  # noqa: E402
from grader.classroom.result_store import Results  # noqa: E402
from grader.course.folder import all_folders  # noqa: E402
from tests.classroom.submission_folder import SubmissionFolder  # noqa: E402
from tests.classroom.synthetic import Class, handed_out  # noqa: E402

SEED, JUDGED = 60, 10


def handed_in(base: Path, students: int) -> SubmissionFolder:
    folder = SubmissionFolder(base / f"submissions-{students}", base / f"results-{students}")
    for hand_in in Class(SEED, handed_out(*(each.id for each in all_folders(ROOT)))).scripts(students):
        folder.hand_in(hand_in)
    return folder


def lay_down(judged: SubmissionFolder, folder: SubmissionFolder) -> None:
    """A result for each text of `folder`: one of those of the same exercise that are judged."""
    results, chance = Results(folder.out / "texts"), random.Random(SEED)
    results.folder.mkdir(parents=True)
    texts = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(judged.out.glob("texts/*/*.json"))]
    for one in read_submissions(folder.path, list(all_folders(ROOT)), (), without=folder.out).all:
        if one.text is not None:
            results.store(one.text, chance.choice([text for text in texts if text["exercise"] == one.exercise]))


def main(students: int) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        judged, folder = handed_in(Path(temporary), JUDGED), handed_in(Path(temporary), students)
        judged.grade()
        lay_down(judged, folder)
        for run in ("all is judged, nothing is written yet", "nothing is new"):
            begun = time.monotonic()
            said = folder.grade()
            assert ", 0 to judge." in said, said
            print(f"{students} students, {run}: {time.monotonic() - begun:.1f} s", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
