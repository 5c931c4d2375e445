"""The containers: their files are read as an editor reads them, and their commands are those of the README.

No container is started here; the README's commands are what runs inside of one.
"""

from __future__ import annotations

import json
import re
import shlex

import pytest

from tests.conftest import ROOT

FILES = [".devcontainer/devcontainer.json", ".devcontainer/gpu/devcontainer.json"]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [line for block in re.findall(r"^```\n(.*?)^```$", README, re.M | re.S) for line in block.splitlines()]


@pytest.mark.parametrize("name", FILES)
def test_a_container_is_set_up_by_a_command_of_the_readme(name):
    stated = json.loads((ROOT / name).read_text(encoding="utf-8"))
    command = stated["postCreateCommand"]  # which has to end well; the first verdict on a stub does not
    assert command.replace('".[gpu]"', ".") + " && pytest exercises/01_masked_add" in COMMANDS
    assert '-e ".[gpu]"' in README and f"`{name}`" in README
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
