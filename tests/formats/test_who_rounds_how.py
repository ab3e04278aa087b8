"""The table of who rounds how, made anew by the pinned versions of all libraries; it takes a few minutes and a network.

Its short form, with what the tests have installed anyway, is tests/cpu/test_who_rounds_how.py.
"""

import json

import who_rounds_how


def test_the_table_is_what_the_libraries_answer(tmp_path):
    found = who_rounds_how.ask_pinned(tmp_path)
    due = json.loads(who_rounds_how.TABLE.read_text(encoding="utf-8"))
    assert set(found["versions"]) == set(who_rounds_how.ASKED) - {"ours"}
    assert found == {name: part for name, part in due.items() if name != "made_by"}
