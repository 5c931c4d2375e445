"""The containers: their files are read as an editor reads them, and their commands are those of the README.

No container is started here; the commands of the README and of docs/systems.md are what runs inside of one.
"""

from __future__ import annotations

import json
import re
import shlex

import pytest

from tests.conftest import ROOT

FILES = [".devcontainer/devcontainer.json", ".devcontainer/gpu/devcontainer.json"]
PAGES = [(ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "docs/systems.md")]
BLOCKS = [block for page in PAGES for block in re.findall(r"^```\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)]
SET_UP = [line.split(" && ") for block in BLOCKS for line in block.splitlines()]


@pytest.mark.parametrize("name", FILES)
def test_a_container_is_set_up_by_the_commands_of_the_readme(name):
    stated = json.loads((ROOT / name).read_text(encoding="utf-8"))
    command = stated["postCreateCommand"]
    assert set(command.split(" && ")) <= {part for line in SET_UP for part in line}
    assert command.startswith("python3 -m venv .venv && ") and command.endswith(" && course demo")
    assert f"`{name}`" in PAGES[1]
    named = [word for word in shlex.split(command) if word.endswith(".txt")]
    assert named and all((ROOT / path).exists() for path in named)
    assert stated["customizations"]["vscode"]["settings"]["python.defaultInterpreterPath"].endswith("/.venv/bin/python")


@pytest.mark.parametrize("name", FILES)
def test_an_image_is_one_release_of_a_supported_python(name):
    image = json.loads((ROOT / name).read_text(encoding="utf-8"))["image"]
    assert re.fullmatch(r"python:3\.1[123]\.\d+-bookworm", image)


def test_every_container_that_is_there_is_tested():
    assert sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(".devcontainer/**/*.json")) == sorted(FILES)


def test_only_the_container_for_a_gpu_asks_for_one():
    without, with_gpu = (json.loads((ROOT / name).read_text(encoding="utf-8")) for name in FILES)
    assert "--gpus" not in without.get("runArgs", []) and "gpu" not in without["hostRequirements"]
    assert with_gpu["runArgs"] == ["--gpus", "all"] and with_gpu["hostRequirements"]["gpu"] is True
