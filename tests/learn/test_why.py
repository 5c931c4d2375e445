"""`course why` repeats the last failure, with the explanations that were weighed."""

from __future__ import annotations

from grader.course.folder import Folder
from grader.progress.last_result import last_result


def test_the_last_failure_is_repeated_with_its_explanations(tried):
    result = last_result(Folder(tried.path / "exercises" / "03_softmax"))
    done = tried.course("why", "03")
    told = result["said"][0]["sentence"]
    assert done.status == 1
    assert f"  {told}: told" in done.out.splitlines()
    assert any(line.endswith(f"--seed {result['seed']}") for line in done.lines)


def test_what_did_not_fail_has_no_explanation(untouched):
    done = untouched.here("why", "03")
    assert (done.status, done.out) == (1, "")
    assert "The last run of 03_softmax did not fail." in done.err
