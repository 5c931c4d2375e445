"""Files for people and services around the project: pages, workflow, hooks and issue forms name what is there."""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from pathlib import Path

import pytest
import yaml

from grader.cli import COMMANDS
from grader.doctor.doctor import PYTHONS
from tests.conftest import ROOT
from tests.parts import PARTS

WORKFLOW, SITE, HOOKS = ".github/workflows/tests.yml", ".github/workflows/site.yml", ".pre-commit-config.yaml"
FORMS = sorted(ROOT.glob(".github/ISSUE_TEMPLATE/*.yml"))
PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md")
LINK = re.compile(r"\]\((?!https:)([^)\s#]*)(?:#([\w-]+))?\)|^\[[^\]]+\]: (?!https:)([^\s#]+)$", re.MULTILINE)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
COMMAND = re.compile(r"\bcourse ([a-z]+)")


def read(name: str) -> dict:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """Returns the anchors that GitHub gives the headings of a page."""
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    broken = []
    for file, anchor, defined in LINK.findall(page.read_text(encoding="utf-8")):
        target = page.parent / (file or defined) if file or defined else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(f"{file or defined}#{anchor}")
    return broken


@pytest.mark.parametrize("name", PAGES)
def test_links_of_a_page_lead_somewhere(name):
    assert broken_links(ROOT / name) == []


def test_a_link_that_leads_nowhere_is_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One\n[a](page.md#one) [b](#two) [c](gone.md) [d](https://a.org)\n\n[e]: gone.py\n")
    assert broken_links(page) == ["#two", "gone.md#", "gone.py#"]


def test_the_changelog_tells_of_the_version_of_the_package_and_is_short():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert re.findall(r"^## ([\d.]+) - ", text, re.MULTILINE)[0] == version
    assert len(text.splitlines()) <= 80


def test_the_workflow_runs_the_command_of_the_readme():
    steps = read(WORKFLOW)["jobs"]["tox"]["steps"]
    readme = re.findall(r"^```\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert steps[-1]["run"].strip() in [line for block in readme for line in block.splitlines()]
    assert "commands = python -m tests.parts" in (ROOT / "tox.ini").read_text()


def test_the_workflow_runs_on_both_architectures_and_both_ends_of_the_supported_pythons():
    job = read(WORKFLOW)["jobs"]["tox"]
    ends = [".".join(map(str, version)) for version in PYTHONS]
    assert job["strategy"]["matrix"] == {"system": ["ubuntu-24.04", "ubuntu-24.04-arm"], "python": ends}
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert requires == f">={ends[0]}"


@pytest.mark.parametrize("name", [WORKFLOW, SITE])
def test_a_workflow_takes_actions_by_their_major_version(name):
    used = [step["uses"] for job in read(name)["jobs"].values() for step in job["steps"] if "uses" in step]
    assert used and all(re.fullmatch(r"actions/[\w-]+@v\d+", action) for action in used)


def test_the_site_is_published_from_the_folder_that_it_is_written_to():
    build, publish = (read(SITE)["jobs"][name] for name in ("build", "publish"))
    command = next(step["run"] for step in build["steps"] if "run" in step)
    (upload,) = [step for step in build["steps"] if "upload-pages-artifact" in step.get("uses", "")]
    assert command.endswith(f"course site --out {upload['with']['path']}") and "site" in COMMANDS
    assert publish["needs"] == "build" and publish["permissions"] == {"pages": "write", "id-token": "write"}
    assert read(SITE)[True]["push"] == {"branches": ["main"]}  # YAML takes the word `on` for a truth value


def test_hooks_run_what_is_installed_and_fetch_nothing():
    repositories = read(HOOKS)["repos"]
    hooks = [hook for repository in repositories for hook in repository["hooks"]]
    assert {repository["repo"] for repository in repositories} == {"local"}
    assert {hook["language"] for hook in hooks} == {"system"}
    words = [shlex.split(hook["entry"]) for hook in hooks]
    assert [command[0] for command in words if shutil.which(command[0]) is None] == []
    files = [word for command in words for word in command if word.endswith(".py")]
    assert files and [file for file in files if not (ROOT / file).is_file()] == []


def test_hooks_run_all_of_lint():
    entries = [hook["entry"] for hook in read(HOOKS)["repos"][0]["hooks"]]
    for command in PARTS["lint"].commands:
        first = " ".join(word for word in command.split() if word[0] not in "-.")
        assert any(entry.startswith(first) for entry in entries), command


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_asks_for_the_file_the_seed_and_the_machine(path):
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert form["name"] and form["description"] and form["labels"]
    fields = {field["id"]: field for field in form["body"] if field["type"] != "markdown"}
    assert {"file", "seed", "doctor"} <= set(fields)
    assert all(field["type"] in ("input", "textarea") and field["attributes"]["label"] for field in fields.values())
    assert list(fields.values())[0]["validations"] == {"required": True}


def test_there_is_a_form_for_each_report_and_each_names_commands_that_are_there():
    assert len(FORMS) == 4
    named = {command for path in FORMS for command in COMMAND.findall(path.read_text(encoding="utf-8"))}
    assert named == {"doctor", "why"} and named <= set(COMMANDS)
    report = (ROOT / "grader" / "session" / "terminal_report.py").read_text(encoding="utf-8")
    assert "Again with these data:" in report and "Again with these data" in FORMS[0].read_text(encoding="utf-8")


def test_the_editors_settings_are_those_of_ruff():
    settings = (ROOT / ".editorconfig").read_text(encoding="utf-8")
    length = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["line-length"]
    assert f"\nmax_line_length = {length}\n" in settings


def test_each_decision_says_what_was_rejected_and_what_it_costs():
    page = ROOT / "docs" / "decisions.md"
    _, *records = page.read_text(encoding="utf-8").split("\n## ")
    assert [record.partition(".")[0] for record in records] == [str(1 + place) for place in range(len(records))]
    parts = ["Context", "Decision", "Rejected", "Consequence"]
    assert [record for record in records if re.findall(r"^- \*\*(\w+)\.\*\*", record, re.MULTILINE) != parts] == []
    assert [record for record in records if len(record.strip().splitlines()) > 14] == []
    assert broken_links(page) == []
