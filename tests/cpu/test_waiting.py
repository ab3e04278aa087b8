"""The list of what waits for a GPU: since a day that was, for a reason that says no more than what is awaited."""

from datetime import date

import pytest

from course_site.records.waiting import Waiting, WaitingError, faults_of, load

TODAY = date(2026, 11, 27)


@pytest.mark.parametrize(
    ("since", "reason", "said"),
    [
        ("1999-01-01", "new", "the course began on 2026-11-21"),
        ("2027-01-01", "new", "a wait has begun by today"),
        ("last week", "new", "write the day as 2026-11-21"),
        ("2026-11-25", "", "one line of at most"),
        ("2026-11-25", "word " * 60, "one line of at most"),
        (
            "2026-11-25",
            "its kernels left every library standing",
            "speaks of speed: say what the page waits for",
        ),
        ("2026-11-25", "it reached 97 % of peak before", "speaks of speed"),
        ("2026-11-25", "it took 3 µs and will take less", "speaks of speed"),
    ],
)
def test_an_odd_entry_is_refused_in_one_line(since, reason, said):
    (found,) = faults_of(Waiting("docs/a.py", since, reason), TODAY)
    assert said in found


@pytest.mark.parametrize(
    "reason", ["new", "its kernel changed", "no card was free", "two tests of it are new"]
)
@pytest.mark.parametrize("since", ["2026-11-21", "2026-11-27", "2026-11-28"])
def test_an_honest_one_passes(since, reason):
    assert list(faults_of(Waiting("docs/a.py", since, reason), TODAY)) == []


@pytest.mark.parametrize(
    "text", ['[[page]]\npath = "docs/a.py"\nreason = "new"\n', "[[page]\n", "page = 3\n", "[[page]]\n\xff"]
)
def test_a_list_that_cannot_be_read_is_one_line(tmp_path, text):
    (tmp_path / "records").mkdir()
    (tmp_path / "records/waiting.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(WaitingError, match=r"^records/waiting.toml: every \[\[page\]\] needs path, .*$"):
        load(tmp_path)
