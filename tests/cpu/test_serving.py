"""The engine that serves: pages are never lost or written over, and company changes no answer.

Ten thousand requests at random, cancelled, pre-empted and refused among them, run over a cache that is a list of words:
whoever reads must find his own text, word for word.
"""

import copy
import io
import random
from collections import Counter
from dataclasses import replace

import pytest
import torch

from course_models.byte_tokens import VOCAB
from course_models.checkpoint import CheckpointRefused
from course_models.config import Config
from course_models.generate import generate
from course_models.model import Model
from course_models.serving import __main__ as door
from course_models.serving import graphs
from course_models.serving.block_manager import OutOfPages, Pages, Shared
from course_models.serving.compare_outputs import Agreement, agreement
from course_models.serving.engine import Engine
from course_models.serving.request import Refused, Request, Running
from course_models.serving.scheduler import Schedule
from course_models.serving.terminal import ByteText
from course_models.serving.workload import Arrival, least_steps, play, trace

pytestmark = pytest.mark.kept

TOY = Config(layers=2, width=32, heads=4, kv_heads=2, head_dim=8, hidden=48, vocab=50, max_tokens=96)


@pytest.fixture(scope="module")
def toy():
    # Wider than usual, so that no two logits are nearly equal.
    model = Model.random(TOY, seed=3, dtype=torch.float32)
    with torch.no_grad():
        model.head *= 4
    return model


def plain(model, request):
    """What the model writes for one request alone, without pages."""
    prompt = torch.tensor([list(request.prompt)])
    written = []
    steps = generate(model, prompt, request.most, temperature=request.temperature, seed=request.seed)
    for (token,) in steps:
        written.append(token)
        if token in request.stops:
            break
    return written


def served(engine, requests, between=lambda step: None):
    """What an engine writes for all, by their order here."""
    numbers = [engine.submit(request) for request in requests]
    found = {number: [] for number in numbers}
    for step in range(10_000):
        between(step)
        if not engine.schedule.running and not engine.schedule.waiting:
            break
        for written in engine.step():
            found[written.number].append(written.token)
    return [found[number] for number in numbers]


def some(count, seed, *, longest=30, temperature=(0.0,), vocab=TOY.vocab):
    rng = random.Random(seed)
    # Few beginnings, so that many are shared.
    beginnings = [[rng.randrange(vocab) for _ in range(longest)] for _ in range(3)]
    requests = []
    for seed in range(count):
        prompt = [*rng.choice(beginnings)[: rng.randint(1, longest)], rng.randrange(vocab)]
        most, stops = rng.randint(1, 20), frozenset(rng.sample(range(vocab), 1))
        requests.append(Request(prompt, most, rng.choice(temperature), seed, stops))
    return requests


@pytest.fixture(scope="module")
def crowd(toy):
    """Requests, and what each gets alone."""
    requests = some(16, seed=1, temperature=(0.0, 0.0, 1.0))
    return requests, [plain(toy, request) for request in requests]


# --- tokens ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"page_tokens": 1},
        {"page_tokens": 64},
        {"step_tokens": 3, "batch": 3},  # prompts in pieces of a token or two
        {"pages": 16, "page_tokens": 4},  # pages run out all the time
        {"continuous": False},
        {"continuous": False, "pages": 16, "page_tokens": 4},
        {"batch": 1},
    ],
    ids=str,
)
def test_company_changes_no_answer(toy, crowd, how):
    requests, answers = crowd
    engine = Engine(toy, **{"pages": 64, "page_tokens": 8, "step_tokens": 40, "batch": 6, **how})

    assert served(engine, requests) == answers
    pages = engine.schedule.pages
    assert (pages.held, pages.free) == (0, pages.count)
    if how.get("pages") == 16:
        assert engine.schedule.preempted > 2
    if how in ({}, {"page_tokens": 1}):
        assert engine.schedule.shared > 100


class Replayed:
    """A CUDA graph without a card: the same call, into the same memory."""

    def __init__(self, call):
        self.call, self.answer = call, call()

    def replay(self):
        with torch.no_grad():
            self.answer.copy_(self.call())


def from_graphs(monkeypatch, model, sizes=(1, 2, 4, 8, 16), **how):
    """An engine whose steps of few tokens are replayed, and how many rows each of them had."""
    rows = []

    def capture(call):
        graph = Replayed(call)
        return graph, graph.answer

    monkeypatch.setattr(graphs, "captured", capture)
    engine = Engine(model, **how)
    engine._graphs = kept = graphs.Graphs(engine._paged, model.config.max_tokens, sizes)
    step = kept.step

    def counted(shares):
        rows.append([share.tokens for share in shares])
        return step(shares)

    monkeypatch.setattr(kept, "step", counted)
    return engine, rows


@pytest.mark.parametrize(
    "how",
    [{}, {"step_tokens": 11}, {"pages": 16, "page_tokens": 4}, {"continuous": False}],
    ids=str,
)
def test_steps_by_rows_change_no_answer_and_take_prompts(toy, crowd, monkeypatch, how):
    requests, answers = crowd
    how = {"pages": 64, "page_tokens": 8, "step_tokens": 40, "batch": 6, **how}
    engine, rows = from_graphs(monkeypatch, toy, **how)

    assert served(engine, requests) == answers
    assert any(max(each) > 3 for each in rows)  # of a prompt, four at least
    assert max(map(sum, rows)) <= 16
    # Larger steps go by themselves.
    assert len(rows) < engine.steps or how["step_tokens"] < 16


def test_rows_that_do_not_grow_are_seen(toy, crowd, monkeypatch):
    requests, answers = crowd
    engine, _ = from_graphs(monkeypatch, toy, pages=64, page_tokens=8, step_tokens=11, batch=6)
    tables = engine._paged.tables

    def all_as_long_as_the_last(shares):
        table, lengths = tables(shares)
        ends = torch.tensor([share.tokens for share in shares]).cumsum(0) - 1
        counts = torch.tensor([share.tokens for share in shares])
        return table, lengths[ends].repeat_interleave(counts)

    monkeypatch.setattr(engine._paged, "tables", all_as_long_as_the_last)
    assert served(engine, requests) != answers


def test_streams_are_read_in_turns_and_one_that_is_closed_is_cancelled(toy):
    first, second, third = some(3, seed=5)
    engine = Engine(toy, pages=32, page_tokens=4)
    streams = engine.generate(first), engine.generate(second)
    early = engine.generate(Request([1, 2, 3], 50))
    found = [[], []]
    for _ in range(3):
        next(early)
    early.close()
    for _ in range(30):
        for stream, tokens in zip(streams, found, strict=True):
            tokens += [token] if (token := next(stream, None)) is not None else []

    assert found == [plain(toy, first), plain(toy, second)]
    assert engine.schedule.pages.held == 0
    assert list(engine.generate(third)) == plain(toy, third)


def test_what_is_written_past_a_text_and_in_pages_of_nobody_changes_nothing(toy):
    requests = some(8, seed=2)
    engine = Engine(toy, pages=40, page_tokens=8, step_tokens=20, batch=4)
    engine._paged.keys.fill_(1e4)
    engine._paged.values.fill_(-1e4)

    assert served(engine, requests) == [plain(toy, request) for request in requests]


NEAR = 0.05  # of a logit in bfloat16, whose logits are of size 4


def test_in_bfloat16_only_a_near_thing_is_decided_otherwise(toy):
    model = copy.deepcopy(toy).to(torch.bfloat16)
    requests = some(24, seed=4)
    engine = Engine(model, pages=64, page_tokens=8, step_tokens=20, batch=5)
    found = [agreement(model, *pair) for pair in zip(requests, served(engine, requests), strict=True)]

    assert all(one.gap is None or one.gap < NEAR for one in found), found
    assert sum(one.gap is None for one in found) > 12


def test_another_answer_is_told_with_its_distance(toy):
    request = Request([1, 2, 3], 5)
    right = plain(toy, request)
    wrong = [*right[:2], (right[2] + 1) % TOY.vocab, *right[3:]]

    assert agreement(toy, request, right) == Agreement(5, None)
    far = agreement(toy, request, wrong)
    assert far.equal == 2
    assert far.gap > NEAR
    with pytest.raises(ValueError, match="3 tokens where the plain model writes 5"):
        agreement(toy, request, right[:3])
    with pytest.raises(ValueError, match="temperature: expected 0"):
        agreement(toy, replace(request, temperature=1.0), right)


# --- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (Request([], 3), "prompt: it is empty: give at least one token"),
        (Request([3, 50], 3), "prompt: token 50 is none of this model's: they go from 0 to 49"),
        (Request([-1], 3), "prompt: token -1 is none of this model's: they go from 0 to 49"),
        (Request([1], 0), "most: expected at least 1, got 0"),
        (Request([1], 3, temperature=-1.0), "temperature: expected 0 or more, got -1.0"),
        (Request([1], 3, temperature=float("nan")), "temperature: expected 0 or more, got nan"),
        (
            Request([1] * 90, 8),
            "prompt: 90 tokens and 8 to write are more than the model's 96 positions: ask for fewer, or give a "
            "shorter prompt",
        ),
        (
            Request([1] * 30, 8),
            "prompt: a text of 37 tokens needs 10 pages, and there are 8: ask for fewer tokens, or start the engine "
            "with more pages",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_served_is_refused_in_one_line_and_the_others_go_on(toy, request_, said):
    engine = Engine(toy, pages=8, page_tokens=4)
    good = Request([1, 2, 3], 9)
    stream = engine.generate(good)
    begun = [next(stream)]
    with pytest.raises(Refused) as refused:
        engine.submit(request_)

    assert str(refused.value) == said
    assert begun + list(stream) == plain(toy, good)


def test_the_longest_text_that_fits_is_served(toy):
    engine = Engine(toy, pages=8, page_tokens=4)
    request = Request([1] * 24, 9)  # 32 tokens that are read, and one that never is

    assert list(engine.generate(request)) == plain(toy, request)


def test_graphs_without_a_gpu_are_refused(toy):
    with pytest.raises(RuntimeError, match="serve without graphs there"):
        Engine(toy, graphs=True)


def test_a_step_that_fails_loses_nobody(toy, monkeypatch):
    requests = some(6, seed=8)
    engine = Engine(toy, pages=64, page_tokens=4, step_tokens=20, batch=4)
    step, failed = engine._paged.step, []

    def at_times(shares):
        if len(failed) < 3 and len(shares) > 2:
            failed.append(len(shares))
            raise RuntimeError("out of memory")
        return step(shares)

    monkeypatch.setattr(engine._paged, "step", at_times)
    numbers = [engine.submit(request) for request in requests]
    found = {number: [] for number in numbers}
    while engine.schedule.running or engine.schedule.waiting:
        try:
            for written in engine.step():
                found[written.number].append(written.token)
        except RuntimeError:
            pass

    assert len(failed) == 3
    assert list(found.values()) == [plain(toy, request) for request in requests]


# --- pages and turns, ten thousand times -----------------------------------------------------------


class Words:
    """A cache of words: each step writes what it computes, and reads everything that it says it holds."""

    def __init__(self, pages, page_tokens):
        self.words = [[None] * page_tokens for _ in range(pages + 1)]
        self.size = page_tokens

    def step(self, shares):
        for share in shares:
            one = share.running
            for at in range(one.computed, one.computed + share.tokens):
                # Key and value of a token hang on all that stand before it.
                self.words[one.pages[at // self.size]][at % self.size] = word_of(one.tokens, at)
        for share in shares:
            one = share.running
            for at in range(one.computed + share.tokens):
                found = self.words[one.pages[at // self.size]][at % self.size]
                assert found == word_of(one.tokens, at), f"request {one.number} finds another's text at {at}"


def word_of(tokens, at):
    return at, tokens[at], tokens[at // 2], tokens[0]


def check_books(schedule):
    """Every page is held as often as block tables list it, and all others are free."""
    pages = schedule.pages
    listed = Counter(page for one in schedule.running for page in one.pages)
    assert all(pages.holders(page) == listed[page] for page in range(1, pages.count + 1))
    assert pages.held == len(listed)
    assert all(not one.pages and not one.computed for one in schedule.waiting)
    assert 0 not in listed


def storm(requests, seed, make=Schedule, pages_of=Pages):
    """Serve so many requests at random; returns how often what happened."""
    rng = random.Random(seed)
    happened = Counter()
    left, number = requests, 0
    while left > 0:
        count, size = rng.randint(4, 40), rng.choice((1, 2, 3, 4, 7))
        batch = rng.randint(1, 12)
        pages = pages_of(count, size, first=1)
        schedule = make(pages, rng.randint(batch, 60), batch, continuous=rng.random() < 0.8)
        words, under_way = Words(count, size), []
        beginnings = [[rng.randrange(9) for _ in range(count * size)] for _ in range(3)]
        for _ in range(rng.randint(50, 200)):
            for _ in range(rng.choice((0, 0, 1, 1, 2, 8))):
                length = rng.randint(1, max(1, count * size // rng.choice((1, 2, 4, 8))))
                prompt = [*rng.choice(beginnings)[: length - 1], rng.randrange(9)]
                request = Request(prompt, rng.choice((1, 3, 12, 40)))
                if length + request.most - 1 > count * size:
                    happened["refused"] += 1
                    continue
                left, number = left - 1, number + 1
                one = Running(number, request, list(request.prompt))
                schedule.waiting.append(one)
                under_way.append(one)
            if under_way and rng.random() < 0.3:
                one = under_way.pop(rng.randrange(len(under_way)))
                happened["cancelled while " + ("it ran" if one in schedule.running else "it waited")] += 1
                schedule.leave(one)
            advance(schedule, words, under_way, rng, happened)
        for _ in range(100_000):  # nobody new: all must come to their ends
            if not under_way:
                break
            advance(schedule, words, under_way, rng, happened)
        assert not under_way, "somebody waits for ever"
        assert pages.held == 0
        happened["pre-empted"] += schedule.preempted
        happened["shared"] += schedule.shared
    return happened


def advance(schedule, words, under_way, rng, happened):
    shares = schedule.plan()
    assert bool(shares) == bool(under_way)
    assert sum(share.tokens for share in shares) <= schedule.step_tokens
    assert len(schedule.running) <= schedule.batch
    assert len({share.running.number for share in shares}) == len(shares)
    check_books(schedule)
    words.step(shares)
    for share in shares:
        one, ends = share.running, share.ends
        schedule.computed(share)
        if ends:
            one.tokens.append(rng.randrange(9))
            if one.done:
                happened["done"] += 1
                schedule.leave(one)
                under_way.remove(one)
    check_books(schedule)


def test_ten_thousand_requests_lose_no_page_and_read_no_other_text():
    happened = storm(10_000, seed=0)

    assert happened["done"] > 5000, happened
    assert (
        min(happened[name] for name in ("refused", "cancelled while it ran", "cancelled while it waited"))
        > 50
    )
    assert min(happened["pre-empted"], happened["shared"]) > 500


class ForgetsToFree(Schedule):
    def leave(self, one):
        pages = one.pages
        one.pages = pages[1:]
        super().leave(one)


class SharesAPageThatIsNotFull(Pages):
    def share(self, tokens):
        return super().share(tuple(tokens) + (0,) * (-len(tokens) % self.page_tokens))


class GivesAwayWhatIsHeld(Pages):
    def give_back(self, pages):
        super().give_back(pages)
        for page in pages:
            if self.holders(page) and page not in self._empty:
                self._empty.append(page)


class KnowsAPageThatWasGivenAway(Pages):
    def take(self):
        before = dict(self._page_with), dict(self._content)
        page = super().take()
        self._page_with, self._content = before
        return page


class NamesNoBeginning(Pages):
    def fill(self, page, before, tokens):
        return super().fill(page, 0, tokens)

    def share(self, tokens):
        found, held = [], len(tokens) // self.page_tokens * self.page_tokens
        for begin in range(0, held, self.page_tokens):
            one = super().share(tokens[begin : begin + self.page_tokens])
            if not one.pages:
                break
            found += one.pages
        return Shared(tuple(found), 0)


@pytest.mark.parametrize(
    ("make", "pages_of"),
    [
        (ForgetsToFree, Pages),
        (Schedule, SharesAPageThatIsNotFull),
        (Schedule, GivesAwayWhatIsHeld),
        (Schedule, KnowsAPageThatWasGivenAway),
        (Schedule, NamesNoBeginning),
    ],
    ids=lambda one: one.__name__,
)
def test_a_planted_fault_is_seen(make, pages_of):
    with pytest.raises((AssertionError, ValueError, KeyError, OutOfPages, IndexError)):
        storm(2000, seed=0, make=make, pages_of=pages_of)


def test_pages_say_what_they_cannot_do():
    pages = Pages(2, 4)
    first = pages.take()
    pages.take()
    with pytest.raises(OutOfPages, match="all 2 are held"):
        pages.take()
    pages.give_back([first])
    with pytest.raises(ValueError, match="nobody holds it"):
        pages.give_back([first])
    for wrong in ((0, 4), (4, 0)):
        with pytest.raises(ValueError, match="expected at least 1, got 0"):
            Pages(*wrong)
    with pytest.raises(ValueError, match="batch: expected 1 to step_tokens=4, got 5"):
        Schedule(pages, 4, 5)


# --- a trace ---------------------------------------------------------------------------------------

SLIPS = (3, 9, 4, 6, 2, 5)  # those of the map of W4


@pytest.mark.parametrize(("continuous", "steps"), [(False, 14), (True, 9)], ids=["coach", "bus"])
def test_the_slips_of_the_map_take_as_many_steps_as_on_paper(toy, continuous, steps):
    engine = Engine(toy, batch=4, continuous=continuous)
    for most in SLIPS:
        engine.submit(Request([1], most))
    while engine.step():
        pass

    assert engine.steps == steps == least_steps(SLIPS, 4, continuous=continuous)


class Clock:
    """Each look takes a tenth of a second."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        self.now += 0.1
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def test_a_trace_is_served_by_the_clock(toy):
    arrivals = [Arrival(0.0, 3, 2), Arrival(9.0, 5, 1), Arrival(2.0, 90, 4)]
    clock = Clock()
    engine = Engine(toy, pages=32, step_tokens=40)
    served_to = play(engine, arrivals, clock=clock, sleep=clock.sleep)

    assert [one.arrival for one in served_to] == arrivals
    assert [len(one.times_s) for one in served_to] == [2, 1, 4]
    assert [one.first_s == pytest.approx(0.2, abs=0.15) for one in served_to[:2]] == [True, True]
    # Its prompt takes three steps of two looks.
    assert served_to[2].first_s == pytest.approx(0.6, abs=0.15)
    assert [one.each_s for one in served_to] == [pytest.approx(0.2), 0.0, pytest.approx(0.2)]
    assert engine.schedule.pages.held == 0


def test_a_trace_is_the_same_everywhere_and_has_a_long_tail():
    arrivals = trace(400, prompt=100, answer=200, longest=1000, per_s=4, seed=1)

    assert arrivals == trace(400, prompt=100, answer=200, longest=1000, per_s=4, seed=1)
    assert [(one.prompt, one.answer) for one in arrivals[:2]] == [(15, 375), (30, 137)]
    assert all(one.prompt + one.answer <= 1000 and min(one.prompt, one.answer) > 0 for one in arrivals)
    assert sum(one.answer for one in arrivals) / 400 == pytest.approx(200, rel=0.15)
    assert arrivals[-1].at_s == pytest.approx(100, rel=0.15)
    answers = [one.answer for one in arrivals]
    static, continuous = (least_steps(answers, 16, continuous=how) for how in (False, True))
    assert static > 2 * continuous
    assert {one.at_s for one in trace(9, prompt=2, answer=2, longest=9)} == {0.0}


# --- in a terminal ---------------------------------------------------------------------------------


@pytest.fixture
def serve(monkeypatch):
    """serve(arguments, lines="", moves=False) -> exit code and what was written; the model is a toy of bytes."""
    model = Model.random(replace(TOY, vocab=VOCAB), seed=1, dtype=torch.float32)

    def load(name, **how):
        if name != "small":
            raise CheckpointRefused(f"{name}: no such model")
        return model

    def serve(arguments, lines="", moves=False):
        out = io.StringIO()
        monkeypatch.setattr(out, "isatty", lambda: moves)
        return door.main(arguments.split(), io.StringIO(lines), out), out.getvalue()

    monkeypatch.setattr(door.pretrained, "load", load)
    return serve


def test_a_text_goes_on_and_two_are_served_together(serve, capsys):
    code, alone = serve("ab --tokens 9 --temperature 0")
    assert (code, alone[:2]) == (0, "ab")
    assert alone.endswith(" a second · at most 1 of 256 pages]\n")

    code, both = serve("ab b --tokens 9 --temperature 0")
    assert code == 0
    assert alone.partition("\n[")[0] in both
    assert "18 tokens, " in both

    assert serve("--tokens 9 --temperature 0", lines="ab\n\nnot read\n")[1].startswith(
        alone.partition("\n[")[0]
    )
    assert "\033" not in both
    no_text = b"a\xff".decode(errors="surrogateescape")  # as the command line hands it over
    for code, said in (serve(f"{no_text} --tokens 9"), serve("--tokens 9", lines=f"{no_text}\n")):
        assert (code, said[:2]) == (0, "a\N{REPLACEMENT CHARACTER}")
    assert serve(f"{no_text} b --tokens 9")[0] == 0
    assert "\0337\r\033[B" in serve("ab --tokens 3", moves=True)[1]

    assert serve("ab b --tokens 9 --pages 0")[0] == 2
    assert serve("ab --model large")[0] == 2
    code, said = serve(f"a {'b' * 90} --tokens 9")
    assert code == 1
    assert "9 tokens, " in said
    assert capsys.readouterr().err.splitlines() == [
        "pages: expected at least 1, got 0",
        "large: no such model",
        "refused: prompt: 91 tokens and 9 to write are more than the model's 96 positions: ask for fewer, or give a "
        "shorter prompt",
    ]


def test_a_letter_of_several_bytes_is_told_when_it_is_whole():
    text = ByteText()
    told = [text.add(token) for token in "aü\n€\a".encode()] + [
        text.add(0xC3),
        text.add(VOCAB - 1),
        text.end(),
    ]

    assert told[:4] == ["a", "", "ü", "\n"]
    assert "".join(told[4:8]) == "€\ufffd"
    assert "".join(told[8:]) == "\ufffd\ufffd"
