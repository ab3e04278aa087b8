"""Who proposes: recorded files as they were written, constants changed mechanically, and a server, one of our own."""

import ast
import json
import os
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from course_harness import __main__ as command
from course_harness import recorded
from course_harness.endpoint import Endpoint, Settings, code_of
from course_harness.journal import Journal
from course_harness.proposer import History, Proposal, Stopped, Turn
from course_harness.recorded import Recorded, keep, read, series
from course_harness.search import Search, changed
from course_harness.tasks import KERNELS, Unusable, task, tasks, words

ROOT = Path(__file__).parents[2]
SOFTMAX = task("softmax")
ONE = "def softmax(x): return 1\n"
KEY = "sk-a-secret-that-nobody-may-see"

# --- recorded -----------------------------------------------------------------------------------------

ABOUT = {
    "half": "kernel", "model": "a model", "date": "2026-11-29", "prompt": "the task's words", "saw": "the words alone",
    "sampling": {"temperature": "not known", "top_p": 0.9, "seed": "not known"},
}  # fmt: skip
TEXT = b"import torch\r\n\r\n\r\ndef softmax( x ) :\r\n\treturn x\r\n"


@pytest.fixture
def kept(tmp_path):
    for at in ((1, 1), (1, 2), (2, 1)):
        keep(tmp_path, "softmax", "a_series", ABOUT, at, TEXT + f"# {at}".encode())
    return tmp_path / "proposals" / "softmax" / "a_series"


def test_a_recorded_file_is_handed_out_as_it_was_written(kept):
    proposer = Recorded(read(kept))
    first = proposer.propose(SOFTMAX, History(1))
    assert first.text.encode() == TEXT + b"# (1, 1)"
    turn = Turn(first, "whatever it is told")
    assert proposer.propose(SOFTMAX, History(1, (turn,))).text.endswith("# (1, 2)")
    assert proposer.propose(SOFTMAX, History(1, (turn, turn))) is None
    assert proposer.propose(SOFTMAX, History(3)) is None
    assert (proposer.kept.samples, proposer.kept.rounds) == (2, 2)
    assert proposer.described()["sampling"] == ABOUT["sampling"]


def test_halves_are_apart(kept):
    keep(kept.parents[2], "softmax", "attacks", {**ABOUT, "half": "attack"}, (1, 1), TEXT)
    root = kept.parents[2]
    assert (list(series(root, "softmax")), list(series(root, "softmax", "attack"))) == (
        ["a_series"],
        ["attacks"],
    )
    assert series(root, "sgemm") == {}


def rewritten(old, new):
    def change(folder):
        path = folder / "about.toml"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return change


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            lambda folder: (folder / "s1_r2.py.txt").write_bytes(TEXT),
            "s1_r2.py.txt: not the file that was proposed",
        ),
        (lambda folder: (folder / "s1_r2.py.txt").unlink(), "s1_r2.py.txt: there is no such file"),
        (
            lambda folder: (folder / "s3_r1.py.txt").write_bytes(TEXT),
            "s3_r1.py.txt: about.toml does not list it",
        ),
        (lambda folder: (folder / "about.toml").unlink(), "about.toml: cannot be read"),
        (rewritten('model = "a model"\n', ""), "lacks model; what nobody knows is"),
        (rewritten('model = "a model"', 'model = ""'), "model is '', which is no text"),
        (rewritten('half = "kernel"', 'half = "both"'), "half is 'both'"),
        (rewritten("2026-11-29", "yesterday"), "date is 'yesterday'"),
        (rewritten("top_p = 0.9\n", ""), "sampling needs temperature, top_p, seed"),
        (rewritten("[sampling]", "more = 1\n[sampling]"), "has unknown keys: more"),
        (rewritten('"s1_r1.py.txt"', '"../s1_r1.py.txt"'), "is no name such as s1_r1.py.txt"),
        (lambda folder: (folder / "about.toml").write_bytes(b"\xff"), "cannot be read"),
    ],
)
def test_a_series_of_another_form_is_refused_in_one_line(kept, change, why):
    change(kept)
    with pytest.raises(Unusable, match=why) as caught:
        read(kept)
    assert "\n" not in str(caught.value)


def test_a_link_out_of_the_folder_is_no_proposal(kept, tmp_path):
    file = kept / "s2_r1.py.txt"
    (tmp_path / "elsewhere").write_bytes(file.read_bytes())
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Unusable, match="there is no such file"):
        read(kept)


@pytest.mark.parametrize(
    ("more", "at", "text", "why"),
    [
        ({}, (1, 1), TEXT, "s1_r1.py.txt: is there already"),
        ({"model": "another"}, (3, 1), TEXT, "its model is another"),
        ({}, (3, 2), TEXT, "sample 3 has a round 2 and none before it"),
        ({}, (3, 1), b"\xff", "no UTF-8"),
        ({}, (3, 1), bytes(300_000), "larger than 262144 bytes"),
    ],
)
def test_what_was_proposed_is_not_changed_by_keeping_more(kept, more, at, text, why):
    with pytest.raises(Unusable, match=why):
        keep(kept.parents[2], "softmax", "a_series", {**ABOUT, **more}, at, text)


def test_every_series_of_the_repository_is_whole():
    folder = ROOT / recorded.FOLDER
    found = [one for name in tasks() for half in recorded.HALVES for one in series(ROOT, name, half).values()]
    assert len(found) == (len([*folder.glob("*/*/about.toml")]) if folder.is_dir() else 0)


# --- search -------------------------------------------------------------------------------------------

SEARCHED = [one for one in tasks().values() if one.kernel]


@pytest.mark.parametrize("one", SEARCHED, ids=lambda one: one.name)
def test_search_changes_the_named_constants_and_nothing_else(one):
    old = (KERNELS / one.kernel).read_text()
    texts = {proposed(Search(one), n).text for n in range(1, len(Search(one).choices) + 1)}
    # Each choice is another file; its own constants are one of them, or the file as it is was never among those tried.
    assert len(texts) == len(Search(one).choices) >= 4
    for text in texts:
        compile(text, one.name, "exec")
        pairs = list(zip(old.splitlines(), text.splitlines(), strict=True))
        # A line of them holds other numbers and no other words.
        for before, after in pairs:
            assert [w for w in tokens(before) if not w.isdigit()] == [
                w for w in tokens(after) if not w.isdigit()
            ]
        assert sum(before != after for before, after in pairs) <= 4 * len(one.constants)


def tokens(line):
    return "".join(c if c.isalnum() or c == "_" else " " for c in line).split()


def proposed(search, sample):
    return search.propose(None, History(sample))


def test_search_goes_through_all_or_draws_with_a_seed():
    one = task("reduction")
    every = Search(one)
    assert len(every.choices) == 4 * 4 * 3
    assert len({tuple(choice.items()) for choice in every.choices}) == 48
    drawn = Search(one, seed=3, most=10)
    assert drawn.choices == Search(one, seed=3, most=10).choices != Search(one, seed=4, most=10).choices
    assert len({tuple(choice.items()) for choice in drawn.choices}) == 10
    assert proposed(drawn, 11) is None
    assert drawn.propose(None, History(1, (Turn(Proposal("x"), ""),))) is None
    assert proposed(drawn, 1).said["constants"] == drawn.choices[0]
    assert not drawn.own  # it is a kernel of the course


FILE = "A, B = 1, 2  # é\nC = 3\nH = {\n    2: T(1, warps=4, stages=2), 4: T(2, warps=8),\n}\nD = A * 2\n"


def test_constants_are_changed_where_they_stand():
    text = changed(FILE, {"B": 20, "A": 1000, "C": 0, "H.warps": 16})
    assert text == (
        "A, B = 1000, 20  # é\nC = 0\nH = {\n    2: T(1, warps=16, stages=2), 4: T(2, warps=16),\n}\nD = A * 2\n"
    )
    assert ast.parse(text)


@pytest.mark.parametrize("name", ["D", "E", "H.more", "C.warps", "H", "W.warps"])
def test_what_is_no_constant_is_refused(name):
    with pytest.raises(Unusable, match=f"no constant {name} that is a whole number"):
        changed(FILE + "W = T(warps=4), T(warps=D)\n", {name: 1})


@pytest.mark.parametrize("most", [0, 257])
def test_search_is_bounded(most):
    with pytest.raises(Unusable, match="expected 1 to 256"):
        Search(task("reduction"), most=most)


# --- endpoint -----------------------------------------------------------------------------------------

ANSWER = "Here.\n```python\nimport torch\n\n\ndef softmax(x):\n    return x\n```\nDone."


def reply(content=ANSWER, **more):
    return (
        200,
        {"choices": [{"message": {"content": content}, "finish_reason": "stop"}], "model": "m-1", **more},
        {},
    )


@contextmanager
def server(*answers):
    """A server that gives these answers, one after the other, and notes what it was asked."""
    asked, left = [], list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            asked.append((self.path, dict(self.headers), json.loads(body)))
            code, told, headers = left.pop(0)
            if code == 0:  # it hangs up
                self.connection.close()
                return
            data = told if isinstance(told, bytes) else json.dumps(told).encode()
            self.send_response(code)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST  # noqa: N815 - as the library calls it

        def log_message(self, *arguments):
            pass

    one = HTTPServer(("127.0.0.1", 0), Handler)
    one.handle_error = lambda *arguments: None
    thread = threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{one.server_address[1]}/v1", asked
    finally:
        one.shutdown()
        one.server_close()


@pytest.fixture
def key(monkeypatch):
    monkeypatch.setenv("HARNESS_API_KEY", KEY)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def endpoint(url, waits=None, **more):
    settings = Settings(url, "m", {"temperature": 0.5, "seed": 7}, **{"timeout_s": 20.0, **more})
    return Endpoint(settings, words, (waits if waits is not None else []).append)


def test_a_model_is_told_the_words_then_what_the_judge_said(key):
    with server(reply(usage={"total_tokens": 12, "more": "x"})) as (url, asked):
        turn = Turn(Proposal("def softmax(x): ...\n"), "refused: wrong")
        found = endpoint(url + "/").propose(SOFTMAX, History(1, (turn,)))

    assert found.text == "import torch\n\n\ndef softmax(x):\n    return x\n"
    assert found.said == {"model": "m-1", "finish_reason": "stop", "usage": {"total_tokens": 12}}
    path, headers, body = asked[0]
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert {name: body[name] for name in ("model", "temperature", "seed")} == {
        "model": "m",
        "temperature": 0.5,
        "seed": 7,
    }
    assert [one["role"] for one in body["messages"]] == ["user", "assistant", "user"]
    assert body["messages"][0]["content"].startswith(words(SOFTMAX))
    assert body["messages"][1]["content"] == "```python\ndef softmax(x): ...\n```"
    assert body["messages"][2]["content"].startswith("refused: wrong")


def test_no_process_that_is_started_later_inherits_the_key(key):
    endpoint("https://example.org/v1")
    assert KEY not in os.environ.values()


def test_no_key_is_sent_where_there_is_none(key, monkeypatch):
    monkeypatch.delenv("HARNESS_API_KEY")
    with server(reply()) as (url, asked):
        endpoint(url).propose(SOFTMAX, History(1))
    assert "Authorization" not in asked[0][1]


def test_what_passes_is_tried_again_and_the_server_says_when(key):
    waits = []
    with server((429, {}, {"Retry-After": "7"}), (503, {}, {}), (0, {}, {}), reply()) as (url, asked):
        assert endpoint(url, waits).propose(SOFTMAX, History(1)).text
    assert len(asked) == 4
    assert waits == [7.0, 2.0, 4.0]


@pytest.mark.parametrize(
    ("answers", "why", "tries"),
    [
        ([(401, {"error": {"message": f"bad key {KEY}"}}, {})], "401 Unauthorized: bad key \\[key\\]$", 1),
        ([(400, b"<html>no", {})], "400 Bad Request$", 1),
        ([(500, {}, {})] * 4, "500 Internal Server Error after 4 tries", 4),
        ([(302, {}, {"Location": "http://127.0.0.1:1/steal"})], "302 Found$", 1),
        ([(200, b"{", {})] * 4, "JSONDecodeError: .* after 4 tries", 4),
        ([(200, [], {})] * 4, "no JSON object after 4 tries", 4),
        ([(200, {"choices": []}, {})], "no choices\\[0\\].message.content", 1),
        ([(200, {"choices": [{"message": {"content": 5}}]}, {})], "no choices\\[0\\].message.content", 1),
        ([(0, {}, {})] * 4, "RemoteDisconnected|ConnectionReset", 4),
        ([(429, {}, {"Retry-After": "99999"})] * 4, "429 Too Many Requests after 4 tries", 4),
        ([(401, {"error": {"message": "a\x1b[31m\nb" + 500 * "c"}}, {})], "a.x1b.31m.nb", 1),
    ],
)
def test_a_server_that_says_no_is_one_line_without_the_key(key, answers, why, tries):
    waits = []
    with server(*answers) as (url, asked), pytest.raises(Stopped, match=why) as caught:
        endpoint(url, waits).propose(SOFTMAX, History(1))
    said = str(caught.value)
    assert not any(word in said for word in ("\n", "\x1b", KEY))
    assert len(said) < 400
    assert len(asked) == tries
    assert max(waits, default=0) <= 60


def test_a_server_that_does_not_answer_in_time_is_given_up(key):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        with pytest.raises(Stopped, match="after 2 tries"):
            endpoint(url, timeout_s=0.1, tries=2).propose(SOFTMAX, History(1))
    with pytest.raises(Stopped, match="refused"):
        endpoint(url, tries=1).propose(SOFTMAX, History(1))


def test_a_key_that_the_server_sends_back_is_hidden(key, tmp_path):
    content = f"```python\n# {KEY}\ndef softmax(x):\n    return x\n```"
    spelt = json.dumps(reply(content, model=KEY)[1]).replace("sk-", "\\u0073k-").encode()
    with server((200, spelt, {})) as (url, _):
        one = endpoint(url)
        found = one.propose(SOFTMAX, History(1))
    assert KEY not in json.dumps([found.text, found.said, one.described()])
    assert one.described() == {"model": "m", "host": "127.0.0.1", "sampling": {"temperature": 0.5, "seed": 7}}


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://a/v1", "--url: no address"),
        ("127.0.0.1:8000", "--url: no address"),
        ("http://[", "--url: no address"),
        ("http://a:x/v1", "--url: no address"),
        ("https://a/v1?key=1", "--url: no address"),
        ("https://user:word@a/v1", "holds a password; put the key into HARNESS_API_KEY"),
        ("http://example.org/v1", "example.org without https would get the key in the open"),
    ],
)
def test_an_address_that_would_leak_is_refused(key, url, why):
    with pytest.raises(Unusable, match=why) as caught:
        endpoint(url)
    assert KEY not in str(caught.value)
    assert "word@" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ANSWER, "import torch\n\n\ndef softmax(x):\n    return x\n"),
        (f"```\n{ONE}```\nbetter:\n~~~py\n{ONE}#\n~~~", f"{ONE}#\n"),
        (f"```python\n{ONE}```\nRun it:\n```\nprint(softmax(1))\n```", ONE),
        ("```python\nsoftmax = torch.softmax\n```", "softmax = torch.softmax\n"),
        ("```python\ndef softmax(x)\n  what\n```", "def softmax(x)\n  what\n"),  # the judge says what is wrong
        ("````python\ns = '''\n```\n'''\ndef softmax(x): ...\n````", "s = '''\n```\n'''\ndef softmax(x): ...\n"),
        ("def softmax(x):\n    return x\n", "def softmax(x):\n    return x\n"),
        (f'"""Do:\n```\n{ONE}#\n```\n"""\n{ONE}', f'"""Do:\n```\n{ONE}#\n```\n"""\n{ONE}'),  # Python as a whole
        (f"1. so:\n   ```py\n{ONE}   ```\n", ONE),
        ("I cannot do that.", ""),
        ("```python\nprint('softmax')\n```", ""),
        ("```python\ndef softmax(x):\n    return", ""),  # cut in the middle
        ("", ""),
    ],
)  # fmt: skip
def test_the_code_is_taken_out_of_the_reply(text, expected):
    assert code_of(text, "softmax") == expected


def test_a_reply_of_many_fences_is_read_in_one_pass():
    began = time.process_time()
    assert code_of(200_000 * "```a\n", "softmax") == ""
    assert time.process_time() - began < 10.0  # seconds; each fence against each other takes hours


def test_an_answer_without_code_is_a_proposal_that_says_so(key):
    told = {"choices": [{"message": {"content": None}, "finish_reason": "length"}]}
    with server((200, told, {})) as (url, _):
        found = endpoint(url).propose(SOFTMAX, History(1))
    assert (found.text, found.note) == (
        "",
        "the answer has no code block that defines softmax; it was cut at its longest",
    )


def test_the_key_is_in_no_journal_and_on_no_terminal(key, tmp_path, monkeypatch, capsys):
    from test_harness import FakeJudge

    class Opened(FakeJudge):
        def __init__(self, *, seconds):
            super().__init__(has_card=False, on="without a card")

        def __enter__(self):
            return self

        def __exit__(self, *exception):
            pass

    monkeypatch.setattr(command, "Judge", Opened)
    monkeypatch.setattr("course_harness.endpoint.time.sleep", lambda seconds: None)
    with server(reply(), (401, {"error": {"message": KEY}}, {}), reply()) as (url, asked):
        arguments = ["softmax", "--proposer", "endpoint", "--url", url, "--model", "a/m", "--rounds", "2"]
        arguments += ["--sampling", "temperature=0.25", "--journals", str(tmp_path)]
        assert command.main(arguments) == 3  # it was refused after the first round
        monkeypatch.setenv("HARNESS_API_KEY", KEY)
        assert command.main(arguments) == 0
    assert [one[1]["Authorization"] for one in asked] == 3 * [f"Bearer {KEY}"]
    assert asked[2][2]["messages"][2]["content"].startswith("The judge says\n")
    out, error = capsys.readouterr()
    path = tmp_path / "kernel-softmax-a_m-without_a_card.jsonl"
    assert KEY not in out + error + path.read_text()
    assert "the same command goes on" in error
    assert [e["kind"] for e in Journal(path).entries] == [
        "begun",
        "proposed",
        "judged",
        "spent",
        "proposed",
        "judged",
        "ended",
    ]


@pytest.mark.parametrize("told", ["heat=1", "temperature=warm", "temperature=nan", "seed=1.5"])
def test_sampling_of_another_form_is_one_line(tmp_path, capsys, told):
    arguments = [
        "softmax",
        "--proposer",
        "endpoint",
        "--url",
        "http://127.0.0.1:1/v1",
        "--model",
        "m",
        "--sampling",
        told,
    ]
    assert command.main(arguments) == 2
    assert f"--sampling {told}" in capsys.readouterr().err
