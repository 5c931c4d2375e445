"""A release that writes something new is seen before a learner's kernel is refused for it."""

from __future__ import annotations

from tests.ttir import release


def test_the_front_end_of_this_release_is_known():
    assert sorted(release.front_end() - release.known()) == []


def test_what_is_not_listed_is_told(monkeypatch, capsys):
    monkeypatch.setattr(release, "known", lambda: release.front_end() - {"create_load", "MEM_SEMANTIC.ACQUIRE"})
    monkeypatch.setattr("sys.argv", ["release"])
    assert release.main() == 1
    assert capsys.readouterr().out.split() == ["MEM_SEMANTIC.ACQUIRE", "create_load"]
