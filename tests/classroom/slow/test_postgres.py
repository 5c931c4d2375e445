"""A class whose gradebook is a real PostgreSQL server's: made, graded, graded again, exported."""

from __future__ import annotations

import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from grader.classroom.nbgrader.one_at_a_time import alone_in
from grader.course.folder import Folder
from tests.classroom.instructor import ROOT, points_without_speed, solution
from tests.classroom.postgres import PostgresServer, programs
from tests.conftest import mutant

ADD = "01_masked_add"
pytestmark = [
    pytest.mark.skipif(programs() is None, reason="needs PostgreSQL (Debian, Ubuntu: apt-get install postgresql)"),
    pytest.mark.skipif(not find_spec("psycopg"), reason="needs the extra cluster"),
]


@pytest.fixture
def server():
    base = Path(tempfile.mkdtemp(prefix="pg-"))  # a socket's path is short, and postgres may enter it
    base.chmod(0o755)
    with PostgresServer(base / "server") as server:
        yield server
    shutil.rmtree(base)


def test_a_class_is_graded_into_postgres(classroom, server):
    classroom.path.mkdir()
    classroom.run("course", "notebooks", "--out", str(classroom.path), "--no-speed", "--db", server.url, ADD, cwd=ROOT)
    classroom.run("nbgrader", "generate_assignment", ADD)
    classroom.hand_in("Łukasz O'Neil", ADD, {"masked_add.py": solution(ADD)})
    classroom.hand_in("ada", ADD, {"masked_add.py": mutant(f"{ADD}/floor_grid")})
    said = classroom.run("course", "grade")
    assert "01_masked_add: 2 graded." in said
    assert not (classroom.path / "gradebook.db").exists()
    points = points_without_speed(Folder(ROOT / "exercises" / ADD))[ADD]
    assert server.ask("select sum(auto_score) from grade") == f"{sum(points.values()) + points['right'] - 7:g}"
    with alone_in(classroom.path):
        assert "is being graded, by " in classroom.run("course", "grade", status=1)
    assert "0 hand-ins entered into the gradebook, 2 unchanged." in classroom.run("course", "grade")
    assert classroom.scores()["ada", "masked_add", "right"] == points["right"] - 7
    classroom.run("nbgrader", "generate_feedback", ADD)
    assert "points" in classroom.feedback("Łukasz O'Neil", ADD, "masked_add")


def test_the_database_of_one_command_and_one_that_does_not_answer(classroom, server):
    classroom.make(ADD)
    classroom.hand_in("ada", ADD, {"masked_add.py": solution(ADD)})
    classroom.run("nbgrader", "generate_assignment", "--force", f"--db={server.url}", ADD)
    assert "1 graded" in classroom.run("course", "grade", "--db", server.url)
    assert server.ask("select id from student") == "ada"
    said = classroom.run("course", "grade", "--db", "postgresql://nobody@127.0.0.1:1/class", status=1)
    assert "The gradebook postgresql://nobody@127.0.0.1:1/class does not answer" in said
    said = classroom.run("course", "grade", "--db", "no url", status=1)
    assert "--db: 'no url' is no URL of a database; postgresql://USER@HOST/DATABASE" in said
