"""Whose a file is and which of several counts: the same for a folder of submissions and for an export to nbgrader."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from grader.classroom import intake
from grader.classroom.handin import HandIn, read_hand_in
from grader.classroom.intake import take_in, take_in_groups
from grader.classroom.names import Person
from grader.classroom.plain_folder.submissions import read_submissions
from grader.course.folder import Folder
from tests.classroom.instructor import ROOT
from tests.classroom.test_names import METADATA

ADD, STUB = "01_masked_add", "# nothing yet\n"
ROSTER = [Person("ada", "Ada", "Lovelace"), Person("bob", "Bob", "Ross")]
SAME_TIME = (2027, 5, 1, 12, 0, 0)


def zipped(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name, SAME_TIME), text)
    return path


def out_of(source: Path, roster: list[Person]) -> dict[str, HandIn]:
    """What --out reads."""
    found = read_submissions(source, [Folder(ROOT / "exercises" / ADD)], (), source / "results", roster)
    return {one.student: one.hand_in for one in found.all if not one.hand_in.absent}


def into(source: Path, submitted: Path, roster: list[Person]) -> dict[str, HandIn]:
    """What --from takes in, read as each later run does."""
    take_in(source, submitted, {ADD: ["masked_add"]}, roster)
    return {each.name: read_hand_in(each / ADD, "masked_add", STUB) for each in sorted(submitted.iterdir())}


LONE = "_assignsubmission_file_/masked_add.py"


def gradescopes(root: str) -> dict[str, str]:
    """The files of Gradescope's export where it lies in this folder."""
    return {
        f"{root}submission_metadata.yml": METADATA.decode(),
        f"{root}submission_77/masked_add.py": "1",
        f"{root}submission_78/masked_add.py": "2",
    }


OF_GRADESCOPE = {"1001": "1", "bob@example.org": "1", "submission_78": "2"}
EXPORTS = {  # the files, and whose text counts for whom; None where it is taken from none
    "a copy's number": ({"ada/masked_add.py": "1", "ada/masked_add (1).py": "2"}, {"ada": "2"}),
    "ten copies": ({"ada/masked_add-9.py": "9", "ada/masked_add-10.py": "10"}, {"ada": "10"}),
    "a subfolder": ({"ada/old/masked_add.py": "1", "ada/masked_add.py": "2"}, {"ada": "2"}),
    "a file beside the folder": ({"ada/masked_add.py": "1", "ada_masked_add.py": "2"}, {"ada": None}),
    "hand-ins": ({"rossbob_2_7_masked_add-1.py": "7", "rossbob_2_8_masked_add.py": "8"}, {"bob": "8"}),
    "one name": ({f"Eva Ey_501{LONE}": "1", f"Eva Ey_502{LONE}": "2"}, {"Eva Ey_501": "1", "Eva Ey_502": "2"}),
    "a folder around": ({f"week1/{who}/masked_add.py": who for who in ("ada", "bob", "dora")},
                        {who: who for who in ("ada", "bob", "dora")}),
    "a folder around strangers": ({f"week1/{who}/masked_add.py": who for who in ("eve", "fay")}, {"week1": None}),
    "a student alone": ({f"ada/{who}/masked_add.py": who for who in ("ada", "bob")}, {"ada": None}),
    "a student's zip alone": ({f"ada.zip/{who}/masked_add.py": who for who in ("ada", "bob")}, {"ada": None}),
    "a group alone": ({f"ada+bob/{who}/masked_add.py": who for who in ("ada", "bob")}, {"ada": None, "bob": None}),
    "a folder around Gradescope's": (
        gradescopes("exp/"),
        OF_GRADESCOPE,
    ),
    "two folders around Gradescope's": (gradescopes("submissions (1)/assignment_12_export/"), OF_GRADESCOPE),
    "three folders around Gradescope's": (gradescopes("a b/submissions (1)/exp/"), OF_GRADESCOPE),
    "a folder beside Gradescope's": ({**gradescopes("exp/"), "my notes/readme.txt": "x"}, OF_GRADESCOPE),
    "a file beside Gradescope's": ({**gradescopes("exp/"), "readme.txt": "x"}, OF_GRADESCOPE),
    "a Mac's folder beside Gradescope's": ({**gradescopes("exp/"), "__MACOSX/exp/._a.py": "x"}, OF_GRADESCOPE),
    "Gradescope's zip": (gradescopes("down/assignment_12_export.zip/"), OF_GRADESCOPE),
    "one student in a folder around Gradescope's": (
        {name: text for name, text in gradescopes("submissions (1)/").items() if "78" not in name},
        {"1001": "1", "bob@example.org": "1"},
    ),
    "two folders around": ({f"submissions (1)/week1/{who}/masked_add.py": who for who in ("ada", "bob", "dora")},
                           {who: who for who in ("ada", "bob", "dora")}),
    "a folder around, and another student": (
        {**{f"HW3/{who}/masked_add.py": who for who in ("ada", "bob", "dora")}, "cem/masked_add.py": "cem"},
        {who: who for who in ("ada", "bob", "dora", "cem")},
    ),
    "a folder around, and files": (
        {**{f"HW3/{who}/masked_add.py": who for who in ("Ross Bob", "Ada Lovelace")}, "late_masked_add.py": "late",
         "notes.txt": "x"},
        {"ada": "Ada Lovelace", "bob": "Ross Bob", "late": "late"},
    ),
    "two folders around, side by side": (
        {"HW3/ada/masked_add.py": "1", "HW3/bob/masked_add.py": "2",
         "late/ada/masked_add.py": "3", "late/bob/notes.txt": "x"},
        {"ada": None, "bob": "2"},
    ),
    "a folder around strangers, and another student": (
        {**{f"week1/{who}/masked_add.py": who for who in ("eve", "fay")}, "ada/masked_add.py": "ada"},
        {"week1": None, "ada": "ada"},
    ),
    "a student's folders, and another student": (
        {"ada/1/masked_add.py": "1", "ada/2/masked_add.py": "2", "bob/masked_add.py": "bob"},
        {"ada": "2", "bob": "bob"},
    ),
    "letters with marks": ({"Ju\u0308rgen/masked_add.py": "his"}, {"J\xfcrgen": "his"}),
    "a group": ({"ada+bob/masked_add.py": "both"}, {"ada": "both", "bob": "both"}),
}  # fmt: skip


@pytest.mark.parametrize(("files", "expected"), EXPORTS.values(), ids=EXPORTS)
def test_both_ways_read_the_same(tmp_path, files, expected):
    source = zipped(tmp_path / "export.zip", files)
    found = out_of(source, ROSTER), into(source, tmp_path / "submitted", ROSTER)
    for hand_ins in found:
        texts = {who: one.text.rstrip() if one.text else None for who, one in hand_ins.items()}
        assert texts == expected
        assert all(one.text or "at several places and taken from" in one.problem for one in hand_ins.values())
    assert [one.together for one in found[0].values()] == [one.together for one in found[1].values()]


def test_a_groups_hand_in_at_several_places_is_one_note(tmp_path):
    files = {"ada+bob/masked_add.py": "1", "ada/masked_add.py": "2"}
    found = read_submissions(
        zipped(tmp_path / "export.zip", files), [Folder(ROOT / "exercises" / ADD)], (), tmp_path, ROSTER
    )
    assert found.all[0].note.startswith("Handed in together by ada, bob; masked_add was sent at several places")


def test_no_advice_to_unpack_where_the_folder_around_is_told(tmp_path):
    places = ("assign/ada/masked_add.py", "assign/ada_masked_add.py", "assign/bob/masked_add.py")
    source = zipped(tmp_path / "export.zip", dict.fromkeys(places, "x"))
    found = read_submissions(source, [Folder(ROOT / "exercises" / ADD)], (), tmp_path, ROSTER)
    taken = take_in(source, tmp_path / "submitted", {ADD: ["masked_add"]}, ROSTER)
    for told in (found, taken):
        assert told.around == ("assign",)
        (line,) = told.clashes
        assert line.endswith("Leave one of them in the export, then run the command again.")


def test_a_folder_around_gradescopes_folders_is_told_if_it_is_not_gradescopes(tmp_path):
    for around, told in (("exp", ("exp",)), ("assignment_12_export", ())):
        files = {f"{around}/submission_metadata.yml": METADATA.decode(), f"{around}/submission_77/masked_add.py": "1",
                 f"{around}/submission_78/masked_add.py": "2"}  # fmt: skip
        source = zipped(tmp_path / f"{around}.zip", files)
        assert take_in(source, tmp_path / "submitted", {ADD: ["masked_add"]}, ROSTER).around == told


def test_gradescopes_folder_beside_hand_ins_is_told_and_may_be_a_students(tmp_path):
    """Who sends such a folder, with a list of its own, sends nothing in the name of others."""
    files = {**gradescopes("exp/"), "mine/masked_add.py": "x"}
    taken = take_in(zipped(tmp_path / "a.zip", files), tmp_path / "submitted", {ADD: ["masked_add"]}, ROSTER)
    (line,) = [one for one in taken.ignored if one.startswith("exp: ")]
    assert line.endswith("If it is no student's, unpack the export, and name that folder instead.")
    assert taken.students == {"exp", "mine"}
    own = take_in(zipped(tmp_path / "b.zip", gradescopes("ada/")), tmp_path / "of_ada", {ADD: ["masked_add"]}, ROSTER)
    assert own.students == {"ada"}


def test_notes_have_the_names_that_the_student_knows(tmp_path):
    files = {"evaey_1_5009_masked_add.py": "older", "evaey_1_5109_masked_add-1.py": "newer"}
    (hand_in,) = into(zipped(tmp_path / "export.zip", files), tmp_path / "submitted", []).values()
    assert (hand_in.text, hand_in.notes) == ("newer\n", ["masked_add.py was not judged: masked_add-1.py is newer."])
    files["evaey_1_5209_masked_add.py"] = "newest"
    (hand_in,) = into(zipped(tmp_path / "more.zip", files), tmp_path / "submitted", []).values()
    assert hand_in.text == "newest\n"
    assert "earlier 1/masked_add.py was not judged: masked_add.py is newer." in hand_in.notes


def test_a_file_in_the_way_of_another_keeps_nobody_from_being_graded(tmp_path):
    files = {
        "ada/masked_add.py": "1",
        "ada/masked_add.py/masked_add.py": "2",
        "ada/masked_add.ipynb/masked_add.py": "3",
    }
    for _ in range(2):
        (hand_in,) = into(zipped(tmp_path / "export.zip", files), tmp_path / "submitted", []).values()
        assert hand_in.text == "1\n" and len(hand_in.notes) == 2


def test_a_link_in_an_export_is_not_followed_and_told(tmp_path):
    (tmp_path / "export/ada").mkdir(parents=True)
    (tmp_path / "secret").write_text("the instructor's")
    (tmp_path / "export/ada/masked_add.py").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "export/bob_masked_add.py")
    found = into(tmp_path / "export", tmp_path / "submitted", [])
    assert found["ada"].problem == "masked_add.py is a link; hand in the file itself"
    assert found["bob"].problem == "masked_add.py is not a file"


def test_a_windows_path_is_a_path(tmp_path):
    (tmp_path / "export").mkdir()
    (tmp_path / "export/sam\\masked_add.py").write_text("his")
    for found in (out_of(tmp_path / "export", []), into(tmp_path / "export", tmp_path / "submitted", [])):
        assert found["sam"].text == "his\n"


def test_a_group_in_nbgraders_folder_is_its_students(tmp_path):
    (tmp_path / f"kim+lee/{ADD}").mkdir(parents=True)
    (tmp_path / f"kim+lee/{ADD}/masked_add.py").write_text("theirs")
    for taken in (2, 0):
        assert take_in_groups(tmp_path, {ADD: ["masked_add"]}, []).taken == taken
    for student in ("kim", "lee"):
        hand_in = read_hand_in(tmp_path / student / ADD, "masked_add", STUB)
        assert (hand_in.text, hand_in.notes) == ("theirs\n", ["Handed in together by kim, lee."])
    os.utime(tmp_path / f"kim/{ADD}/kim_lee/masked_add.py", (0, 0))
    (tmp_path / f"kim/{ADD}/masked_add.py").write_text("later, alone")
    take_in_groups(tmp_path, {ADD: ["masked_add"]}, [])
    assert read_hand_in(tmp_path / "kim" / ADD, "masked_add", STUB).text == "later, alone\n"


@pytest.mark.parametrize(
    ("files", "is_told"),
    [
        (("week1/ada/masked_add.py", "week1/bob/softmax.py"), True),
        (("week1/ada/masked_add.py", "week1/bob/softmax.py", "eve/masked_add.py"), True),
        (("week1/masked_add.py", "week1/bob/softmax.py"), False),
        (("kim/add/masked_add.py", "kim/my softmax/softmax.py", "kim/03_softmax/softmax.py"), False),
        (("kim/part 1/masked_add.py", "kim/part 2/softmax.py", "lee/part 1/masked_add.py"), False),
    ],
)
def test_a_folder_that_may_be_two_students_with_an_exercise_each_is_judged_and_told(tmp_path, files, is_told):
    """Nothing is taken from anybody: one student may have a folder for each exercise."""
    source = zipped(tmp_path / "export.zip", dict.fromkeys(files, "x"))
    both = [Folder(ROOT / "exercises" / each) for each in (ADD, "03_softmax")]
    found = read_submissions(source, both, (), tmp_path, [])
    assert sum(one.text is not None for one in found.all) == len(set(files)) - ("kim/03_softmax/softmax.py" in files)
    said = (
        "week1 was taken for one student's folder: masked_add in ada, softmax in bob. If these are several students', "
        "move their folders out of it, or give a list of the students."
    )
    assert found.clashes == ([said] if is_told else [])
    in_rows = {one.exercise for one in found.all if said in one.hand_in.notes}
    assert in_rows == ({ADD, "03_softmax"} if is_told else set())


def test_a_file_that_is_too_large_is_told_in_its_students_row(tmp_path, monkeypatch):
    monkeypatch.setattr(intake, "MOST_BYTES", 3)
    (hand_in,) = into(zipped(tmp_path / "export.zip", {"ada/masked_add.py": "large"}), tmp_path / "in", []).values()
    assert not hand_in.absent and "was not taken; hand in the kernel" in hand_in.problem


@pytest.mark.parametrize("hidden", [".ipynb_checkpoints/masked_add-checkpoint.ipynb", ".mine/masked_add.py"])
def test_who_sent_only_hidden_files_has_a_row_that_says_so(tmp_path, hidden):
    files = {f"ada/{hidden}": "x", "ada/.DS_Store": "", f"bob/{hidden}": "x", "bob/masked_add.py": "1"}
    source = zipped(tmp_path / "export.zip", files)
    for found, told in (
        (out_of(source, []), f"there is ada/{hidden} (is hidden and was not read; hand in the file itself)"),
        (into(source, tmp_path / "submitted", []), f"there is {hidden[1:]}.hidden"),
    ):
        assert found["ada"].text is None and found["ada"].problem.endswith(told)
        assert (found["bob"].text, found["bob"].notes) == ("1\n", [])


def test_a_file_named_for_its_student_alone_is_told_in_the_students_row(tmp_path):
    files = {"ada/masked_add.py": "1", "bob.py": "2", "eve.py": "3"}
    source = zipped(tmp_path / "export.zip", files)
    for found in (out_of(source, ROSTER), into(source, tmp_path / "submitted", ROSTER)):
        assert found["bob"].problem == "masked_add.ipynb or masked_add.py was expected; there is bob.py"
        assert [*found] == ["ada", "bob"]


def test_a_second_file_whose_name_has_an_exercises_is_told_in_its_row(tmp_path):
    files = {"ada/softmax.py": "broken", "ada/softmax_final_v2.py": "right", "ada/softmax notes.pdf": "x"}
    source = zipped(tmp_path / "export.zip", files)
    both = [Folder(ROOT / "exercises" / each) for each in (ADD, "03_softmax")]
    read = read_submissions(source, both, both, tmp_path, [])
    add, softmax = (one.hand_in for one in read.all)
    assert add.absent
    assert softmax.notes == [
        "ada/softmax_final_v2.py was not judged: no file of an exercise is called so; softmax.py is."
    ]
    assert read.ignored == ["ada/softmax notes.pdf: no .py file or notebook of an exercise is called so"]
    take_in(source, tmp_path / "submitted", {ADD: ["masked_add"], "03_softmax": ["softmax"]}, [])
    assert not (tmp_path / "submitted/ada" / ADD).exists()
    assert read_hand_in(tmp_path / "submitted/ada/03_softmax", "softmax", STUB).notes == [
        "softmax_final_v2.py was not judged: no file of an exercise is called so; softmax.py is."
    ]


def test_a_name_that_the_roster_has_twice_is_told_so(tmp_path):
    twins = [Person("as1", "Anna", "Schmidt"), Person("as2", "Anna", "Schmidt")]
    source = zipped(tmp_path / "export.zip", {f"Anna Schmidt_104{LONE}": "1", f"Eva Ey_105{LONE}": "2"})
    found = read_submissions(source, [Folder(ROOT / "exercises" / ADD)], (), tmp_path, twins)
    taken = take_in(source, tmp_path / "submitted", {ADD: ["masked_add"]}, twins)
    for told in (found, taken):
        assert told.clashes == [
            "Anna Schmidt: the list of students has 2 of this name, as1 and as2, and nothing says which of them it is. "
            "Name the folder or the file by the student's id, then run the command again."
        ]
