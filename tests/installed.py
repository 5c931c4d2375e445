"""The course as someone installs it: a wheel of this clone, laid into a folder of packages of its own."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT
from tests.typed_commands import Finished, started

MAIN = "import sys; sys.argv[0] = 'course'; from grader.cli import main; main()"


def built_wheel(folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.whl"))


@dataclass(frozen=True)
class Installed:
    """`site`: the entry of the import path that the wheel was laid into."""

    site: Path

    @staticmethod
    def of(wheel: Path, folder: Path) -> Installed:
        zipfile.ZipFile(wheel).extractall(folder / "site-packages")
        return Installed(folder / "site-packages")

    def course(self, *arguments: str | Path, cwd: Path, answer: str = "") -> Finished:
        return self._run("-c", MAIN, *arguments, cwd=cwd, answer=answer)

    def pytest(self, *arguments: str | Path, cwd: Path) -> Finished:
        return self._run("-m", "pytest", *arguments, cwd=cwd)

    def python(self, *arguments: str | Path, cwd: Path) -> Finished:
        return self._run(*arguments, cwd=cwd)

    def _run(self, *arguments: str | Path, cwd: Path, answer: str = "") -> Finished:
        environment = {"PYTHONPATH": str(self.site), "PYTHONSAFEPATH": "1"}
        return started([sys.executable, *map(str, arguments)], cwd, environment, answer)

    def as_version(self, version: str, folder: Path) -> Installed:
        """Another installation, which says that it is this version."""
        site = folder / "site-packages"
        shutil.copytree(self.site, site, ignore=shutil.ignore_patterns("__pycache__"))
        metadata = next(site.glob("*.dist-info/METADATA"))
        text = metadata.read_text(encoding="utf-8")
        metadata.write_text(re.sub("(?m)^Version: .*", f"Version: {version}", text, count=1), encoding="utf-8")
        return Installed(site)

    @property
    def files(self) -> Path:
        return self.site / "triton_course"
