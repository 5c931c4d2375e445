"""Every test that docs/threat_model.md names is there."""

from __future__ import annotations

import re

from tests.conftest import ROOT

NAMED = re.compile(r"`((?:\w+/)*\w+\.py)?(?:::(test_\w+))?`")


def test_each_test_that_it_names_is_there():
    text, file, named = (ROOT / "docs/threat_model.md").read_text(encoding="utf-8"), "", 0
    for path, test in NAMED.findall(text):
        if path.rpartition("/")[2].startswith("test_") or "/" in path:
            file = path
            assert (ROOT / "tests" / file).exists(), file
        if test:  # of the file that was named last
            assert f"def {test}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), (file, test)
            named += 1
    assert named > 20
