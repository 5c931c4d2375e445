"""course status, open, solution, reset and the command line itself, as a learner types them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from grader.author import stubs
from grader.cli import COMMANDS
from grader.course.folder import all_folders
from grader.course.regions import stub_text
from grader.explain.verdict import FAIL, PASS
from grader.learn import demo
from grader.progress import progress
from grader.show.terminal import WIDEST
from tests.typed_commands import run_pytest

ROOT = Path(__file__).resolve().parents[2]
SOLUTION_LINE = 'x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=mask, other=-float("inf"))'


# ---- the command line -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(untouched, name):
    done = untouched.here(name, "--help")
    assert done.status == 0 and f"Example:  course {name}" in done.out


@pytest.mark.parametrize("arguments", [("status",), ("hint", "03"), ("explain", "race"), ("--help",)])
def test_what_has_to_answer_at_once_imports_nothing_heavy(course, arguments):
    script = (
        "import sys\nfrom grader.cli import main\ntry: main(sys.argv[1:], prog_name='course')\n"
        "finally: print(sorted({'torch', 'triton', 'numpy', 'pytest', 'matplotlib'} & sys.modules.keys()))"
    )
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, cwd=course.path, env=course.environment(), capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr


LACKING = (
    f"not installed for {sys.executable}. Next: python -m pip install -c constraints.txt -e . in the course's folder"
)


def without(names: tuple[str, ...], call: str, course, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in a Python that finds no package of these names."""
    script = f"import sys\nsys.modules.update(dict.fromkeys({names}))\n{call}"
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, cwd=course.path, env=course.environment(), capture_output=True, text=True)


@pytest.mark.parametrize("arguments", [("programs", "01"), ("doctor",), ("demo",)])
def test_an_environment_without_torch_is_told_in_a_sentence(untouched, arguments):
    done = without(("torch",), "from grader.cli import main\nmain(prog_name='course')", untouched, *arguments)
    assert done.returncode == 1 and done.stderr.splitlines()[-1] == f"Error: torch is {LACKING}"


@pytest.mark.parametrize(("names", "are"), [(("triton",), "triton is"), (("torch", "triton"), "torch and triton are")])
def test_pytest_says_what_an_environment_lacks_before_it_judges(untouched, names, are):
    done = without(names, "import pytest\nsys.exit(pytest.main())", untouched, "exercises/01_masked_add")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR and done.stdout == ""
    assert done.stderr.strip() == f"ERROR: {are} {LACKING}"


@pytest.mark.parametrize(("folder", "is_set_up"), [(".", False), ("exercises/01_masked_add", True)])
def test_pytest_of_another_environment_says_that_it_is_not_the_courses(course, folder, is_set_up):
    """It does not know the plugin; the package may be on its path, as it is in a clone."""
    activate = course.path / ".venv/bin/activate"
    if is_set_up:
        activate.parent.mkdir(parents=True)
        activate.touch()
    call = "sys.argv += ['-p', 'no:course']\nimport pytest\nsys.exit(pytest.main())"
    named = os.path.relpath(course.path / "exercises/01_masked_add", course.path / folder)
    done = without((), f"import os\nos.chdir({folder!r})\n{call}", course, named)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR and done.stdout == ""
    after = f". {activate}" if is_set_up else "set the environment up as README.md says"
    assert done.stderr.strip() == f"ERROR: The course is not installed for {sys.executable}. Next: {after}"


class JudgeHere:
    """In the place of a process that judges: runs pytest in this one."""

    made: list[JudgeHere] = []

    def __init__(self) -> None:
        self.ended = False
        self.made.append(self)

    def begin(self, arguments: list[str], output: int) -> None:
        done = run_pytest(*arguments, cwd=Path.cwd())
        os.write(output, done.out.encode())
        self._status = done.status

    def wait(self) -> int:
        return self._status

    def end(self) -> None:
        self.ended = True


def test_the_demo_names_a_mistake_and_ends_well(untouched, monkeypatch):
    before = {path: path.stat().st_mtime_ns for path in untouched.path.rglob("*")}
    monkeypatch.setattr(demo, "JudgingProcess", JudgeHere)
    done = untouched.here("demo")
    assert done.status == 0 and done.err == ""
    assert all(judge.ended for judge in JudgeHere.made) and JudgeHere.made
    assert "11 tests fail, 5 pass. What is wrong, in one sentence:" in done.lines
    assert "the 243 lanes past the end of each row take part in the sum." in done.out
    assert max(map(len, done.lines)) <= WIDEST
    assert done.lines[-3].startswith("Passed: ") and done.lines[-1] == "Next: course watch 01"
    assert {path: path.stat().st_mtime_ns for path in untouched.path.rglob("*")} == before


def test_the_demo_says_what_is_next_where_there_is_no_course(untouched, tmp_path_factory, monkeypatch):
    def judged(judge: object, text: str) -> dict:
        return {"fault": None, "outcome": FAIL if demo.WRONG in text else PASS, "tests": [], "message": ""}

    monkeypatch.setattr(demo, "JudgingProcess", lambda: SimpleNamespace(end=lambda: None))
    monkeypatch.setattr(demo, "_judged", judged)
    elsewhere = untouched.here("demo", cwd=tmp_path_factory.mktemp("elsewhere"))
    assert elsewhere.lines[-1] == "Next: course init my-course && cd my-course && course watch 01"


def test_help_lists_every_command(untouched):
    shown = untouched.here("--help").out
    assert all(f"\n  {name} " in shown for name in COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("statsu",), "There is no command 'statsu'. Did you mean status?"),
        (("xyz",), "There is no command 'xyz'. course --help lists the commands."),
        (("hint", "swigul"), "No exercise is called 'swigul'. Did you mean 08_swiglu?"),
        (("hint", "77"), "No exercise is called '77'."),
        (("hint", ""), "No exercise is called ''."),
        (("solution", "8x"), "No exercise is called '8x'."),
    ],
)
def test_a_typo_gets_the_nearest_names(untouched, arguments, sentence):
    done = untouched.here(*arguments)
    assert done.status != 0 and sentence in done.err


@pytest.mark.parametrize("name", ["3", "03", "softmax", "soft", "03_softmax", "SOFTMAX", "03_softmax/"])
def test_an_exercise_has_many_names(untouched, name):
    assert "03 · Row softmax" in untouched.here("open", name).out


def test_outside_of_a_course_the_installed_one_is_meant(untouched, tmp_path_factory):
    done = untouched.here("status", cwd=tmp_path_factory.mktemp("elsewhere"))
    assert done.status == 0 and "01_masked_add" in done.out


def test_the_shell_completes_commands_and_exercises(untouched):
    environment = {"_COURSE_COMPLETE": "bash_complete", "COMP_WORDS": "course hint so", "COMP_CWORD": "2"}
    assert untouched.course(**environment).out.strip() == "plain,03_softmax"
    environment |= {"COMP_WORDS": "course st", "COMP_CWORD": "1"}
    assert untouched.course(**environment).lines == ["plain,status", "plain,story", "plain,stub"]


# ---- a lesson to read ------------------------------------------------------------------------------------------------

OF_AN_EXERCISE = (
    "hint", "solution", "reset", "watch", "programs", "trace", "inspect", "plot", "ladder", "check", "stub", "gate",
    "notebooks",
)  # fmt: skip
TO_READ = "00 is a lesson to read: exercises/00_memory/README.md. Next: 01_masked_add"


@pytest.mark.parametrize("command", OF_AN_EXERCISE)
def test_what_wants_an_exercise_says_that_a_lesson_has_none(untouched, command):
    options = ("--out", str(untouched.path / "class")) if command == "notebooks" else ()
    done = untouched.here(command, "00", *options)
    assert done.status == 1 and done.out == f"{TO_READ}\n" and done.err == ""
    assert not (untouched.path / "class").exists()


@pytest.mark.parametrize("argument", ["exercises/00_memory", "exercises/00_memory/README.md"])
def test_pytest_says_that_a_lesson_has_no_exercise(untouched, argument):
    done = untouched.pytest(argument)
    assert done.status == 5 and done.out == f"{TO_READ}\n" and done.err == ""


def test_a_lesson_beside_an_exercise_does_not_keep_it_from_being_judged(course):
    done = course.pytest("exercises/00_memory", "exercises/01_masked_add")
    assert "01 masked_add" in done.out and "a lesson to read" not in done.out


def test_a_lesson_opens_and_names_what_comes_next(untouched):
    done = untouched.here("open", "00")
    assert done.status == 0 and "00 · Where data lie" in done.out
    assert done.out.strip().endswith("Next: 01_masked_add. Read it with: course open 01")


def test_status_names_the_lessons_to_read(untouched):
    assert "00_memory is a lesson to read: course open 00" in untouched.here("status").lines


def test_the_number_of_a_lesson_is_taken(untouched):
    done = untouched.here("new", "00_bias")
    assert done.status == 2 and "The number 00 is that of 00_memory" in done.err


def test_links_to_other_lessons_are_words_in_a_terminal(course):
    readme = course.path / "exercises/01_masked_add/README.md"
    readme.write_text("# One\n\n8 [warps](../00_memory/README.md#warp), [a page](https://example.org/x)\n")
    out = course.here("open", "01").out
    assert "8 warps, a page (https://example.org/x)" in " ".join(out.split())


def test_code_that_looks_like_a_link_is_shown_as_it_stands(course):
    readme = course.path / "exercises/01_masked_add/README.md"
    readme.write_text(
        "# One\n\n```python\nkernel[(3,)](x, 10)\n```\n\n`kernel[grid](x)` [warps](../00_memory/README.md#warp)\n"
    )
    out = course.here("open", "01").out
    assert "kernel[(3,)](x, 10)" in out and "kernel[grid](x) warps" in out


# ---- status ---------------------------------------------------------------------------------------------------------


def test_status_before_anything(untouched):
    done = untouched.here("status")
    assert done.status == 0 and done.err == ""
    ids = [folder.id for folder in all_folders(ROOT)]
    assert [line.split()[:3] for line in done.lines[1 : len(ids) + 1]] == [[id, "not", "started"] for id in ids]
    assert f"0 of {len(ids)} passed. Throughput: not measured here, it needs a GPU." in done.out
    assert done.lines[-1] == "Next: 01_masked_add. Read it with: course open 01"
    assert not (untouched.path / "progress.txt").exists() and not (untouched.path / ".course").exists()


def test_status_after_a_pass_and_failures(tried):
    tried.here("hint", "02")
    lines = [line.rstrip() for line in tried.here("status").lines]  # a row "1 minute ago" makes others end in blanks
    assert re.fullmatch(r"01_masked_add +passed +(\d+) of \1 +(just now|\d+ minutes? ago)", lines[1])
    assert re.fullmatch(r"02_strided_blocks +failing +\d+ of \d+ +1 of 3 +(just now|\d+ minutes? ago)", lines[2])
    edit = "Next: edit exercises/02_strided_blocks/strided_blocks.py and run pytest exercises/02_strided_blocks"
    assert lines[-1] == f"{edit}. To finish 05_grouped_matmul: pytest exercises/05_grouped_matmul"


def test_after_the_last_exercise_comes_one_that_was_left_out(course):
    """The course has two exercises here, the second a copy of the first: any other takes longer to judge."""
    for folder in all_folders(course.path)[1:]:
        shutil.rmtree(folder.path)
    first, last = "01_masked_add", "02_masked_add"
    for name in ("exercises", "solutions"):
        shutil.copytree(course.path / name / first, course.path / name / last)
    shutil.copy(course.path / f"solutions/{first}/masked_add.py", course.file(last))
    assert course.pytest(f"exercises/{last}").lines[-1].strip() == (
        "Next: 01_masked_add, which is still open. Open exercises/01_masked_add/README.md"
    )
    passed = f"{first}  outcome=pass passed=2026-01-02T00:00:00Z\n"
    (course.path / "progress.txt").write_text(course.progress + passed)
    assert course.pytest(f"exercises/{last}").lines[-1].strip() == (
        "Next: every exercise is passed. course.md says where to go from here."
    )


def test_status_shows_the_best_medal(course):
    (course.path / "progress.txt").write_text(
        "01_masked_add  outcome=pass points=30/30 passed=2026-01-02T00:00:00Z throughput=4173GB/s,97.8% medal=silver\n"
    )
    shown = course.here("status", COLUMNS="80")
    assert "4 173 GB/s 98 %, silver" in shown.lines[1]
    assert "Throughput: your best, its share of what the GPU can do, and the best medal." in " ".join(shown.out.split())


@pytest.mark.parametrize("columns", ["80", "60"])
def test_status_shows_the_best_throughput_where_there_is_one(course, columns):
    (course.path / "progress.txt").write_text(
        "01_masked_add  outcome=pass points=30/30 hints=1 last=2026-01-02T00:00:00Z passed=2026-01-02T00:00:00Z "
        "throughput=4173GB/s,97.8%\n03_softmax  outcome=fail runs=1\n"
    )
    lines = course.here("status", COLUMNS=columns).lines
    assert "throughput" in lines[0] and "4 173 GB/s 98 %" in lines[1]
    assert "%" not in "".join(lines[2:6])
    assert (
        f"1 of {len(all_folders(ROOT))} passed. Throughput: your best, and its share of what the GPU can do."
        in " ".join(" ".join(lines).split())
    )


def test_status_counts_what_has_passed_and_fails_now(course):
    passed = "outcome={} runs=2 points=9/9 last=2026-01-02T00:00:00Z passed=2026-01-02T00:00:00Z"
    text = f"01_masked_add  {passed.format('pass')}\n02_strided_blocks  {passed.format('fail')}\n"
    (course.path / "progress.txt").write_text(text)
    assert f"2 of {len(all_folders(ROOT))} passed (1 of them fails now). Throughput:" in course.here("status").out


def test_status_shows_no_points_of_what_was_never_run(course):
    """A line that was copied in part, and points that are no numbers, which stay in the file as they are."""
    text = "01_masked_add  outcome=pass points=14/14\n02_strided_blocks  runs=1 points=x/y\n"
    (course.path / "progress.txt").write_text(text)
    lines = course.here("status").lines
    assert lines[1].split() == ["01_masked_add", "not", "started"]
    assert lines[2].split() == ["02_strided_blocks", "failing"]
    read = progress.read(course.path)
    assert read.of("02_strided_blocks").other == {"points": "x/y"} and "points=x/y" in read.text()


def test_status_tells_what_it_does_not_understand(course):
    (course.path / "progress.txt").write_text("<<<<<<< HEAD\n77_gone  runs=1\n01_masked_add  runs=1\n")
    out = course.here("status").out
    assert "progress.txt also knows 77_gone, which this course does not have. They are kept." in out
    assert "progress.txt, line 1: not understood, kept as it is." in out


@pytest.mark.parametrize("columns", ["20", "40", "60"])
def test_narrow_terminals_keep_names_and_states(untouched, columns):
    out = untouched.here("status", COLUMNS=columns).out
    assert max(map(len, out.splitlines()[:6])) <= int(columns)
    assert "not" in out and "hints" not in out.splitlines()[0]


ASCII = {"PYTHONIOENCODING": "ascii"}


@pytest.mark.parametrize(
    ("command", "environment"),
    [
        (("status",), ASCII),
        (("open", "03"), ASCII),
        (("hint", "03"), ASCII),
        (("doctor", "--help"), ASCII),
        (("open", "03"), {"LC_ALL": "C", "PYTHONUTF8": "0"}),
        (("open", "03"), {"NO_COLOR": "1"}),
    ],
)
def test_any_encoding_and_no_colour(course, command, environment):
    done = course.course(*command, **environment)
    assert done.status == 0 and "\x1b" not in done.out


def test_progress_that_cannot_be_read_is_one_sentence(course):
    (course.path / "progress.txt").mkdir()
    for command in ("status", "hint"):
        done = course.here(command)
        assert done.status == 1 and "progress.txt cannot be read: Is a directory." in done.err


# ---- open, solution, reset ------------------------------------------------------------------------------------------


def test_open_shows_the_lesson_and_names_the_file(untouched):
    out = untouched.here("open").out
    assert "01 · Masked add" in out and "Picture: Of 369 µs, 4 are additions." in out
    assert out.strip().endswith(
        "Next: course predict 01, then edit exercises/01_masked_add/masked_add.py "
        "and run pytest exercises/01_masked_add"
    )


def test_the_solution_opens_after_passing(tried):
    closed = tried.here("solution", "03")
    assert closed.status == 1 and SOLUTION_LINE not in closed.out
    assert "points; its solution opens when it is passed. For a hint: course hint 03." in closed.err
    opened = tried.here("solution", "01", COLUMNS="120")
    assert "grid = (triton.cdiv(N, BLOCK_N),)" in opened.out and "Why cdiv." in opened.out
    assert "BEGIN SOLUTION" not in opened.out and "gave-up" not in tried.progress
    assert opened.lines[-1] == "Next: 02_strided_blocks: course open 02"
    assert "Other right ways, and wrong ones: course solution 01 --others" in opened.lines


def test_other_right_and_wrong_ways_open_after_passing(tried):
    closed = tried.here("solution", "03", "--others")
    assert closed.status == 1 and "03_softmax is not passed yet, and other ways are solutions too." in closed.err
    assert tried.here("solution", "03", "--give-up").status == 0 and "--others" not in closed.out
    assert tried.here("solution", "03", "--others").status == 1  # giving up is no pass
    opened = tried.here("solution", "01", "--others", COLUMNS="120")
    assert re.search(r"^persistent_grid +\S", opened.out, re.MULTILINE), opened.out
    assert re.search(r"^no_mask +\S", opened.out, re.MULTILINE), opened.out
    assert opened.lines[-1].startswith("Next: judge one: pytest exercises/01_masked_add --submission solutions/01")


def test_giving_up_is_noted(tried):
    given = tried.here("solution", "03", "--give-up", COLUMNS="120")
    assert SOLUTION_LINE in given.out and " gave-up=20" in tried.progress
    assert tried.here("solution", "03").status == 0  # it stays open
    assert "solution seen" in tried.here("status").out


def test_reset_asks_keeps_the_work_and_brings_the_stub_back(course):
    stub, mine = course.file("03_softmax").read_text(), course.write("03_softmax").read_text()
    refused = course.here("reset", "03", answer="n\n")
    assert refused.status == 1 and course.file("03_softmax").read_text() == mine
    done = course.here("reset", "03", answer="y\n")
    assert done.status == 0 and course.file("03_softmax").read_text() == stub
    assert "Your file is kept: exercises/03_softmax/softmax.py.kept1" in done.out
    assert course.file("03_softmax").with_name("softmax.py.kept1").read_text() == mine
    course.file("03_softmax").write_text("second try")
    course.here("reset", "03", "--yes")
    assert course.file("03_softmax").with_name("softmax.py.kept2").read_text() == "second try"
    assert "is the stub already" in course.here("reset", "03").out


def test_reset_of_a_deleted_file(course):
    stub = course.file("03_softmax").read_text()
    course.file("03_softmax").unlink()
    assert course.here("reset", "03").status == 0 and course.file("03_softmax").read_text() == stub


@pytest.mark.parametrize("folder", all_folders(ROOT), ids=lambda folder: folder.id)
def test_the_stub_of_reset_is_the_one_that_nbgrader_derives(folder):
    solution = folder.solution_file.read_text(encoding="utf-8")
    assert stub_text(solution) == stubs.stub_of(solution)
