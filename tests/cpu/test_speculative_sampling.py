"""Speculative sampling: kernels token by token against the truth; the truth against the target's pairs; refusals."""

import re
import sys
import types
from importlib.metadata import PackageNotFoundError

import pytest
import torch
from torch.nn.functional import pad

from course_judge.worker.interpreter import watched_memory
from course_kernels.measure.check import WrongResult, checked_error
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import INF, NAN, Workload
from course_kernels.speculative_sampling import arguments, k01_in_torch, k02_one_launch, library
from course_kernels.speculative_sampling.problem import (
    LEAST_SHARE,
    PROBLEM,
    greedy_rows,
    left_over,
    make_inputs,
    passes,
    reference,
    wanted,
)
from course_models.exact_pairs import LEAST_P, Chain, chain, p_value, pairs

pytestmark = pytest.mark.kept

KERNELS = [
    pytest.param(k01_in_torch.speculative_sampling, id="k01"),
    pytest.param(k02_one_launch.speculative_sampling, id="k02"),
]


def inputs_of(w, seed=0):
    return make_inputs(w, torch.Generator().manual_seed(seed), "cpu")


def numbers(*rows, dtype=torch.float32):
    return torch.tensor(rows, dtype=dtype)


def one(target, draft, drafted, uniforms, temperature=1.0):
    """Inputs of one sequence."""
    return (
        numbers(target), numbers(draft), numbers(drafted, dtype=torch.int32), torch.tensor([temperature]),
        numbers(uniforms),
    )  # fmt: skip


def same(found, truth):
    return all(torch.equal(x.double(), y) for x, y in zip(found, truth, strict=True))


# --- the token --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("w", [w for w in PROBLEM.check_on if w.V < 32_000 or not w.dims.get("mixed", False)],
                         ids=lambda w: w.label)  # fmt: skip
def test_every_token_is_the_right_one_and_nothing_is_read_outside(w):
    inputs = inputs_of(w)
    with watched_memory() as memory:
        found = k02_one_launch.speculative_sampling(*inputs)

    assert memory.findings == []
    assert {x.dtype for x in found} == {torch.int32}
    assert same(found, reference(*inputs))
    assert same(k01_in_torch.speculative_sampling(*inputs), reference(*inputs))


# Three words: red, hot, old.
TARGET, DRAFT = [0.5, 0.3, 0.2], [0.7, 0.2, 0.1]
ANSWERS = [
    # drafted, uniforms, tokens, accepted
    ([0], [0.7, 0.0], [0, 0], 1),  # 0.7 * 0.7 is below a half: the second row's first word
    ([0], [0.72, 0.49], [1, -1], 0),  # what is left over is half hot and half old
    ([0], [0.72, 0.51], [2, -1], 0),
    ([1], [0.999, 0.49], [1, 0], 1),  # the draft has too little of it: always
    ([1], [0.999, 0.51], [1, 1], 1),
    ([2], [0.0, 0.81], [2, 2], 1),
    ([-1], [0.0, 0.49], [0, -1], 0),  # no draft: the target's own
    ([3], [0.0, 0.51], [1, -1], 0),  # none of these words
]


@pytest.mark.parametrize("kernel", [*KERNELS, pytest.param(reference, id="truth")])
class TestRules:
    """What holds whoever accepts."""

    @pytest.mark.parametrize(("drafted", "uniforms", "tokens", "accepted"), ANSWERS)
    def test_three_words(self, kernel, drafted, uniforms, tokens, accepted):
        found, count = kernel(*one([TARGET, TARGET], [DRAFT], drafted, uniforms))

        assert (found.tolist(), count.tolist()) == ([tokens], [accepted])

    @pytest.mark.parametrize(
        ("drafted", "tokens"),
        [([1, 0], [1, 0, 2]), ([1, 2], [1, 0, -1]), ([2, 0], [1, -1, -1]), ([-1, 0], [1, -1, -1])],
    )
    def test_greedy_takes_the_first_of_the_largest_and_looks_at_nothing_else(self, kernel, drafted, tokens):
        """Ties, a NaN, and numbers that are no probabilities."""
        rows = [[-9.0, -2.0, -2.0], [7.0, NAN, 7.0], [-INF, -INF, -3.0]]
        found, count = kernel(*one(rows, [[NAN] * 3] * 2, drafted, [NAN] * 3, temperature=0.0))

        assert found.tolist() == [tokens]
        assert count.tolist() == [sum(token >= 0 for token in tokens) - 1]

    def test_a_draft_that_is_the_target_always_passes(self, kernel):
        """Though the number is the largest there is, and the probability one whose product rounds up."""
        rows = torch.rand(16, 3, 5, generator=torch.Generator().manual_seed(0)).softmax(-1)
        drafted = torch.arange(32, dtype=torch.int32).view(16, 2) % 5
        number = torch.full((16, 3), 1 - 2.0**-24)
        tokens, count = kernel(rows, rows[:, :2].contiguous(), drafted, torch.ones(16), number)

        assert set(count.tolist()) == {2}
        assert torch.equal(tokens[:, :2].int(), drafted)

    def test_what_rounding_leaves_nothing_of_is_drawn_from_the_target(self, kernel):
        """The draft has a little more of one word, and as much of the others."""
        more = [0.5 + 2.0**-24, 0.25, 0.25]
        found, count = kernel(*one([[0.5, 0.25, 0.25]] * 2, [more], [0], [1 - 2.0**-24, 0.6]))

        assert (found.tolist(), count.tolist()) == ([[1, -1]], [0])

    def test_nothing_at_all_answers_0(self, kernel):
        found, _ = kernel(*one([[0.0, NAN, -1.0]] * 2, [[0.0, 1.0, 0.0]], [1], [0.0, 0.5]))
        cold, _ = kernel(*one([[-INF, NAN, -INF]] * 2, [DRAFT], [1], [0.0, 0.5], temperature=0.0))

        assert found.tolist() == cold.tolist() == [[0, -1]]

    def test_an_edge_belongs_to_the_word_behind_it(self, kernel):
        row = [0.5, 0.25, 0.25]
        for uniform, token in ((0.0, 0), (0.5, 1), (0.75, 2)):
            assert kernel(*one([row] * 2, [row], [-1], [0.0, uniform]))[0].tolist() == [[token, -1]]

    def test_a_product_has_all_its_digits(self, kernel):
        """The target has what the product rounds to: whether it is below that, float32 cannot say."""
        of = torch.Generator().manual_seed(0)
        u, q = torch.rand(16, generator=of), torch.rand(16, generator=of)
        p = u * q
        expected = u.double() * q.double() < p.double()
        rows = [torch.stack((x, 1 - x), -1) for x in (p, q)]
        target, draft = rows[0][:, None].repeat(1, 2, 1), rows[1][:, None]
        drafted = torch.zeros(16, 1, dtype=torch.int32)
        _, count = kernel(target, draft, drafted, torch.ones(16), u[:, None].repeat(1, 2))

        assert count.tolist() == expected.int().tolist()
        assert 3 < expected.sum() < 13

    def test_a_nan_counts_as_nothing(self, kernel):
        found, count = kernel(*one([[NAN, 0.5, 0.5], TARGET], [[NAN, 0.4, 0.6]], [0], [0.0, 0.9]))

        assert (found.tolist(), count.tolist()) == ([[1, -1]], [0])
        _, count = kernel(*one([TARGET, TARGET], [[0.5, NAN, 0.5]], [1], [0.99, 0.0]))
        assert count.tolist() == [1]

    def test_a_row_hangs_on_its_own_numbers_alone(self, kernel):
        inputs = inputs_of(Workload.of("int32", B=7, K=3, V=50, mixed=True))
        turned = kernel(*(x.flip(0) for x in inputs))
        found = kernel(*inputs)

        assert all(torch.equal(x.flip(0), y) for x, y in zip(turned, found, strict=True))
        assert torch.equal(kernel(*(x[2:3].contiguous() for x in inputs))[0], found[0][2:3])


@pytest.mark.parametrize("at", [0, 8191, 8192, 20_000, 32_002])
def test_the_token_lies_in_any_block(at):
    """One program's blocks have 8192 numbers: the first of one, its last, and the end of the row."""
    V = 32_003
    target = torch.full((1, 2, V), 1e-9)
    target[:, :, at] = 0.5
    draft = torch.full((1, 1, V), 1.0 / V)
    drafted = torch.tensor([[(at + 1) % V]], dtype=torch.int32)
    inputs = target, draft, drafted, torch.ones(1), torch.tensor([[0.9, 0.99]])

    assert k02_one_launch.speculative_sampling(*inputs)[0].tolist() == [[at, -1]]
    assert same(k02_one_launch.speculative_sampling(*inputs), reference(*inputs))


def test_the_first_of_equals_is_found_in_any_block():
    target = torch.zeros(1, 2, 20_000)
    target[0, 0, [5, 8197, 16_389]] = 1.0  # the same thread's, block after block
    target[0, 1, [9000, 17_192]] = 1.0
    given = (
        target,
        target[:, :1].contiguous(),
        torch.tensor([[5]], dtype=torch.int32),
        torch.zeros(1),
        torch.zeros(1, 2),
    )

    assert k02_one_launch.speculative_sampling(*given)[0].tolist() == [[5, 9000]]


def test_random_numbers_that_nobody_chose_give_the_truth():
    """No inputs made to suit: drafts and numbers as a run has them."""
    language = chain(1.0)
    generator = torch.Generator().manual_seed(5)
    seen = []

    def both(*inputs):
        found = k02_one_launch.speculative_sampling(*inputs)
        assert same(found, reference(*inputs))
        assert same(k01_in_torch.speculative_sampling(*inputs), reference(*inputs))
        seen.append(found[1])
        return found

    pairs(both, language, 50, generator, K=3)
    assert set(torch.cat(seen).tolist()) == {0, 1, 2, 3}


# --- the distribution -------------------------------------------------------------------------------------

# A million pairs in one look at each temperature. A right rule stays above LEAST_P but once in a million such looks;
# the seed is fixed, so that this test has made its look, and its verdict is always the same.
PAIRS = 10**6
TEMPERATURES = (0.5, 1.0, 2.0)


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_pairs_of_tokens_are_distributed_as_the_target_says(temperature):
    language = chain(temperature)
    counts = pairs(reference, language, PAIRS, torch.Generator().manual_seed(1))

    assert counts.sum() == PAIRS
    assert 0.6 < language.passing < 0.95  # both ways are taken often
    assert p_value(counts, language.pairs) > LEAST_P


def with_rest(rule):
    """A rule of acceptance, (inputs) -> what passes, that draws the next token as it should."""

    def accept(target, draft, drafted, temperature, uniforms):
        accepted = rule(target, draft, drafted, temperature, uniforms).long().cumprod(1).sum(1)
        return told(
            drafted, accepted, from_sums(left_over(target, draft, drafted, accepted), uniforms[:, -1:])
        )

    return accept


def from_sums(weights, uniform):
    sums = weights.cumsum(-1)
    return (sums <= uniform.double() * sums[:, -1:]).sum(-1)


def told(drafted, accepted, token):
    """Tokens as the contract has them."""
    place = torch.arange(drafted.shape[1] + 1)
    tokens = torch.where(place < accepted[:, None], pad(drafted, (0, 1)), -1)
    return torch.where(place == accepted[:, None], token[:, None], tokens), accepted


def drawn_otherwise(of):
    """What passes as it should, and the next token drawn from other weights: (P, Q of the row, refused) to weights."""

    def accept(target, draft, drafted, temperature, uniforms):
        accepted = passes(target, draft, drafted, temperature, uniforms).long().cumprod(1).sum(1)
        each, K = torch.arange(len(draft)), draft.shape[1]
        p, q = target[each, accepted].double(), draft[each, accepted.clamp(max=K - 1)].double()
        return told(drafted, accepted, of(p, q, (accepted < K)[:, None], uniforms[:, -1:]))

    return accept


def not_renormalised(p, q, refused, uniform):
    sums = torch.where(refused, (p - q).clamp(min=0), p).cumsum(-1)
    return (sums <= uniform).sum(-1).clamp(max=p.shape[1] - 1)


def kept_after_a_refusal(target, draft, drafted, temperature, uniforms):
    tokens, accepted = reference(target, draft, drafted, temperature, uniforms)
    refused = torch.arange(tokens.shape[1]) == accepted[:, None]
    return torch.where(
        refused & (accepted < drafted.shape[1])[:, None], pad(drafted, (0, 1)), tokens
    ), accepted


def one_position_off(target, draft, drafted, temperature, uniforms):
    return reference(target.roll(-1, 1), draft, drafted, temperature, uniforms)


def same_number(target, draft, drafted, temperature, uniforms):
    """The number that accepted or refused a draft decides what comes next, too."""
    return reference(target, draft, drafted, temperature, uniforms[:, :1].expand_as(uniforms))


WRONG = {
    "what is left over is not normalised": drawn_otherwise(not_renormalised),
    "a refused draft is followed by any word of the target": drawn_otherwise(
        lambda p, q, refused, uniform: from_sums(p, uniform)
    ),
    "what is left over is taken the other way round": drawn_otherwise(
        lambda p, q, refused, uniform: from_sums(torch.where(refused, (q - p).clamp(min=0), p), uniform)
    ),
    "a draft passes when it is the largest": with_rest(
        lambda target, draft, drafted, *_: drafted == target[:, :-1].argmax(-1)
    ),
    "a draft passes by the target alone": with_rest(
        lambda target, draft, drafted, temperature, uniforms: (
            uniforms[:, :-1] < target[:, :-1].gather(-1, drafted.long()[..., None])[..., 0]
        )
    ),
    "the refused draft is kept": kept_after_a_refusal,
    "one position off": one_position_off,
    "one number for all": same_number,
}


@pytest.mark.parametrize("rule", WRONG)
def test_a_wrong_rule_is_rejected_by_what_it_says(rule):
    """At one of the temperatures at least, and with a sixteenth of the pairs."""
    found = []
    for temperature in TEMPERATURES:
        language = chain(temperature)
        counts = pairs(WRONG[rule], language, PAIRS // 16, torch.Generator().manual_seed(1))
        found.append(p_value(counts, language.pairs))

    assert min(found) < LEAST_P / 1000


@pytest.mark.parametrize("rule", WRONG)
def test_a_wrong_rule_is_refused_by_the_check(rule):
    def answer(*inputs):
        return tuple(x.int() for x in WRONG[rule](*inputs))

    competitor = Competitor("a model of one", PROBLEM, answer)
    with pytest.raises(WrongResult):
        checked_error(competitor, Workload.of("int32", B=60, K=3, V=40), device="cpu")


def test_too_few_pairs_tell_nothing():
    language = chain(0.5)
    with pytest.raises(
        ValueError, match=r"^counts: expected 10 of the rarest pair or more, got 0.53: count more$"
    ):
        p_value(pairs(reference, language, 1000, torch.Generator().manual_seed(0)), language.pairs)


def test_a_p_value_is_that_of_the_tables():
    """Two equally likely tokens, three degrees of freedom: 7.81 is passed once in twenty times, 16.27 once in 1000."""
    half = torch.full((2, 2), 0.5)
    for statistic, expected in ((7.8147, 0.05), (16.266, 0.001)):
        off = (statistic * 2500 / 2) ** 0.5
        counts = torch.tensor([[2500 + off, 2500 - off], [2500.0, 2500.0]])
        assert p_value(counts, Chain(half, half, 1.0).pairs) == pytest.approx(expected, rel=1e-3)


# --- the inputs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("w", PROBLEM.check_on, ids=lambda w: w.label)
def test_inputs_are_such_that_every_number_of_drafts_is_accepted(w):
    inputs = inputs_of(w, seed=3)
    tokens, accepted = reference(*inputs)
    target, draft, drafted, temperature, uniforms = inputs

    assert accepted.tolist() == wanted(w)
    assert (temperature == 0).tolist() == greedy_rows(w)
    assert ((uniforms >= 0) & (uniforms < 1)).all()
    # A little more or less of the last number draws the same token.
    for less in (-LEAST_SHARE / 3, LEAST_SHARE / 3):
        moved = torch.cat((uniforms[:, :-1], (uniforms[:, -1:] + less).clamp(0, 1 - 2.0**-24)), -1)
        assert torch.equal(reference(target, draft, drafted, temperature, moved)[0], tokens)


def test_an_answer_that_is_certain_hangs_on_no_random_number():
    w = Workload.of("int32", B=9, K=4, V=12, certain=True)
    *given, uniforms = inputs_of(w)
    answers = [reference(*given, torch.rand(uniforms.shape))[0] for _ in range(20)]

    assert all(torch.equal(answers[0], other) for other in answers)
    assert {int(n) for n in reference(*given, uniforms)[1]} == {0, 1, 2, 3, 4}


def test_the_truth_accepts_as_a_plain_loop_does():
    inputs = inputs_of(Workload.of("int32", B=40, K=4, V=30, mixed=True))
    target, draft, drafted, temperature, uniforms = (x.double().tolist() for x in inputs)
    tokens, _ = reference(*inputs)
    for b in range(40):
        said = []
        for i in range(4):
            p, q, x = target[b][i], draft[b][i], int(drafted[b][i])
            if temperature[b] == 0:
                if p.index(max(p)) != x:
                    break
            elif uniforms[b][i] * q[x] >= p[x]:
                break
            said.append(x)
        p = target[b][len(said)]
        if temperature[b] == 0:
            said.append(p.index(max(p)))
        else:
            q = draft[b][len(said)] if len(said) < 4 else [0.0] * 30
            rest = [max(x - y, 0.0) for x, y in zip(p, q, strict=True)]
            goal, v = uniforms[b][4] * sum(rest), 0
            while sum(rest[: v + 1]) <= goal:
                v += 1
            said.append(v)

        assert tokens[b].tolist() == said + [-1] * (5 - len(said))


def test_the_least_bytes_are_those_of_the_rows_that_are_needed():
    w = Workload.of("int32", B=5, K=4, V=1000)  # none to four accepted

    assert PROBLEM.reads_bytes(w) == (
        9 * 4000  # two rows of those that were refused, one of the last
        + 5 * 4  # temperatures
        + (1 + 2 + 3 + 4 + 4) * 4  # drafts that were decided
        + (1 + 2 + 3 + 4 + 4 + 5) * 4  # their numbers, and one more
        + (0 + 1 + 2 + 3 + 4) * 8  # both probabilities of those that passed
    )
    assert PROBLEM.reads_bytes(Workload.of("int32", B=5, K=4, V=1000, greedy=True)) == (
        (1 + 2 + 3 + 4 + 5) * 4000 + 5 * 4 + (1 + 2 + 3 + 4 + 4) * 4
    )


# --- the library ------------------------------------------------------------------------------------------


def test_flashinfer_is_asked_with_the_draft_first_and_tells_what_was_emitted(monkeypatch):
    def verify(draft, drafted, target, *, generator):
        assert drafted.dtype is torch.int32
        assert target.shape[1] == draft.shape[1] + 1
        return torch.tensor([[5, 6, -1]]), torch.tensor([2]), torch.tensor([1])

    monkeypatch.setitem(
        sys.modules, "flashinfer.sampling", types.SimpleNamespace(chain_speculative_sampling=verify)
    )
    monkeypatch.setattr(library, "flashinfer_version", lambda: "0.5.3")
    tokens, accepted = library.flashinfer_chain(*inputs_of(Workload.of("int32", B=1, K=2, V=9)))

    assert (tokens.tolist(), accepted.tolist()) == ([[5, 6, -1]], [1])


def test_without_flashinfer_one_line_says_so(monkeypatch):
    def not_installed(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(library, "version", not_installed)
    says = "flashinfer: not installed here: pip install flashinfer-python, and have nvcc and ninja"
    with pytest.raises(RuntimeError, match=f"^{says}$"):
        library.flashinfer_chain(*inputs_of(Workload.of("int32", B=1, K=2, V=9)))


# --- what a launcher refuses ------------------------------------------------------------------------------

GIVEN = {
    "target": torch.full((2, 4, 9), 1 / 9), "draft": torch.full((2, 3, 9), 1 / 9),
    "drafted": torch.zeros(2, 3, dtype=torch.int32), "temperature": torch.ones(2), "uniforms": torch.zeros(2, 4),
}  # fmt: skip
REFUSED = {
    "target: expected float32, got bfloat16": {"target": torch.zeros(2, 4, 9).bfloat16()},
    "draft: expected float32, got float64": {"draft": torch.zeros(2, 3, 9).double()},
    "drafted: expected int32, got int64": {"drafted": torch.zeros(2, 3).long()},
    "temperature: expected a torch.Tensor, got float": {"temperature": 0.7},
    "uniforms: expected float32, got float64": {"uniforms": torch.zeros(2, 4).double()},
    "target: expected (B, K + 1, V) with K=3, got (2, 3, 9)": {"target": torch.zeros(2, 3, 9)},
    "target: expected (B, R, V) with no empty dimension, got (2, 4, 0)": {"target": torch.zeros(2, 4, 0)},
    "draft: expected (B, K, V) with no empty dimension, got (2, 0, 9)": {"draft": torch.zeros(2, 0, 9)},
    "draft: expected (B, K, V) with V=9, got (2, 3, 8)": {"draft": torch.zeros(2, 3, 8)},
    "draft: expected contiguous (B, K, V), got strides (27, 1, 3)": {"draft": torch.zeros(2, 9, 3).mT},
    "drafted: expected (B, K) with K=3, got (2, 4)": {"drafted": torch.zeros(2, 4, dtype=torch.int32)},
    "temperature: expected (B,) with B=2, got (3,)": {"temperature": torch.ones(3)},
    "uniforms: expected (B, R) with R=4, got (2, 3)": {"uniforms": torch.zeros(2, 3)},
    "uniforms: expected a tensor on cpu, got meta": {"uniforms": torch.zeros(2, 4, device="meta")},
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("says", "other"), REFUSED.items(), ids=REFUSED)
def test_what_a_launcher_refuses(kernel, says, other):
    refusal = TypeError if re.search(r"(float|int)\d+, got|torch.Tensor", says) else ValueError
    with pytest.raises(refusal, match=f"^{re.escape(says)}$"):
        kernel(**GIVEN | other)


def test_what_a_program_does_not_hold():
    for K, V, says in ((1025, 2, "K <= 1024, got K=1025"), (1, 2**23 + 1, "V <= 8388608, got V=8388609")):
        shapes = ((1, K + 1, V), (1, K, V), (1, K), (1,), (1, K + 1))
        given = [torch.empty(shape, device="meta") for shape in shapes]
        with pytest.raises(ValueError, match=f"^draft: expected {says}$"):
            arguments.sizes_of(*given)


class Recorder:
    """Takes the place of a kernel, and keeps what it was started with."""

    def __init__(self):
        self.calls = []

    def __getitem__(self, grid):
        return lambda *args, **constants: self.calls.append((grid, len(args), constants))


def test_a_launch_asks_the_device_for_nothing(monkeypatch):
    """As a graph wants it; the first kernel makes its trip, and is told apart."""
    monkeypatch.setattr(k02_one_launch, "speculative_sampling_kernel", recorder := Recorder())
    for reads in ("item", "tolist", "__int__", "__bool__", "cpu", "numpy"):
        monkeypatch.setattr(
            torch.Tensor, reads, lambda *how: pytest.fail("looked at what lies on the device")
        )
    for temperature in (0.0, 1.0):
        k02_one_launch.speculative_sampling(**GIVEN | {"temperature": torch.full((2,), temperature)})

    assert recorder.calls[0] == recorder.calls[1]
    with pytest.raises(pytest.fail.Exception, match="looked at what lies on the device"):
        k01_in_torch.speculative_sampling(**GIVEN)


def test_supports():
    assert all(k02_one_launch.supports(w) for w in (*PROBLEM.check_on, *PROBLEM.time_on))
