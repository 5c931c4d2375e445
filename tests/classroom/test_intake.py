"""Exports of learning platforms: which file is whose, and what is left out."""

from __future__ import annotations

import unicodedata
import zipfile

import click
import pytest

from grader.classroom.handin import read_hand_in
from grader.classroom.intake import Others, take_in
from grader.classroom.names import Person

NOTEBOOKS = {"01_masked_add": ["masked_add"], "03_softmax": ["softmax"]}
ADA = Person("ada", "Ada", "Lovelace", "ada@example.org", "789")
JORGE = Person("jp", "José", "Peña Ruiz", "jp@example.org", "790")


@pytest.mark.parametrize(
    "name, place",
    [
        ("ada/03_softmax/softmax.py", "ada/03_softmax/softmax.py"),
        ("ada/softmax.py", "ada/03_softmax/softmax.py"),
        ("ada_softmax.py", "ada/03_softmax/softmax.py"),
        ("ada/masked_add (2).ipynb", "ada/01_masked_add/masked_add (2).ipynb"),
        ("ada@example.org/softmax.py", "ada/03_softmax/softmax.py"),
        ("03_softmax/ada/softmax.py", "ada/03_softmax/softmax.py"),
        ("03_softmax/ada_softmax.py", "ada/03_softmax/softmax.py"),
        ("ada/kernels/softmax.py", "ada/03_softmax/kernels/softmax.py"),
        ("Ada Lovelace_1234_assignsubmission_file_/softmax.py", "ada/03_softmax/softmax.py"),
        ("Ada Lovelace_1234_assignsubmission_file_softmax.ipynb", "ada/03_softmax/softmax.ipynb"),
        ("Peña Ruiz José_1234_assignsubmission_file/masked_add.py", "jp/01_masked_add/masked_add.py"),
        ("lovelaceada_789_4567_softmax-1.py", "ada/03_softmax/softmax-1.py"),
        ("whoever_LATE_790_4567_softmax.py", "jp/03_softmax/softmax.py"),
        ("Grace Hopper/softmax.py", "Grace Hopper/03_softmax/softmax.py"),
    ],
)
def test_a_file_finds_its_student_and_its_exercise(tmp_path, name, place):
    archive = tmp_path / "export.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(name, "my kernel")
    intake = take_in(archive, tmp_path / "submitted", NOTEBOOKS, [ADA, JORGE])
    kept = [path for path in (tmp_path / "submitted").rglob("*.*") if path.is_file()]
    assert [str(path.relative_to(tmp_path / "submitted")) for path in kept] == [place]
    assert intake.taken == 1
    assert intake.unknown == ({"Grace Hopper"} if "Grace" in name else set())


MALLORY = Person("mallory", "Mallory", "Evil", "mallory@example.org", "666")
# What a platform puts before the files of Mallory: a folder, or the beginning of each file's name.
OF_MALLORY = (
    "Mallory Evil_789_assignsubmission_file_/",  # this number is the hand-in's and no student's
    "Mallory Evil_12_assignsubmission_file_",
    "evilmallory_666_4567/",
    "evilmallory_666_4567_",
    "mallory/",
    "mallory_",
    "03_softmax/mallory/",
)
BY_MALLORY = (  # names that the student chooses
    "ada_softmax.py",
    "ADA_softmax.ipynb",
    "ada/softmax.py",
    "ada/03_softmax/softmax.py",
    "03_softmax/ada/softmax.py",
    "03_softmax\\ada\\softmax.py",
    "../ada/softmax.py",
    "/ada/softmax.py",
    "\\ada\\softmax.py",
    "Ada Lovelace_101_assignsubmission_file_softmax.py",
    "Ada Lovelace_101_assignsubmission_file_/softmax.py",
    "lovelaceada_789_4567_softmax-1.py",
    "lovelaceada_789_4567/softmax.py",
    "_789_4567_softmax.py",
    "789_assignsubmission_file_softmax.py",
    " ada/softmax.py",
    "ada./softmax.py",
)


@pytest.mark.parametrize("known", [[ADA, JORGE, MALLORY], [ADA, JORGE], []], ids=["all", "not her", "no roster"])
@pytest.mark.parametrize("top", OF_MALLORY)
def test_a_hand_in_is_whose_folder_it_lies_in(tmp_path, top, known):
    for number, name in enumerate(BY_MALLORY):
        archive, submitted = tmp_path / f"{number}.zip", tmp_path / f"submitted {number}"
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr("ada/masked_add.py", "Ada's")
            file.writestr(f"{top}{name}", "Mallory's")
        intake = take_in(archive, submitted, NOTEBOOKS, known)
        assert [path.name for path in (submitted / "ada").rglob("*.*")] == ["masked_add.py"], name
        assert not intake.clashes
        for student in intake.students - {"ada"}:
            assert student.casefold().startswith(("mallory", "evilmallory")), (name, student)


@pytest.mark.parametrize(
    ("name", "kept", "what"),
    [
        ("lovelaceada_789_text.html", "text.html", "a text"),
        ("lovelaceada_LATE_789_text.html", "text.html", "a text"),
        ("lovelaceada_789_link.html", "link.html", "an address"),
        ("Ada Lovelace_12_assignsubmission_onlinetext/onlinetext.html", "onlinetext.html", "a text"),
    ],
)
def test_what_a_student_typed_into_a_platform_is_told_in_the_students_row(tmp_path, name, kept, what):
    archive = tmp_path / "export.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(name, "my kernel")
        file.writestr("jp/softmax.py", "his")
    assert take_in(archive, tmp_path / "submitted", NOTEBOOKS, [ADA, JORGE]).ignored == []
    hand_in = read_hand_in(tmp_path / "submitted/ada/03_softmax", "softmax", "")
    told = f"there is {kept} ({what} that was typed into the platform; a file has to be handed in)"
    assert hand_in.problem == f"softmax.ipynb or softmax.py was expected; {told}"


def test_part_of_a_files_name_makes_nobody_another_student(tmp_path):
    """Ann's file abell_softmax.py: together with her name it has the letters of Anna Bell's."""
    (tmp_path / "export").mkdir()
    (tmp_path / "export/ann_abell_softmax.py").write_text("Ann's")
    roster = [Person("ann", "Ann", "Smith", "", ""), Person("bell", "Anna", "Bell", "", "")]
    intake = take_in(tmp_path / "export", tmp_path / "submitted", NOTEBOOKS, roster)
    assert (intake.taken, intake.ignored) == (0, ["ann_abell_softmax.py: it names no student"])


CLASHES = {
    "two folders": ("Ada Lovelace_1_assignsubmission_file_/softmax.py", "Lovelace ada/softmax.py"),
    "a folder and a file": ("ada/softmax.py", "ada_softmax.py"),
    "a script and a notebook": ("ada/softmax.py", "ada@example.org/softmax.ipynb"),
    "two numbers": ("lovelaceada_789_4567_softmax.py", "adalovelace_1_4568_softmax.py"),
}  # fmt: skip


@pytest.mark.parametrize("names", CLASHES.values(), ids=CLASHES)
def test_a_clash_is_taken_from_neither_and_told(tmp_path, names):
    archive, submitted = tmp_path / "export.zip", tmp_path / "submitted"
    with zipfile.ZipFile(archive, "w") as file:
        for name in (*names, "ada/masked_add.py"):
            file.writestr(name, name)
    intake = take_in(archive, submitted, NOTEBOOKS, [ADA, JORGE, MALLORY])
    assert [path.name for path in submitted.rglob("*.*")] == ["03_softmax.sent.json", "masked_add.py"]
    problem = f"softmax was sent at several places and taken from neither: {names[0]} and {names[1]}."
    assert intake.clashes == [f"ada: {problem} Leave one of them in the export, then run the command again."]
    hand_in = read_hand_in(submitted / "ada/03_softmax", "softmax", "")
    assert (hand_in.text, hand_in.absent, hand_in.problem) == (None, False, problem)
    (submitted / "ada/03_softmax/softmax.py").write_text("of an earlier export")
    assert read_hand_in(submitted / "ada/03_softmax", "softmax", "").notes == [problem]
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(names[0], "the one")
    assert not take_in(archive, submitted, NOTEBOOKS, [ADA, JORGE, MALLORY]).clashes
    assert "several places" not in str(read_hand_in(submitted / "ada/03_softmax", "softmax", ""))


def test_a_folder_around_the_students_folders_is_told(tmp_path):
    for student in ("ada", "bob", "carla", "dora"):
        (tmp_path / "export/class" / student).mkdir(parents=True)
        (tmp_path / "export/class" / student / "softmax.py").write_text(student)
    intake = take_in(tmp_path / "export", tmp_path / "submitted", NOTEBOOKS, [])
    assert intake.taken == 0 and intake.clashes == [
        "class: softmax was sent at several places and taken from none: class/ada/softmax.py, class/bob/softmax.py "
        "and 2 more. Leave one of them in the export, then run the command again. If class is no student's, "
        "move the folders in it out of it, or give a list of the students."
    ]


def test_files_of_one_place_are_no_clash(tmp_path):
    (tmp_path / "export").mkdir()
    for name in (
        "lovelaceada_789_1_softmax.py",
        "lovelaceada_LATE_789_2_softmax-1.py",
        "lovelaceada_789_3_softmax.ipynb",
    ):
        (tmp_path / "export" / name).write_text(name)
    intake = take_in(tmp_path / "export", tmp_path / "submitted", NOTEBOOKS, [ADA])
    assert (intake.taken, intake.students, intake.clashes) == (3, {"ada"}, [])


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_letters_with_marks_are_compared_however_they_are_written(tmp_path, form):
    roster = [Person("joerg", "Jörg", "Müller", "", ""), Person("jorg", "Jorg", "Muller", "", "")]
    for known, student in ((roster, "joerg"), ([], "Jörg Müller")):
        with zipfile.ZipFile(tmp_path / "export.zip", "w") as file:
            file.writestr(unicodedata.normalize(form, "Jörg Müller_1_assignsubmission_file_/softmax.py"), "his")
        assert take_in(tmp_path / "export.zip", tmp_path / "submitted", NOTEBOOKS, known).students == {student}
    assert len(list((tmp_path / "submitted").iterdir())) == 2


def test_what_names_no_student_is_told(tmp_path):
    for name in ("softmax.py", "__MACOSX/ada/softmax.py", ".hidden/softmax.py"):
        (tmp_path / "export" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "export" / name).write_text("x")
    intake = take_in(tmp_path / "export", tmp_path / "submitted", NOTEBOOKS, [ADA])
    assert (intake.taken, intake.ignored) == (0, ["softmax.py: it names no student"])


UNNAMED = {  # files of an export, and where those that name no exercise are kept for their student to be told
    "nothing else": (("ada/notes.pdf",), set(NOTEBOOKS)),
    "another assignment": (("ada/softmax.py", "ada/notes.pdf"), {"03_softmax"}),
    "another's assignment": (("jp/masked_add.py", "ada/softmax.py", "ada/notes.pdf"), {"01_masked_add"}),
    "its folder": (("ada/03_softmax/notes.pdf", "ada/masked_add.py"), {"03_softmax"}),
}


@pytest.mark.parametrize("name", UNNAMED)
def test_what_names_no_exercise_is_kept_where_its_student_lacks_one(tmp_path, name):
    files, places = UNNAMED[name]
    for file in files:
        (tmp_path / "export" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "export" / file).write_text("x")
    intake = take_in(tmp_path / "export", tmp_path / "submitted", NOTEBOOKS, [ADA, JORGE])
    assert {path.parts[-2] for path in (tmp_path / "submitted/ada").glob("*/notes.pdf")} == places
    assert intake.ignored == []


def test_what_names_no_exercise_is_told_where_its_student_lacks_none(tmp_path):
    for file in ("masked_add.py", "softmax.py", "notes.pdf"):
        (tmp_path / "export/ada").mkdir(parents=True, exist_ok=True)
        (tmp_path / "export/ada" / file).write_text("x")
    intake = take_in(tmp_path / "export", tmp_path / "submitted", NOTEBOOKS, [ADA])
    assert intake.ignored == ["ada/notes.pdf: no .py file or notebook of an exercise is called so"]


def test_a_file_goes_to_its_own_exercise_or_is_told(tmp_path):
    """Ada and José sent a file of an exercise that the class does not have; José sent nothing else."""
    for file in ("ada/masked_add.py", "ada/transpose.py", "jp/transpose.py", "week0/ada/softmax.py"):
        (tmp_path / "export" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "export" / file).write_text("x")
    others = Others({"01_masked_add": ["masked_add"], "week0": ["softmax"]}, {"transpose": "04_transpose"})
    graded = {"03_softmax": ["softmax"]}
    intake = take_in(tmp_path / "export", tmp_path / "submitted", graded, [ADA, JORGE], others)
    placed = {str(path.relative_to(tmp_path / "submitted")) for path in (tmp_path / "submitted").rglob("*.py")}
    assert placed == {"ada/01_masked_add/masked_add.py", "ada/week0/softmax.py", "jp/03_softmax/transpose.py"}
    assert (intake.elsewhere, intake.ignored) == ({"transpose": 2}, [])


def test_a_path_out_of_the_archive_leads_nowhere(tmp_path):
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as file:
        file.writestr("../../ada/softmax.py", "my kernel")
    assert take_in(tmp_path / "export.zip", tmp_path / "submitted", NOTEBOOKS, [ADA]).taken == 0
    assert [path.name for path in tmp_path.iterdir()] == ["export.zip"]


def test_the_same_export_twice_changes_nothing_and_a_newer_one_keeps_the_old_file(tmp_path):
    submitted = tmp_path / "submitted"
    for text, taken in (("one", 1), ("one", 0), ("two", 1)):
        (tmp_path / "export/ada").mkdir(parents=True, exist_ok=True)
        (tmp_path / "export/ada/softmax.py").write_text(text)
        assert take_in(tmp_path / "export", submitted, NOTEBOOKS, [ADA]).taken == taken
    folder = submitted / "ada/03_softmax"
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "softmax.py": "two",
        "softmax.py.kept1": "one",
    }


def test_a_broken_zip_is_refused_with_a_sentence(tmp_path):
    (tmp_path / "export.zip").write_bytes(b"PK\x03\x04 and nothing more")
    with pytest.raises(click.ClickException, match="cannot be read as a zip file"):
        take_in(tmp_path / "export.zip", tmp_path / "submitted", NOTEBOOKS, [])


def test_an_exercise_of_two_assignments_has_to_be_told_apart(tmp_path):
    (tmp_path / "export/ada").mkdir(parents=True)
    (tmp_path / "export/ada/softmax.py").write_text("x")
    both = {"week1": ["softmax"], "week2": ["softmax"]}
    with pytest.raises(click.ClickException, match="part of week1 and week2"):
        take_in(tmp_path / "export", tmp_path / "submitted", both, [])


def test_one_hand_in_of_several_is_everyones(tmp_path):
    (tmp_path / "export").mkdir()
    (tmp_path / "export/ada+Peña Ruiz José_softmax.py").write_text("theirs")
    intake = take_in(tmp_path / "export", tmp_path / "submitted", NOTEBOOKS, [ADA, JORGE])
    assert intake.students == {"ada", "jp"} and not intake.unknown
