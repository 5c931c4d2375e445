"""Exports of learning platforms: which file is whose, and what is left out."""

from __future__ import annotations

import zipfile

import click
import pytest

from grader.classroom.intake import Person, take_in

NOTEBOOKS = {"01_masked_add": ["masked_add"], "03_softmax": ["softmax"]}
ADA = Person("ada", "Ada", "Lovelace", "ada@example.org", "789")
JORGE = Person("jp", "José", "Peña Ruiz", "jp@example.org", "790")


@pytest.mark.parametrize(
    "name, place",
    [
        ("ada/03_softmax/softmax.py", "ada/03_softmax/softmax.py"),
        ("ada/softmax.py", "ada/03_softmax/softmax.py"),
        ("ada_softmax.py", "ada/03_softmax/softmax.py"),
        ("ada/masked_add (2).ipynb", "ada/01_masked_add/masked_add.ipynb"),
        ("hand-ins/ada@example.org/softmax.py", "ada/03_softmax/softmax.py"),
        ("Ada Lovelace_1234_assignsubmission_file_/softmax.py", "ada/03_softmax/softmax.py"),
        ("Ada Lovelace_1234_assignsubmission_file_softmax.ipynb", "ada/03_softmax/softmax.ipynb"),
        ("Peña Ruiz José_1234_assignsubmission_file/masked_add.py", "jp/01_masked_add/masked_add.py"),
        ("lovelaceada_789_4567_softmax-1.py", "ada/03_softmax/softmax.py"),
        ("whoever_LATE_790_4567_softmax.py", "jp/03_softmax/softmax.py"),
        ("Grace Hopper/softmax.py", "Grace Hopper/03_softmax/softmax.py"),
    ],
)
def test_a_file_finds_its_student_and_its_exercise(tmp_path, name, place):
    archive = tmp_path / "export.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(name, "my kernel")
    intake = take_in(archive, tmp_path / "submitted", NOTEBOOKS, [ADA, JORGE])
    assert [str(path.relative_to(tmp_path / "submitted")) for path in (tmp_path / "submitted").rglob("*.*")] == [place]
    assert intake.taken == 1
    assert intake.unknown == ({"Grace Hopper"} if "Grace" in name else set())


def test_what_names_no_student_and_exercise_is_told(tmp_path):
    for name in ("softmax.py", "ada/notes.txt", "ada/other.py", "__MACOSX/ada/softmax.py", "ada/.hidden/softmax.py"):
        (tmp_path / "export" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "export" / name).write_text("x")
    intake = take_in(tmp_path / "export", tmp_path / "submitted", NOTEBOOKS, [ADA])
    assert intake.taken == 0
    assert intake.ignored == ["ada/notes.txt", "ada/other.py", "softmax.py"]


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
