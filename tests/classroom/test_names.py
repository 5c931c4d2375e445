"""Names of files and folders as students, browsers and platforms write them: whose they are, and of which exercise."""

from __future__ import annotations

from pathlib import PurePosixPath

import click
import pytest

from grader.classroom.names import Names, Person, read_roster, submitters
from grader.classroom.sent_files import File

NAMES = Names(("masked_add", "softmax", "online_softmax"), ("01_masked_add", "03_softmax", "13_online_softmax"))


@pytest.mark.parametrize(
    ("name", "means"),
    [
        ("softmax.py", ("softmax", ".py")),
        ("Softmax.PY", ("softmax", ".py")),
        ("softmax.py.txt", ("softmax", ".py")),
        ("softmax.txt", ("softmax", ".py")),
        ("softmax.ipynb.json", ("softmax", ".ipynb")),
        ("softmax (1).ipynb", ("softmax", ".ipynb")),
        ("softmax-2.py", ("softmax", ".py")),
        ("softmax - Copy (3).py", ("softmax", ".py")),
        ("softmax-Copy1.ipynb", ("softmax", ".ipynb")),
        ("softmax - Kopie.py", ("softmax", ".py")),
        ("softmax – copie.py", None),
        ("Copy of softmax.ipynb", ("softmax", ".ipynb")),
        ("Kopie von masked_add (1).ipynb", ("masked_add", ".ipynb")),
        ("Copy of Copy of softmax.ipynb", None),
        ("03_softmax.py", ("softmax", ".py")),
        ("Masked Add.py", ("masked_add", ".py")),
        ("masked-add.ipynb", ("masked_add", ".ipynb")),
        ("online_softmax_2.py", ("online_softmax", ".py")),
        ("my softmax final.py", None),
        ("sofmax.py", None),
        ("softmax.pdf", None),
        ("softmax", None),
        ("softmax.py.kept1", None),
    ],
)
def test_a_files_name_means_an_exercise(name, means):
    assert NAMES.exercise_of(name) == means


@pytest.mark.parametrize(
    ("path", "who", "chosen"),
    [
        ("novakkim_1011_50012_homework.zip/homework/softmax.py", "novakkim", "softmax.py"),
        ("novakkim_1011_50012_homework.pdf", "novakkim", "homework.pdf"),
        ("fringgus_LATE_1007_50008_softmax.py.txt", "fringgus", "softmax.py.txt"),
        ("Ada Lovelace_7001_assignsubmission_file_/hw.zip/softmax.py", "Ada Lovelace", "softmax.py"),
        ("Ada Lovelace_7001_assignsubmission_file_softmax (1).py", "Ada Lovelace", "softmax (1).py"),
        ("assignment_12_export/submission_77/softmax.py", "submission_77", "softmax.py"),
        ("ada.zip/softmax.py", "ada", "softmax.py"),
        ("ada/notes.pdf", "ada", "notes.pdf"),
        ("ada_Softmax.py.txt", "ada", "Softmax.py.txt"),
        ("ada_03_softmax.py", "ada", "03_softmax.py"),
        ("bob_sofmax.py", "bob", "sofmax.py"),
    ],
)
def test_a_path_names_its_student_whatever_the_file_is(path, who, chosen):
    owner, rest = NAMES.owner_of(PurePosixPath(path))
    assert (owner.name, rest) == (who, chosen)


@pytest.mark.parametrize(
    "path", ["softmax.py", "03_softmax.py", "03_softmax/softmax.py", "notes.txt", "/ada/softmax.py"]
)
def test_a_path_that_names_nobody(path):
    assert NAMES.owner_of(PurePosixPath(path)) == (None, "")


METADATA = b"""
submission_77:
  :submitters:
  - :name: Ada Lovelace
    :sid: '1001'
    :email: ada@example.org
  - :name: Bob Ross
    :sid:
    :email: bob@example.org
  :created_at: 2027-05-01 12:00:00 Z
softmax: {}
"""


def sent(path: str, data: bytes) -> File:
    return File(PurePosixPath(path), len(data), 0, lambda: data)


def test_gradescope_says_whose_a_folder_is_and_no_student_does():
    ada = Person("1001", "Ada", "Lovelace", "ada@example.org")
    bob = Person("bob@example.org", "Bob", "Ross", "bob@example.org")
    for place in ("", "assignment_12_export/"):
        assert submitters([sent(f"{place}submission_metadata.yml", METADATA)]) == {"submission_77": [ada, bob]}
    for place in ("mallory/", "submission_78/", "assignment_12_export/submission_78/"):
        assert submitters([sent(f"{place}submission_metadata.yml", METADATA)]) == {}
    for broken in (b"- x", b"a: [", b"submission_1: {}", b"!!python/object/apply:os.system [x]"):
        with pytest.raises(click.ClickException, match="Download the export again"):
            submitters([sent("submission_metadata.yml", broken)])


def test_a_list_of_students_is_read_as_spreadsheets_write_it(tmp_path):
    path = tmp_path / "students.csv"
    path.write_text("\ufeffid;first_name;last_name;email;lms_user_id\r\nada;Ada;Lovelace;ada@example.org;789\r\n")
    assert read_roster(path) == [Person("ada", "Ada", "Lovelace", "ada@example.org", "789")]
    path.write_text("id\nada\nbob\n")
    assert [person.id for person in read_roster(path)] == ["ada", "bob"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"name,number\nada,1\n", "has no id for each student"),
        (b"", "has no id for each student"),
        (b"id\nada\nada\n", "has ada twice"),
        (b"id\n\xfc\n", "is not UTF-8 text"),
    ],
)
def test_a_list_of_students_that_is_none_is_a_sentence(tmp_path, data, said):
    (tmp_path / "students.csv").write_bytes(data)
    with pytest.raises(click.ClickException, match=said):
        read_roster(tmp_path / "students.csv")
