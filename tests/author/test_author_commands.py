"""`course check`: what it is given on the command line."""

from __future__ import annotations

from tests.learn.conftest import Course


def test_no_jobs_at_all_are_refused(tmp_path):
    done = Course(tmp_path).here("check", "01", "--jobs", "0")
    assert done.status == 2 and "Invalid value for '--jobs': 0 is not in the range x>=1" in done.err
