"""The parts of a fleet: who gets which cards, what a parcel is, which address is refused; no record twice or lost."""

import asyncio
import dataclasses

import pytest
from test_record import PROVENANCE, output, quantity
from tiny_repository import make_repository, recording, write_page

from course_site import docs
from course_site.pages.page import find_pages
from course_site.records.fleet.address import TLS_FILES, read_address
from course_site.records.fleet.parcel import Parcel, ParcelRefused, unpack
from course_site.records.fleet.places import NoPlace, Places, Post
from course_site.records.fleet.statement import Statement, Tree, fault_of
from course_site.records.gpu_test_records import Verdict
from course_site.records.gpus import Gpu
from course_site.records.plan import ALONE, PAGE, TESTS, CannotStart, GroupJob, Job
from course_site.records.queue import measure_all
from course_site.records.record import Record, build_record
from course_site.records.store import Bundle, GroupBundle, Outcome

EDITION = {"gpu": "NVIDIA H200", "slug": "nvidia-h200", "cuda": "13.0", "torch": "2.11", "triton": "3.6"}


def post(host, index, process="", **changes):
    gpu = Gpu(index, "NVIDIA H200", (9, 0), 1, str(index))
    name = f"{host}/{index}{process}"
    one = Statement(name, name, host, host, gpu, "580.1", 700.0, EDITION, "3.12.3", Tree("c" * 40))
    return Post(name, dataclasses.replace(one, **changes))


# --- places -----------------------------------------------------------------------------------------


def asked(hosts, *steps):
    """Ask for cards and give them back, step by step; who had which after each step.

    Args:
        hosts: {"a": 2}, the cards of each.
        steps: ("name", kind, cards) asks, "name" gives back.
    """

    async def run():
        places = Places()
        for host, count in hosts.items():
            for index in range(count):
                places.add(post(host, index))
        held, seen = {}, []
        for step in steps:
            if isinstance(step, str):
                places.release(await held.pop(step))
            else:
                held[step[0]] = asyncio.ensure_future(places.take(*step))
            for _ in range(5):
                await asyncio.sleep(0)
            having = {name: task.result() for name, task in held.items() if task.done()}
            seen.append({name: [p.address for p in posts] for name, posts in having.items()})
        for task in held.values():
            task.cancel()
        return seen

    return asyncio.run(run())


def test_a_task_for_two_cards_is_passed_over_for_none():
    seen = asked(
        {"a": 2}, ("x", PAGE, 1), ("y", PAGE, 1), ("both", PAGE, 2), ("z", PAGE, 1), "x", "y", "both"
    )
    assert seen[-4] == {"x": ["a/0"], "y": ["a/1"]}
    assert seen[-3] == {"y": ["a/1"]}  # z waits, though a card is free
    assert seen[-2] == {"both": ["a/0", "a/1"]}
    assert seen[-1] == {"z": ["a/0"]}


def test_two_cards_are_of_one_host_and_one_card_is_taken_where_few_are_free():
    seen = asked({"a": 2, "b": 1}, ("x", PAGE, 1), ("both", PAGE, 2), ("late", PAGE, 2))
    assert seen[-1] == {"x": ["b/0"], "both": ["a/0", "a/1"]}


def test_pages_and_tests_share_no_host():
    seen = asked({"a": 2, "b": 1}, ("p", PAGE, 1), ("t", TESTS, 1), ("u", TESTS, 1), "p")
    assert seen[-2] == {"p": ["b/0"], "t": ["a/0"], "u": ["a/1"]}
    seen = asked({"a": 2}, ("p", PAGE, 1), ("t", TESTS, 1), "p")
    assert seen == [{"p": ["a/0"]}, {"p": ["a/0"]}, {"t": ["a/0"]}]


def test_what_looks_at_time_has_its_host_alone():
    seen = asked({"a": 3}, ("t", TESTS, 1), ("clock", ALONE, 1), ("u", TESTS, 1), "t", "clock")
    assert seen[2] == {"t": ["a/0"]}
    assert seen[3] == {"clock": ["a/0"]}
    assert seen[4] == {"u": ["a/0"]}


def refused(places, *request, **options):
    async def run():
        with pytest.raises(NoPlace) as caught:
            await places.take(*request, **options)
        return str(caught.value)

    return asyncio.run(run())


def test_a_task_that_no_host_could_run_is_refused_in_time_and_says_why():
    places = Places(patience_s=0.1)
    assert refused(places, "docs/a.py", PAGE) == "docs/a.py: no worker is left"
    places.add(post("a", 0))
    assert refused(places, "docs/a.py", PAGE, 2) == "docs/a.py: needs 2 GPUs of one host, and there is 1"
    ended = [post("a", 0)]
    assert (
        refused(places, "docs/a.py", PAGE, 1, ended) == "docs/a.py: no worker is left but those that it ended"
    )


def test_a_task_that_ended_its_worker_gets_another_card_and_else_another_process():
    async def run():
        places = Places(patience_s=0.1)
        places.add(post("a", 0, "-again"))
        places.add(post("a", 1))
        first = await places.take("x", PAGE, 1, [post("a", 0)])
        places.remove("a/1")
        second = await places.take("y", PAGE, 1, [post("a", 0)])
        return [p.address for p in (*first, *second)]

    assert asyncio.run(run()) == ["a/1", "a/0-again"]


def test_a_card_stays_taken_when_its_worker_comes_again():
    async def run():
        places = Places()
        places.add(post("a", 0))
        held = await places.take("x", PAGE)
        places.remove("a/0")
        places.add(post("a", 0, "-again"))
        late = asyncio.ensure_future(places.take("y", PAGE))
        await asyncio.sleep(0.01)
        assert not late.done()
        places.release(held)
        return [p.address for p in await late]

    assert asyncio.run(run()) == ["a/0-again"]


# --- who takes part ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"driver": "590.2", "power_limit_w": 500.0}, ""),  # said, and no reason to refuse
        (
            {"tree": Tree("d" * 40)},
            "it is of commit dddddddddddd, and this tree of cccccccccccc: check that out there",
        ),
        (
            {"tree": Tree("c" * 40, ("src/a.py", "src/b.py"))},
            "its tree cannot be used: it is dirty, src/a.py and 1 more differs from commit cccccccccccc: "
            "commit or undo that",
        ),
        (
            {"tree": Tree("unknown")},
            "its tree cannot be used: its commit is unknown: clone it with git, or copy revision.txt of "
            "`nox -s wheelhouse` with it",
        ),
        (
            {"edition": {**EDITION, "torch": "2.12"}},
            "it has torch 2.12, and this edition torch 2.11: install the same there",
        ),
        (
            {"gpu": Gpu(0, "NVIDIA T4", (7, 5), 1, "0"), "edition": {**EDITION, "gpu": "NVIDIA T4"}},
            "it is an NVIDIA T4, and this edition is of the NVIDIA H200",
        ),
    ],
)
def test_who_is_refused_hears_why(changes, said):
    first = post("a", 0).statement
    assert fault_of(post("b", 0, **changes).statement, first, Tree("c" * 40), None) == said


def test_a_run_of_this_machine_takes_its_own_workers_alone():
    one = post("a", 0, tree=Tree("unknown")).statement
    assert fault_of(one, None, None, "a") == ""
    assert fault_of(one, None, None, "other").startswith("this run takes no workers but its own: ")


def test_a_statement_survives_its_way():
    one = post("a", 1).statement
    assert Statement.of_message(one.as_message()) == one
    assert one.in_words == (
        "NVIDIA H200, driver 580.1, 700 W, cuda 13.0, torch 2.11, triton 3.6, Python 3.12.3, commit cccccccccccc"
    )
    with pytest.raises(ValueError, match="is no statement of a worker"):
        Statement.of_message({"gpu": {}})


# --- parcels ----------------------------------------------------------------------------------------


def test_a_parcel_is_whole_or_nothing():
    parcel = Parcel("docs/a.py", "1", "recorded", 1.5, files={"record": b"{}", "artifact/a.bin": b"\0\n\0"})
    data = parcel.pack()
    assert unpack(data, "docs/a.py", "1") == parcel
    for broken in (data[:-1], data + b"x", data.replace(b"{}", b"[]"), data[:20], b"", "text", None):
        with pytest.raises(ParcelRefused, match=r"^docs/a.py: "):
            unpack(broken, "docs/a.py", "1")
    for task, attempt in (("docs/b.py", "1"), ("docs/a.py", "2")):
        with pytest.raises(ParcelRefused, match=r"the parcel is of docs/a.py \(1\), asked was "):
            unpack(data, task, attempt)


# --- addresses --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["tcp://127.0.0.1:8786", "tcp://localhost:1", "tcp://[::1]:8786", "tcp://127.1.2.3:9"]
)
def test_loopback_needs_no_certificate(text):
    assert str(read_address(text, None)) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "tcp://10.0.0.3:8786",
            "tcp://10.0.0.3:8786: is neither loopback nor tls://: whoever reaches it could run",
        ),
        ("tcp://0.0.0.0:8786", "is neither loopback nor tls://"),
        ("tcp://127.0.0.1.evil.example:1", "is neither loopback nor tls://"),
        ("tls://node3:8786", "tls://node3:8786: needs --tls FOLDER, with ca.pem, cert.pem, key.pem in it"),
        ("127.0.0.1:8786", "127.0.0.1:8786: is no address: write tcp://127.0.0.1:PORT or tls://HOST:PORT"),
        ("tcp://127.0.0.1", "is no address"),
        ("tcp://127.0.0.1:99999", "is no address"),
    ],
)
def test_other_addresses_are_refused_in_a_line(text, said, tmp_path, monkeypatch, capsys):
    make_repository(tmp_path, monkeypatch)
    assert docs.main(["--scheduler", text], tmp_path / "repository") == 2
    err = capsys.readouterr().err
    assert err.startswith("docs: ")
    assert said in err
    assert err.count("\n") == 1


def test_a_folder_of_certificates_is_whole(tmp_path):
    for name in TLS_FILES:
        with pytest.raises(
            CannotStart, match=rf"{name}: is missing; --tls wants ca.pem, cert.pem, key.pem there"
        ):
            read_address("tls://node3:8786", tmp_path)
        (tmp_path / name).write_text("")
    assert read_address("tls://node3:8786", tmp_path).tls == tmp_path
    with pytest.raises(CannotStart, match="--tls is for tls:// addresses"):
        read_address("tcp://127.0.0.1:1", tmp_path)


# --- once, and not never ----------------------------------------------------------------------------


class Planted:
    """A queue that answers with what is planted for a page."""

    name, width = "planted", 2

    def __init__(self, answers):
        self.answers = answers

    async def submit(self, job, board):
        return self.answers[job.name](job)


def bundle_of(page, value=1.0):
    results = [[output(**{page.id: quantity(value)})]]
    provenance = {**PROVENANCE, "slug": "nvidia-h200"}
    return Bundle(page, build_record(page, results, [0.5], {}, provenance), "GPU 0", 0.5)


def measured(root, answers):
    outcome = Outcome("nvidia-h200")
    pages = {page.id: page for page in find_pages(root)}
    jobs = [Job(page, ["new"], 1.0, "") for page in pages.values()]
    measure_all(root, Planted(answers(pages)), jobs, None, outcome)
    return outcome


@pytest.fixture
def root(tmp_path, monkeypatch):
    root = make_repository(tmp_path, monkeypatch)
    for name in "ab":
        write_page(root, name, recording(name))
    return root


def test_a_planted_second_record_is_not_written_and_the_lost_one_is_missed(root):
    """The answer for b is a record of a: a has two then, and b none."""
    outcome = measured(
        root,
        lambda pages: {
            "docs/a.py": lambda job: bundle_of(pages["a"], 1.0),
            "docs/b.py": lambda job: bundle_of(pages["a"], 2.0),
        },
    )
    (name, line), *_ = outcome.failed
    assert name == "docs/b.py"
    assert "RecordedTwice: docs/a.py: has a record of this run (" in line
    assert line.endswith("came: not written")
    (file,) = outcome.written
    assert Record.load(file).names["a"]["value"] == 1.0


def test_a_task_of_which_nothing_is_known_is_missed(root, monkeypatch, capsys):
    """Planted: what keeps a record forgets one."""
    from course_site.records import queue

    keep = queue.keep
    monkeypatch.setattr(queue, "keep", lambda root, b, *rest: b.page.id == "b" or keep(root, b, *rest))
    outcome = measured(
        root,
        lambda pages: {f"docs/{name}.py": (lambda job: bundle_of(job.page)) for name in pages},
    )
    line = "docs/b.py: came back neither with a record nor with a reason: a fault of ours, run it again"
    assert outcome.failed == [("docs/b.py", line)]
    assert f"FAILED {line}" in capsys.readouterr().out


def test_a_group_is_recorded_once_too(root):
    group = GroupJob(Verdict("g", ""), False)
    record = {"checksum": "c" * 64, "group": "g", "edition": {"slug": "nvidia-h200"}}
    outcome, job = Outcome(), [group, group]
    measure_all(
        root, Planted({"tests/gpu/g": lambda job: GroupBundle(job, record, "GPU 0", 1.0)}), job, None, outcome
    )
    ((name, line),) = outcome.failed
    assert name == "tests/gpu/g"
    assert "has a record of this run (cccccccccccc), and the same came: not written" in line
