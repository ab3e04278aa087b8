"""The lens of W3's page: compiled anew by the same compilers, every rung is as the file has it."""

import json

import lens
import pytest


@pytest.mark.parametrize("name", list(lens.RUNGS))
def test_compiled_anew_it_is_what_the_page_shows(name):
    kept = json.loads(lens.FILE.read_text(encoding="utf-8"))[name]
    _, compiler = lens.RUNGS[name]
    if kept["compiler"] != compiler():
        pytest.skip(f"kept of {kept['compiler']}, here is {compiler()}")
    assert lens.all_facts([name])[name] == kept


def test_lines_that_helion_wrote_know_where_they_come_from():
    text = "a\n# src[f.py:7]: x\n# src[f.py:8]: y\n# src[f.py:7-9]: ...\nb\nc\n# src[f.py:9]: z\nd"
    assert lens.helion_lines(text) == {1: 0, 5: 7, 6: 7, 8: 9}
