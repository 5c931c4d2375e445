"""Zips inside of what was sent are opened, within bounds; what cannot be read stays, and says why."""

from __future__ import annotations

import io
import zipfile

import pytest

from grader.classroom import sent_files
from grader.classroom.sent_files import files_in, sent


def zipped(files: dict[str, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def told(folder) -> dict[str, object]:
    return {str(file.path): file.problem or file.read() for file in files_in(folder)}


KERNEL = {"homework/softmax.py": b"mine", "__MACOSX/homework/._softmax.py": b"", "homework/.DS_Store": b""}


def test_a_zip_is_a_folder_also_in_a_zip(tmp_path):
    (tmp_path / "ada.zip").write_bytes(zipped(KERNEL))
    (tmp_path / "bob").mkdir()
    (tmp_path / "bob/all.ZIP").write_bytes(zipped({"inner.zip": zipped(KERNEL)}))
    expected = {"ada.zip/homework/softmax.py": b"mine", "bob/all.ZIP/inner.zip/homework/softmax.py": b"mine"}
    assert told(tmp_path) == expected
    (tmp_path / "export.zip").write_bytes(zipped({"ada.zip": zipped(KERNEL)}))
    with sent(tmp_path / "export.zip") as files:
        assert [(str(file.path), file.read()) for file in files] == [("ada.zip/homework/softmax.py", b"mine")]


@pytest.mark.parametrize("name", ["/bob/softmax.py", "//bob/softmax.py", "\\bob\\softmax.py"])
def test_a_zip_leads_nowhere_else(tmp_path, name):
    (tmp_path / "ada.zip").write_bytes(zipped({name: b"mine", "../bob/softmax.py": b"mine"}))
    assert told(tmp_path) == {"ada.zip/bob/softmax.py": b"mine"}


def encrypted(data: bytes) -> bytes:
    """Sets the bit that says so, in both headers of the only file."""
    broken = bytearray(data)
    broken[6] |= 1
    broken[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(broken)


DEEP = zipped({"a.zip": zipped({"b.zip": zipped({"c.zip": zipped(KERNEL)})})})


@pytest.mark.parametrize(
    ("data", "at", "problem"),
    [
        (b"PK\x03\x04 and nothing more", "", "cannot be opened (File is not a zip file)"),
        (b"", "", "cannot be opened (File is not a zip file)"),
        (zipped({}), "", "holds no file"),
        (zipped(dict.fromkeys(map(str, range(6)), b"")), "", "cannot be opened (it holds more than 5 files)"),
        (zipped({"big.zip": bytes(2 << 20)}), "/big.zip", "cannot be opened (it has more than 1 MB)"),
        (DEEP, "/a.zip/b.zip/c.zip", "cannot be opened (more than 3 zips lie in each other)"),
    ],
    ids=["torn", "empty file", "empty", "many", "a bomb", "deep"],
)
def test_what_is_not_opened_is_told(tmp_path, monkeypatch, data, at, problem):
    monkeypatch.setattr(sent_files, "MOST_PACKED", 5)
    monkeypatch.setattr(sent_files, "MOST_UNPACKED", 1 << 20)
    monkeypatch.setattr(sent_files, "_Room", lambda: room(5, 1 << 20))
    (tmp_path / "hw.zip").write_bytes(data)
    assert told(tmp_path) == {f"hw.zip{at}": problem}


def room(files: int, bytes: int, kind=sent_files._Room):
    return kind(files, bytes)


def test_a_file_of_a_zip_with_a_password_cannot_be_read(tmp_path):
    (tmp_path / "hw.zip").write_bytes(encrypted(zipped({"softmax.py": b"mine"})))
    (file,) = files_in(tmp_path)
    with pytest.raises(OSError, match="in a zip: .*encrypted"):
        file.read()


def test_links_and_pipes_are_not_followed(tmp_path):
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada/softmax.py").symlink_to(tmp_path)
    (tmp_path / "bob").symlink_to(tmp_path / "ada")
    assert told(tmp_path) == {"ada/softmax.py": sent_files.LINK, "bob": sent_files.LINK}
