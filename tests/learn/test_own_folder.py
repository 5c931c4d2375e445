"""`course init` and `course update`: a learner's own folder, laid down and brought up to date by an installed wheel."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grader.course.folder import all_folders
from tests.conftest import ROOT
from tests.installed import MAIN, Installed, built_wheel

pytest.importorskip("hatchling", reason="hatchling builds the wheel: python -m pip install hatchling")

MOST_BYTES = 5_000_000  # of the wheel
MANIFEST = ".laid_down.json"
SOFTMAX = "exercises/03_softmax/softmax.py"
LESSON = "exercises/03_softmax/README.md"
TESTS = "exercises/03_softmax/test_softmax.py"
HINTS = "hints/03_softmax.md"


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    return built_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory) -> Installed:
    return Installed.of(wheel, tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="session")
def newer(installed, tmp_path_factory) -> Installed:
    """Version 9: other hints and another lesson of 03, another stub, a new exercise, and two files less."""
    made = installed.as_version("9.0", tmp_path_factory.mktemp("newer"))
    for name in (HINTS, LESSON, TESTS):
        path = made.files / name
        path.write_text(f"{path.read_text(encoding='utf-8')}\n# new in 9\n", encoding="utf-8")
    solution = made.files / "solutions/03_softmax/softmax.py"
    solution.write_text(f'"""New in 9."""\n{solution.read_text(encoding="utf-8")}', encoding="utf-8")
    shutil.copytree(made.files / "exercises/01_masked_add", made.files / "exercises/99_new")
    (made.files / "docs/cluster/ssh.sh").unlink()
    (made.files / "docs/cluster/slurm.py").unlink()
    return made


@pytest.fixture(scope="session")
def laid_once(installed, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("laid")
    assert installed.course("init", "mine", cwd=folder).status == 0
    return folder / "mine"


@pytest.fixture
def laid(laid_once, tmp_path) -> Path:
    """A folder as version 0.1.0 lays it down; it may be copied anywhere."""
    return shutil.copytree(laid_once, tmp_path / "mine")


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def said(finished) -> str:
    """The one sentence of a command that did nothing."""
    assert finished.status == 1 and finished.out == "" and len(finished.err.splitlines()) == 1
    return finished.err.strip().removeprefix("Error: ")


# ---- the wheel and what is laid down --------------------------------------------------------------------------------


def test_the_wheel_holds_the_course_and_is_small(wheel, installed):
    assert wheel.stat().st_size <= MOST_BYTES
    for name in ("exercises", "hints", "solutions"):
        ours = [path for path in (ROOT / name).rglob("*") if path.suffix in (".py", ".toml", ".md")]
        assert ours and all((installed.files / path.relative_to(ROOT)).is_file() for path in ours)
    assert (installed.site / "grader/py.typed").is_file()
    entries = next(installed.site.glob("*.dist-info/entry_points.txt")).read_text()
    assert "\ncourse = grader.cli:main\n" in entries and "\ntriton-course = grader.cli:main\n" in entries


def test_what_is_laid_down_holds_stubs_and_no_solution(laid):
    for folder in all_folders(ROOT):
        assert (laid / folder.learner_file.relative_to(ROOT)).read_bytes() == folder.learner_file.read_bytes()
        assert (laid / folder.hints_file.relative_to(ROOT)).exists()
    assert not (laid / "solutions").exists() and not (laid / "tests").exists()
    solutions = {path.read_bytes() for path in (ROOT / "solutions").rglob("*.py")}
    assert not solutions & set(content(laid).values())


def test_a_clone_lays_down_stubs_also_where_its_owner_has_filled_them_in(installed, tmp_path):
    clone = tmp_path / "clone"
    shutil.copytree(installed.files, clone)
    for name in ("grader", next(installed.site.glob("*.dist-info")).name):
        shutil.copytree(installed.site / name, clone / name)
    solved = clone / "exercises/01_masked_add/masked_add.py"
    shutil.copy(clone / "solutions/01_masked_add/masked_add.py", solved)
    shutil.copy(solved, solved.with_name("masked_add.py.kept1"))
    assert Installed(clone).course("init", "mine", cwd=tmp_path).status == 0
    laid = tmp_path / "mine/exercises/01_masked_add"
    assert (laid / "masked_add.py").read_bytes() == (ROOT / "exercises/01_masked_add" / solved.name).read_bytes()
    assert not (laid / "masked_add.py.kept1").exists()
    assert Installed(clone).course("status", cwd=tmp_path).status == 0, "a clone is the course where there is none"


def test_init_says_what_is_next_in_few_lines(installed, tmp_path):
    done = installed.course("init", "mine", cwd=tmp_path)
    count = len(all_folders(ROOT))
    assert done.lines == [
        f"The course lies in mine: version 0.1.0, {count} exercises.",
        "It may become a repository: git init, and commit all of it.",
        "Next: cd mine && pytest exercises/01_masked_add",
    ]
    assert os.listdir(tmp_path) == ["mine"]


def test_links_in_what_is_laid_down_lead_somewhere(laid):
    for path in laid.rglob("*.md"):
        for target in re.findall(r"\]\(([\w./-]+)[)#]", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path}: {target}"


def test_the_first_verdict_a_pass_and_the_solution(installed, laid):
    assert "its solution opens when it is passed" in said(installed.course("solution", "01", cwd=laid))
    assert not (laid / "solutions").exists()
    solution = (ROOT / "solutions/01_masked_add/masked_add.py").read_bytes()
    (laid / "exercises/01_masked_add/masked_add.py").write_bytes(solution)
    done = installed.pytest("exercises/01_masked_add", "exercises/02_strided_blocks", cwd=laid)
    assert "01 masked_add" in done.out and "Compare: course solution 01" in done.out
    assert "02 strided_blocks   not attempted" in done.out
    assert "Next: open exercises/02_strided_blocks/README.md" in done.out
    done = installed.course("solution", "01", cwd=laid)
    assert "The solution: solutions/01_masked_add/masked_add.py" in done.out
    assert [str(path.relative_to(laid)) for path in (laid / "solutions").rglob("*.py")] == [
        "solutions/01_masked_add/masked_add.py"
    ]
    assert "1 of " in installed.course("status", cwd=laid).out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("open", "01"), "Next: course predict 01"),
        (("hint", "01"), "Hint 1 of 3 for 01_masked_add"),
        (("reset", "01"), "is the stub already"),
    ],
)
def test_commands_work_in_what_was_laid_down(installed, laid, arguments, words):
    done = installed.course(*arguments, cwd=laid)
    assert words in done.out + done.err and "There is no course here" not in done.err


def test_the_installed_solutions_can_be_graded(installed, laid):
    """Asked for the file that pytest --submission would judge."""
    told = "from grader.course.folder import Folder; print(Folder(Path(FOLDER)).submission_file('solutions'))"
    text = f"from pathlib import Path; FOLDER = {str(laid / 'exercises/01_masked_add')!r}; {told}"
    assert installed.python("-c", text, cwd=laid).out.strip() == str(
        installed.files / "solutions/01_masked_add/masked_add.py"
    )


def test_an_authors_command_asks_for_a_clone(installed, laid):
    for arguments in (("check", "01"), ("new", "98_mine")):
        assert "This command is for authors" in said(installed.course(*arguments, cwd=laid))


def test_outside_of_a_course_nothing_installed_is_taken_for_one(installed, tmp_path):
    sentence = said(installed.course("status", cwd=tmp_path))
    assert sentence.endswith("Next: cd into the folder that holds it, or lay one down: course init my-course")


# ---- init: bad input ------------------------------------------------------------------------------------------------


def test_a_folder_that_is_not_empty_stays_as_it_is(installed, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("mine")
    sentence = said(installed.course("init", "mine", cwd=tmp_path))
    assert "mine is not empty. Nothing was laid down. Next: name a folder that does not exist yet" in sentence
    assert content(tmp_path) == {"mine/notes.txt": b"mine"}


def test_a_file_and_a_course_are_no_place_for_another(installed, laid):
    (laid.parent / "file").write_text("")
    assert "file is no folder" in said(installed.course("init", "file", cwd=laid.parent))
    assert said(installed.course("init", "mine", cwd=laid.parent)).endswith(f"Next: cd {laid} && course update")


def test_a_folder_above_has_to_be_there(installed, tmp_path):
    sentence = said(installed.course("init", "not/there", cwd=tmp_path))
    assert "No such file or directory. Nothing was laid down. Next: make the folder" in sentence
    assert os.listdir(tmp_path) == []


def test_a_place_that_takes_no_folder(installed, tmp_path):
    """/sys takes none from anyone, root included."""
    assert "Next: name a folder in a place where you may write" in said(
        installed.course("init", "/sys/x", cwd=tmp_path)
    )


def test_a_full_disk_leaves_nothing_half_done(installed, tmp_path):
    """Linux keeps a process from making files of more than so many bytes, as a full disk would."""
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "init", "mine"], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(installed.site), "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000)),
    )  # fmt: skip
    assert done.returncode == 1 and "could not be made: File too large. Nothing was laid down." in done.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["mine", "."])
def test_an_empty_folder_and_a_new_repository_are_filled(installed, tmp_path, name):
    folder = tmp_path / "mine"
    (folder / ".git").mkdir(parents=True)
    done = installed.course("init", name, cwd=folder if name == "." else tmp_path)
    assert done.status == 0 and (folder / MANIFEST).exists() and (folder / ".git").exists()
    assert "repository" not in done.out and not list(folder.glob(".mine*"))
    assert done.lines[-1] == f"Next: {'' if name == '.' else 'cd mine && '}pytest exercises/01_masked_add"


def test_inside_of_another_repository_it_warns(installed, tmp_path):
    (tmp_path / ".git").mkdir()
    done = installed.course("init", "mine", cwd=tmp_path)
    assert f"It lies inside of the repository {tmp_path}: commit it there" in done.out and done.status == 0


# ---- update ---------------------------------------------------------------------------------------------------------


def test_what_is_up_to_date_stays_as_it_is(installed, laid):
    before = content(laid)
    done = installed.course("update", cwd=laid)
    assert done.lines[0] == "Your course is at version 0.1.0: no file of it had to change."
    assert content(laid) == before


def test_what_nobody_changed_is_replaced(newer, laid):
    done = newer.course("update", cwd=laid)
    assert done.status == 0 and done.lines[0].startswith("Your course went from version 0.1.0 to 9.0: ")
    assert (laid / HINTS).read_bytes() == (newer.files / HINTS).read_bytes()
    assert (laid / SOFTMAX).read_text(encoding="utf-8").startswith('"""New in 9."""')
    assert (laid / "exercises/99_new/README.md").exists() and not (laid / "docs/cluster/ssh.sh").exists()
    assert newer.course("update", cwd=laid).lines[0] == "Your course is at version 9.0: no file of it had to change."


def test_what_the_learner_alone_changed_stays(newer, laid):
    mine = "exercises/01_masked_add/masked_add.py"
    (laid / mine).write_text("# mine\n")
    (laid / "progress.txt").write_text("# mine too\n")
    done = newer.course("update", cwd=laid)
    assert (laid / mine).read_text() == "# mine\n" and (laid / "progress.txt").read_text() == "# mine too\n"
    assert mine not in done.out and not list((laid / mine).parent.glob("*.from-*"))


def test_what_both_changed_is_kept_and_the_new_one_laid_next_to_it(newer, laid):
    for name in (SOFTMAX, "docs/cluster/slurm.py"):
        (laid / name).write_text("# mine\n")
    (laid / f"{SOFTMAX}.from-9.0").write_text("# taken\n")
    done = newer.course("update", cwd=laid)
    assert (
        f"You changed {SOFTMAX}, and so did the course: yours stays, the new one is {SOFTMAX}.from-9.0-2" in done.lines
    )
    assert "The course has docs/cluster/slurm.py no more; you changed it, so it stays." in done.lines
    assert (laid / SOFTMAX).read_text() == (laid / "docs/cluster/slurm.py").read_text() == "# mine\n"
    assert (laid / f"{SOFTMAX}.from-9.0-2").read_text().startswith('"""New in 9."""')
    assert (laid / f"{SOFTMAX}.from-9.0").read_text() == "# taken\n"
    again = newer.course("update", cwd=laid)
    assert again.lines[0] == "Your course is at version 9.0: no file of it had to change." and len(again.lines) == 2


def test_a_file_that_is_missing_comes_back(installed, laid):
    (laid / TESTS).unlink()
    assert "1 new" in installed.course("update", cwd=laid).lines[0]
    assert (laid / TESTS).read_bytes() == (ROOT / TESTS).read_bytes()


def test_status_tells_of_another_version(installed, newer, laid):
    assert "course update brings it here" in newer.course("status", cwd=laid).out
    newer.course("update", cwd=laid)
    assert "install the newer one" in installed.course("status", cwd=laid).out


def test_an_older_installation_takes_nothing_back(installed, newer, laid):
    newer.course("update", cwd=laid)
    before = content(laid)
    sentence = said(installed.course("update", cwd=laid))
    assert f"{laid} has version 9.0 of the course, and 0.1.0 is installed, which is older." in sentence
    assert content(laid) == before


def edited(text: str) -> str:
    changed = json.loads(text)
    changed["files"][SOFTMAX] = "0" * 32
    return json.dumps(changed)


@pytest.mark.parametrize(
    ("spoiled", "why"),
    [
        (edited, "someone has edited it"),
        (lambda text: text[:-20], "it is no JSON"),
        (lambda text: "[]", "something in it is missing"),
        (lambda text: text.replace('"seal"', '"saal"'), "something in it is missing"),
    ],
)
def test_a_manifest_that_was_edited_is_told(newer, laid, spoiled, why):
    (laid / MANIFEST).write_text(spoiled((laid / MANIFEST).read_text()))
    before = content(laid)
    sentence = said(newer.course("update", cwd=laid))
    assert f"is not as course init or course update wrote it: {why}. Nothing was changed. Next: restore it" in sentence
    assert content(laid) == before


def test_a_folder_that_is_no_course_and_a_clone(installed, laid, tmp_path):
    assert said(installed.course("update", cwd=tmp_path)).startswith("There is no course here.")
    (laid / "solutions").mkdir()
    (laid / MANIFEST).unlink()
    sentence = said(installed.course("update", cwd=laid))
    assert (
        sentence == f"{laid} is a clone of the course: it has no {MANIFEST}, which course init writes. Next: git pull"
    )


def test_an_update_that_was_cut_off_goes_on(newer, laid):
    """A folder stands where a new file belongs."""
    (laid / "exercises/99_new/README.md").mkdir(parents=True)
    sentence = said(newer.course("update", cwd=laid))
    assert "What you wrote is as it was. Next: mend that and run course update again" in sentence
    (laid / "exercises/99_new/README.md").rmdir()
    assert newer.course("update", cwd=laid).status == 0
    assert (laid / HINTS).read_bytes() == (newer.files / HINTS).read_bytes()
