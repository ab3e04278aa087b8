"""Sampling in the interpreter, token by token against the truth; the truth against the distribution; refusals."""

import re
import sys
import types
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from course_judge.worker.interpreter import watched_memory
from course_kernels.measure.check import WrongResult, checked_error
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import INF, NAN, Workload
from course_kernels.sampling import arguments, k01_gumbel, k02_threshold, library
from course_kernels.sampling.problem import (
    MARGIN,
    PROBLEM,
    Given,
    kept_of,
    make_inputs,
    probabilities,
    reference,
    scores_of,
    words_of,
)

pytestmark = pytest.mark.kept

KERNELS = [pytest.param(k01_gumbel.sampling, id="k01"), pytest.param(k02_threshold.sampling, id="k02")]


def workload(B=5, V=97, **flags):
    return Workload.of("int64", B=B, V=V, **flags)


def inputs_of(w, seed=0):
    return make_inputs(w, torch.Generator().manual_seed(seed), "cpu")


def rows(logits, temperature=1.0, top_k=None, top_p=None, seed=0, dtype=torch.float32):
    """Inputs of these logits, (B, V) or a row; every row asks for the same, with a seed of its own."""
    x = torch.as_tensor(logits, dtype=torch.float32).to(dtype)
    x = x[None] if x.dim() == 1 else x
    B = len(x)
    given = Given(x, torch.full((B,), float(temperature)), torch.arange(B) + seed, torch.arange(B).int())
    k = None if top_k is None else torch.full((B,), top_k, dtype=torch.int32)
    p = None if top_p is None else torch.full((B,), float(top_p))
    return given._replace(top_k=k, top_p=p)


def drawn_by(kernel, given):
    """The tokens of a kernel, called without what is not there."""
    return kernel(*(x for x in given if x is not None))


# --- the token --------------------------------------------------------------------------------------------

PLAIN = [w for w in PROBLEM.check_on if not w.dims.get("filtered", False) and w.B * w.V < 30_000]
FILTERED = [
    workload(2, 5, filtered=True),
    workload(6, 33, filtered=True, bf16=True),
    workload(1, 4097, filtered=True, bf16=True),
]


@pytest.mark.parametrize(
    ("kernel", "w"),
    [pytest.param(k01_gumbel, w, id=f"k01-{w.label}") for w in PLAIN]
    + [pytest.param(k02_threshold, w, id=f"k02-{w.label}") for w in (*PLAIN[:3], *FILTERED)],
)
def test_every_token_is_the_right_one_and_nothing_is_read_outside(kernel, w):
    inputs = inputs_of(w)
    with watched_memory() as memory:
        tokens = kernel.sampling(*inputs)

    assert memory.findings == []
    assert tokens.dtype is torch.int64
    assert torch.equal(tokens.double(), reference(*inputs))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_search_finds_the_threshold_to_the_last_bit(dtype):
    """Logits of both signs, zeros of both signs, equals, subnormals and the largest of a type."""
    row = torch.tensor([0.0, -0.0, 1.5, 1.5, 1.5, -2.0, -2.0, 3e4, -3e4, 1e-7, -1e-7, 0.3, -0.3, 2.0, -INF])
    ks = [1, 4, 7, 9, 14]
    logits = torch.stack([row.roll(k) for k in ks]).to(dtype)
    given = rows(logits, temperature=1e9, dtype=dtype)._replace(top_k=torch.tensor(ks, dtype=torch.int32))
    _, stays = kept_of(given)
    # So hot that what stays is as good as equal.
    tokens = k02_threshold.sampling(*given[:5])

    assert stays[torch.arange(len(ks)), tokens].all()
    assert torch.equal(tokens.double(), reference(*given))
    assert stays.sum(-1).tolist() == [1, 5, 7, 9, 14]  # equals stay together
    least = [threshold_of(x, k) for x, k in zip(logits, ks, strict=True)]
    assert least == [float(x[row_stays].min()) for x, row_stays in zip(logits, stays, strict=True)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_search_ends_at_the_very_least_logits_too(dtype):
    """Below -inf the turned bits are those of NaN, of which no comparison is true."""
    least = torch.finfo(dtype).min
    x = torch.tensor([5.0, least, least / 1.25, -INF, least / 3, INF], dtype=dtype)
    falling = sorted((float(value) for value in x), reverse=True)

    assert [threshold_of(x, k) for k in range(1, 7)] == falling


@triton.jit
def threshold_kernel(x, wanted, out, V, BLOCK: tl.constexpr, TYPE: tl.constexpr):
    """The search alone, for a count."""
    tl.store(out, k02_threshold.largest_threshold(x, V, 1.0, 0.0, -float("inf"), wanted, False, BLOCK, TYPE))


def threshold_of(x, k):
    """The least logit that stays."""
    out = torch.empty(1)
    kind = {torch.float32: tl.float32, torch.bfloat16: tl.bfloat16, torch.float16: tl.float16}[x.dtype]
    threshold_kernel[(1,)](x.contiguous(), float(k), out, len(x), BLOCK=128, TYPE=kind)
    return float(out)


THRESHOLDS = [
    # logits, top_k, top_p, what stays
    ([1.0, 3.0, 2.0, 3.0], 1, None, [1, 3]),
    ([1.0, 3.0, 2.0, 3.0], 3, None, [1, 2, 3]),
    ([1.0, 3.0, 2.0, 3.0], 0, None, [0, 1, 2, 3]),
    ([1.0, 3.0, 2.0, 3.0], 4, None, [0, 1, 2, 3]),
    ([1.0, 3.0, 2.0, 3.0], -1, None, [0, 1, 2, 3]),
    ([0.0, 0.0, 0.0, 0.0], None, 0.3, [0, 1, 2, 3]),
    ([np.log(0.5), np.log(0.3), np.log(0.2)], None, 0.49, [0]),
    ([np.log(0.5), np.log(0.3), np.log(0.2)], None, 0.51, [0, 1]),
    ([np.log(0.5), np.log(0.3), np.log(0.2)], None, 0.79, [0, 1]),
    ([np.log(0.5), np.log(0.3), np.log(0.2)], None, 0.81, [0, 1, 2]),
    ([np.log(0.5), np.log(0.3), np.log(0.2)], None, 1.0, [0, 1, 2]),
    ([np.log(0.5), np.log(0.3), np.log(0.2)], None, 0.0, [0]),
    # Of the two that top-k leaves the first holds 5 of 8.
    ([np.log(0.5), np.log(0.3), np.log(0.2)], 2, 0.6, [0]),
    ([np.log(0.5), np.log(0.3), np.log(0.2)], 2, 0.65, [0, 1]),
    ([-INF, 2.0, -INF, NAN], 3, 0.99, [1]),
]


@pytest.mark.parametrize(("logits", "top_k", "top_p", "stays"), THRESHOLDS)
def test_what_stays(logits, top_k, top_p, stays):
    given = rows(np.tile(logits, (2, 1)), top_k=top_k, top_p=top_p, dtype=torch.float16)
    p = probabilities(given)

    assert p[0].nonzero()[:, 0].tolist() == stays
    tokens = k02_threshold.sampling(*given[:4], top_k=given.top_k, top_p=given.top_p)
    assert set(tokens.tolist()) <= set(stays)
    assert torch.equal(tokens.double(), reference(*given))


@pytest.mark.parametrize("kernel", KERNELS)
class TestProperties:
    """What holds for a draw whoever makes it."""

    def test_temperature_0_takes_the_first_of_the_largest(self, kernel):
        given = rows([[1.0, 7.0, 7.0, 7.0], [5.0, 5.0, 1.0, 2.0], [-INF, -3.0, -INF, -3.0]], temperature=0.0)

        assert drawn_by(kernel, given).tolist() == [1, 0, 1]

    def test_minus_infinity_and_nan_are_never_drawn(self, kernel):
        x = torch.full((8, 40), -INF)
        x[:, 17], x[:, 3], x[:, 30] = -50.0, NAN, -50.5

        assert set(drawn_by(kernel, rows(x)).tolist()) == {17, 30}

    def test_a_row_of_nothing_answers_0_and_plus_infinity_is_drawn(self, kernel):
        x = torch.zeros(3, 10)
        x[0], x[1], x[2, 6] = -INF, NAN, INF

        assert drawn_by(kernel, rows(x)).tolist() == [0, 0, 6]

    def test_a_token_hangs_on_its_row_seed_and_step_alone(self, kernel):
        given = Given(*inputs_of(workload(B=4)))
        tokens = drawn_by(kernel, given)
        turned = Given(*(x.flip(0).contiguous() if x is not None else None for x in given))
        one = Given(*(x[2:3].contiguous() if x is not None else None for x in given))

        assert torch.equal(drawn_by(kernel, given), tokens)
        assert torch.equal(drawn_by(kernel, turned).flip(0), tokens)
        assert torch.equal(drawn_by(kernel, one), tokens[2:3])

    @pytest.mark.parametrize("changed", ["seeds", "steps", "the seeds' upper half"])
    def test_another_seed_or_step_draws_anew(self, kernel, changed):
        given = rows(torch.zeros(6, 50))
        raised = (
            {"steps": given.steps + 1000}
            if changed == "steps"
            else {"seeds": given.seeds + (1 << 40 if "upper" in changed else 1000)}
        )
        again = given._replace(**raised)

        assert (drawn_by(kernel, given) != drawn_by(kernel, again)).sum() >= 4
        assert torch.equal(drawn_by(kernel, again).double(), reference(*again[:4]))

    def test_large_logits_do_not_overflow(self, kernel):
        given = rows([[3e38, -3e38, 1.0], [-3e38, -3e38, -3e38]], temperature=0.5)
        tokens = drawn_by(kernel, given)

        assert tokens[0] == 0
        assert 0 <= tokens[1] <= 2


# --- parts and tickets ------------------------------------------------------------------------------------


def test_parts_in_any_order_find_the_same_token():
    given = inputs_of(workload(B=3, V=7000))
    tickets = torch.zeros(3, dtype=torch.int32)
    expected = reference(*given)
    for seed, each in enumerate((2048, 4096, 8192)):
        with watched_memory(shuffle=seed) as memory:
            tokens = k01_gumbel.sampling(*given, tickets=tickets, each=each)

        assert memory.findings == []
        assert torch.equal(tokens.double(), expected)
        assert not tickets.any()


def test_the_first_of_equals_wins_across_parts():
    x = torch.zeros(1, 9000)
    x[0, [2500, 2501, 8000]] = 4.0

    assert k01_gumbel.sampling(*rows(x, temperature=0.0)[:4], each=2048).tolist() == [2500]


@pytest.mark.parametrize(
    ("B", "V", "each"), [(1, 128256, 2048), (64, 128256, 16384), (1000, 5000, 6144), (1, 2**23, 16384)]
)
def test_how_much_of_a_row_a_program_gets_on_an_h200(B, V, each, monkeypatch):
    k01_gumbel.tokens_each.cache_clear()
    h200 = SimpleNamespace(multi_processor_count=132)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: h200)

    assert k01_gumbel.tokens_each(torch.device("cuda", 0), B, V) == each
    k01_gumbel.tokens_each.cache_clear()


# --- the noise --------------------------------------------------------------------------------------------


@triton.jit
def noise_kernel(seed, step, first, out, BLOCK: tl.constexpr):
    """What a kernel adds to the tokens from `first` on."""
    tl.store(out + tl.arange(0, BLOCK), k01_gumbel.noise(tl.load(seed), tl.load(step), first, BLOCK))


@pytest.mark.parametrize(
    ("seed", "step", "first"), [(0, 0, 0), (-(2**61) - 3, 2**31 - 1, 4096), (7, -5, 40_960)]
)
def test_the_noise_is_that_of_the_truth(seed, step, first):
    seeds, steps = torch.tensor([seed]), torch.tensor([step], dtype=torch.int32)
    out = torch.empty(4096)
    noise_kernel[(1,)](seeds, steps, first, out, BLOCK=4096)
    words = words_of(seeds, steps, first + 4096)[0, first:].double()
    truth = -(-((words + 0.5) / 2**32).log()).log2()

    torch.testing.assert_close(out.double(), truth, rtol=2e-6, atol=2e-6)


def test_the_noise_is_as_exact_for_the_smallest_words_and_the_largest(monkeypatch):
    """Words that a block of 4096 does not have: Philox is replaced by what it would give there."""
    words = [0, 1, 2, 2**31, 2**32 - 1, 2**32 - 2, 2**32 - 2**26, 2**32 - 2**26 - 1]
    for start in (0, 4):
        four = [torch.tensor(words[start + i]) for i in range(4)]
        monkeypatch.setattr(
            tl,
            "philox",
            lambda seed, group, *c, four=four: tuple(
                group * 0 + tl.full([1], int(w), tl.uint32) for w in four
            ),
        )
        out = torch.empty(128)
        noise_kernel[(1,)](torch.tensor([0]), torch.tensor([0]).int(), 0, out, BLOCK=128)
        exact = -(-((torch.stack(four).double() + 0.5) / 2**32).log()).log2()

        torch.testing.assert_close(out[:4].double(), exact, rtol=2e-6, atol=2e-6)


def test_philox_gives_the_words_that_its_authors_print():
    """Random123's own known answers, for the key and counter of zeros and of ones."""
    assert words_of(torch.tensor([0]), torch.tensor([0]), 4)[0].tolist() == [
        0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8
    ]  # fmt: skip


# --- the distribution -------------------------------------------------------------------------------------

LOGITS = torch.tensor([1.2, 0.3, -0.5, 2.0, 0.3, -1.5, 1.9, 0.0, -3.0])
DRAWS = 5000
# A statistic that a right rule passes but once in a thousand million times, for up to eight degrees of freedom.
MOST_CHI_SQUARE = 60.0


def chi_square(tokens, expected):
    """Pearson's statistic of tokens against a distribution; infinite where one is drawn that cannot be."""
    counts = torch.bincount(tokens.long(), minlength=len(expected)).double()
    if (counts[expected == 0] > 0).any():
        return INF
    due = len(tokens) * expected[expected > 0]
    return float(((counts[expected > 0] - due) ** 2 / due).sum())


def asked(temperature, top_k=None, top_p=None, seed=0, draws=DRAWS):
    return rows(LOGITS.expand(draws, -1).contiguous(), temperature, top_k, top_p, seed)


SETTINGS = [
    (0.5, None, None), (1.0, None, None), (2.0, None, None), (0.5, 7, 0.95), (1.0, 6, 0.9), (2.0, 7, 0.8), (1.0, None,
    0.8)
]  # fmt: skip


@pytest.mark.parametrize(("temperature", "top_k", "top_p"), SETTINGS)
def test_the_truth_draws_from_the_distribution(temperature, top_k, top_p):
    given = asked(temperature, top_k, top_p)

    one = Given(*(x if x is None else x[:1] for x in given))
    assert chi_square(reference(*given), probabilities(one)[0]) < MOST_CHI_SQUARE


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_the_kernel_draws_from_the_distribution(temperature):
    """Every group of nine tokens of a long row is a draw by the kernel's own noise: 4096 tokens, 455 draws a call."""
    out, tokens = torch.empty(4096), []
    for seed in range(12):
        noise_kernel[(1,)](torch.tensor([seed]), torch.tensor([3]).int(), 0, out, BLOCK=4096)
        z = LOGITS / temperature / np.log(2)
        tokens.append((out[: 455 * 9].view(455, 9) + z).argmax(-1))

    assert chi_square(torch.cat(tokens), torch.softmax(LOGITS.double() / temperature, -1)) < MOST_CHI_SQUARE


@pytest.mark.parametrize("kernel", [k01_gumbel, k02_threshold])
def test_the_kernel_draws_what_the_truth_draws(kernel):
    given = asked(1.0, seed=5, draws=16)
    best = scores_of(given).topk(2, -1).values
    clear = best[:, 0] - best[:, 1] > MARGIN

    assert clear.sum() > 12
    assert torch.equal(drawn_by(kernel.sampling, given).double()[clear], reference(*given[:4])[clear])


NOISE = {}  # by what it is made from, of many rules


def noise_of(seeds, steps, V):
    """-log(E) of the contract."""
    key = tuple(seeds.tolist()), tuple(steps.tolist()), V
    if hash(key) not in NOISE:
        NOISE[hash(key)] = -(-((words_of(seeds, steps, V).double() + 0.5) / 2**32).log()).log()
    return NOISE[hash(key)]


# Wrong rules: each draws from what its own distribution is, and is held against the right one.
def with_shares(share):
    """Draw by the contract's noise from a distribution of one's own, a function of the inputs."""

    def draw(logits, temperature, seeds, steps, top_k=None, top_p=None):
        given = Given(logits, temperature, seeds, steps, top_k, top_p)
        return (share(given).log() + noise_of(seeds, steps, logits.shape[1])).argmax(-1)

    return draw


def filtered_by(z, top_k, top_p, *, strictly=True, whole=False, k_first=True):
    """Shares after both filters, with what a fault may change."""
    p = torch.softmax(z, -1)
    falling, order = p.sort(-1, descending=True)
    sums = falling.cumsum(-1)
    rank = torch.arange(z.shape[1]).expand_as(z)
    by_k = rank < (top_k[:, None] if top_k is not None else z.shape[1])
    norm = (falling * by_k).sum(-1, keepdim=True) if k_first and not whole else 1.0
    before = sums - falling if strictly else sums
    by_p = (before / norm < (top_p[:, None] if top_p is not None else 2.0)) | (rank == 0)
    kept = torch.zeros_like(p).scatter(-1, order, (falling * by_k * by_p))
    return kept / kept.sum(-1, keepdim=True)


def divided(given):
    return given.logits.double() / given.temperature[:, None].double()


def too_late(given):
    """The filters see the logits as they are; the temperature comes afterwards."""
    kept = filtered_by(given.logits.double(), given.top_k, given.top_p) > 0
    return torch.softmax(torch.where(kept, divided(given), -INF), -1)


def not_renormalised(given):
    """A number u is looked up among shares that no longer sum to one; what is left over goes to the last token."""
    kept = filtered_by(divided(given), given.top_k, given.top_p) > 0
    shares = torch.where(kept, torch.softmax(divided(given), -1), 0.0)
    last = (torch.arange(shares.shape[1]) * kept).argmax(-1, keepdim=True)
    return shares.scatter_add(-1, last, 1 - shares.sum(-1, keepdim=True))


def of_seed_0(given):
    return filtered_by(divided(given), given.top_k, given.top_p)


WRONG = {
    "top-p cut one too early": with_shares(
        lambda g: filtered_by(divided(g), g.top_k, g.top_p, strictly=False)
    ),
    "top-k one too few": with_shares(lambda g: filtered_by(divided(g), g.top_k - 1, g.top_p)),
    "top-k one too many": with_shares(lambda g: filtered_by(divided(g), g.top_k + 1, g.top_p)),
    "temperature after the filters": with_shares(too_late),
    "temperature forgotten": with_shares(lambda g: filtered_by(g.logits.double(), g.top_k, g.top_p)),
    "top-p of the whole row, before top-k": with_shares(
        lambda g: filtered_by(divided(g), g.top_k, g.top_p, whole=True)
    ),
    "shares not renormalised": with_shares(not_renormalised),
    "top-p forgotten": with_shares(lambda g: filtered_by(divided(g), g.top_k, None)),
    "the same noise for every row": lambda *given: with_shares(of_seed_0)(
        *given[:2], given[2][:1].expand_as(given[2]), given[3][:1].expand_as(given[3]), *given[4:]
    ),
}


CUTS = [(0.5, 6, 0.8), (1.0, 6, 0.8), (2.0, 3, 0.99)]


@pytest.mark.parametrize("cut", CUTS)
def test_a_right_rule_in_other_words_draws_from_the_distribution(cut):
    given = asked(*cut)
    expected = probabilities(Given(*(x[:1] for x in given)))[0]

    assert chi_square(with_shares(of_seed_0)(*given), expected) < MOST_CHI_SQUARE


@pytest.mark.parametrize("rule", WRONG)
def test_a_wrong_rule_is_rejected_by_what_it_draws(rule):
    """At one of three temperatures at least: where another cut comes first, one too many of the other is none."""
    found = []
    for cut in CUTS:
        given = asked(*cut)
        expected = probabilities(Given(*(x[:1] for x in given)))[0]
        found.append(chi_square(WRONG[rule](*given), expected))

    assert max(found) > 1.5 * MOST_CHI_SQUARE


@pytest.mark.parametrize("rule", WRONG)
def test_a_wrong_rule_is_refused_by_the_check(rule):
    competitor = Competitor("a model of one", PROBLEM, WRONG[rule])
    with pytest.raises(WrongResult):
        checked_error(competitor, Workload.of("int64", B=300, V=40, filtered=True), device="cpu")


# --- the library ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("w", [w for w in PROBLEM.check_on if w.B * w.V < 15_000], ids=lambda w: w.label)
def test_the_sort_is_right_to_the_token(w):
    assert checked_error(Competitor("library", PROBLEM, library.torch_sorted), w, device="cpu") == 0.0


def test_flashinfer_is_asked_in_the_contract_s_order(monkeypatch):
    def draw(z, top_k, top_p, *, filter_apply_order, generator):
        assert filter_apply_order == "top_k_first"
        return filtered_by(z.double(), top_k, top_p).argmax(-1).int()

    monkeypatch.setitem(
        sys.modules, "flashinfer.sampling", types.SimpleNamespace(top_k_top_p_sampling_from_logits=draw)
    )
    monkeypatch.setattr(library, "flashinfer_version", lambda: "0.5.3")
    given = asked(0.5, 3, 0.9, draws=4)

    assert (
        library.flashinfer_drawn(given.logits, given.temperature, given.top_k, given.top_p).tolist()
        == [3] * 4
    )


def test_without_flashinfer_one_line_says_so(monkeypatch):
    def not_installed(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(library, "version", not_installed)
    given = asked(0.5, 3, 0.9, draws=4)
    says = "flashinfer: not installed here: pip install flashinfer-python, and have nvcc and ninja"
    with pytest.raises(RuntimeError, match=f"^{says}$"):
        library.flashinfer_drawn(given.logits, given.temperature, given.top_k, given.top_p)


# --- the problem ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("filtered", [False, True])
def test_inputs_keep_away_from_what_float32_cannot_tell(filtered):
    given = Given(*inputs_of(workload(B=500, V=40, filtered=filtered)))
    best = scores_of(given).topk(2, -1).values
    warm = given.temperature > 0

    assert (best[:, 0] - best[:, 1])[warm].min() >= MARGIN
    assert {0.0, 1.0} < set(given.temperature.tolist())
    if filtered:
        # A hair more or less of top_p leaves the same tokens.
        for factor in (1 - 2.0**-19, 1 + 2.0**-19):
            moved = torch.where(given.top_p < 1, given.top_p * factor, given.top_p)
            assert torch.equal(kept_of(given)[1], kept_of(given._replace(top_p=moved))[1])
        assert len({tuple(row.nonzero()[:, 0].tolist()) for row in kept_of(given)[1]}) > 50


def test_the_truth_filters_as_a_plain_loop_does():
    given = Given(*inputs_of(workload(B=40, V=30, filtered=True, bf16=True)))
    shares = probabilities(given)
    for row in range(40):
        T, k, p = (float(x[row]) for x in (given.temperature, given.top_k, given.top_p))
        x = given.logits[row].double()
        if T == 0:
            assert set(shares[row].nonzero()[:, 0].tolist()) == set((x == x.max()).nonzero()[:, 0].tolist())
            continue
        z = x / T
        kept = [v for v in range(30) if (z > z[v]).sum() < (k if 0 < k < 30 else 30)]
        weights = {v: float((z[v] - z.max()).exp()) for v in kept}
        whole = sum(weights.values())
        kept = [v for v in kept if p >= 1 or sum(weights[u] for u in weights if z[u] > z[v]) / whole < p]
        expected = torch.zeros(30, dtype=torch.float64)
        for v in kept:
            expected[v] = weights[v] / sum(weights[u] for u in kept)

        torch.testing.assert_close(shares[row], expected)


# --- what a launcher refuses ------------------------------------------------------------------------------

GIVEN = {
    "logits": torch.zeros(2, 9), "temperature": torch.ones(2), "seeds": torch.zeros(2, dtype=torch.int64),
    "steps": torch.zeros(2, dtype=torch.int32),
}  # fmt: skip
REFUSED = {
    "logits: expected float32 or bfloat16 or float16, got float64": {"logits": torch.zeros(2, 9).double()},
    "temperature: expected float32, got float16": {"temperature": torch.ones(2).half()},
    "seeds: expected int64, got int32": {"seeds": torch.zeros(2).int()},
    "steps: expected int32, got int64": {"steps": torch.zeros(2).long()},
    "temperature: expected a torch.Tensor, got float": {"temperature": 0.7},
    "logits: expected (B, V) with no empty dimension, got (2, 0)": {"logits": torch.zeros(2, 0)},
    "logits: expected contiguous (B, V), got strides (1, 2)": {"logits": torch.zeros(9, 2).T},
    "seeds: expected (B,) with B=2, got (3,)": {"seeds": torch.zeros(3, dtype=torch.int64)},
    "steps: expected a tensor on cpu, got meta": {"steps": torch.zeros(2, dtype=torch.int32, device="meta")},
}
BY_K = {
    "top_k: expected int32, got int64": {"top_k": torch.ones(2).long()},
    "top_p: expected float32, got float64": {"top_p": torch.ones(2).double()},
    "top_p: expected (B,) with B=2, got (1,)": {"top_p": torch.ones(1)},
}


@pytest.mark.parametrize(
    ("kernel", "says", "other"),
    [
        pytest.param(k, says, other, id=says)
        for k in (k01_gumbel, k02_threshold)
        for says, other in REFUSED.items()
    ]
    + [pytest.param(k02_threshold, says, other, id=says) for says, other in BY_K.items()],
)
def test_what_a_launcher_refuses(kernel, says, other, monkeypatch):
    monkeypatch.setattr(kernel, "gumbel_kernel" if kernel is k01_gumbel else "threshold_kernel", Recorder())
    refusal = TypeError if re.search(r"(float|int)\d+, got|torch.Tensor", says) else ValueError

    assert kernel.sampling(**GIVEN).shape == (2,)
    with pytest.raises(refusal, match=f"^{re.escape(says)}$"):
        kernel.sampling(**GIVEN | other)


def test_other_tickets_and_parts_are_refused():
    for other, refusal, says in (
        ({"tickets": torch.zeros(2)}, TypeError, "tickets: expected int32, got float32"),
        ({"each": 100}, ValueError, "each: expected a multiple of 2048, at least V / 1024, got 100"),
        ({"each": 0}, ValueError, "each: expected a multiple of 2048, at least V / 1024, got 0"),
    ):
        with pytest.raises(refusal, match=f"^{re.escape(says)}$"):
            k01_gumbel.sampling(**GIVEN | other)


def test_what_the_grid_and_float32_do_not_hold():
    for B, V, says in ((65536, 1, "B <= 65535, got B=65536"), (1, 2**23 + 1, "V <= 8388608, got V=8388609")):
        x, t, s, n = (
            torch.empty(shape, dtype=dtype, device="meta")
            for shape, dtype in (
                ((B, V), torch.float32),
                ((B,), torch.float32),
                ((B,), torch.int64),
                ((B,), torch.int32),
            )
        )
        with pytest.raises(ValueError, match=f"^logits: expected {says}$"):
            arguments.sizes_of(x, t, s, n)


class Recorder:
    """Takes the place of a kernel, and keeps what it was started with."""

    def __init__(self):
        self.calls = []

    def __getitem__(self, grid):
        return lambda *args, **constants: self.calls.append((grid, len(args), constants))


def test_a_launch_is_the_same_whatever_is_asked_and_asks_the_device_for_nothing(monkeypatch):
    given = [rows(torch.zeros(2, 9), T, k, p, seed=s) for T, k, p, s in ((0.0, 3, 0.5, 1), (2.0, 0, 1.0, 9))]
    for module, name in ((k01_gumbel, "gumbel_kernel"), (k02_threshold, "threshold_kernel")):
        monkeypatch.setattr(module, name, recorder := Recorder())
        with monkeypatch.context() as patch:
            for reads in ("item", "tolist", "__int__", "__bool__", "cpu", "numpy"):
                patch.setattr(
                    torch.Tensor, reads, lambda *how: pytest.fail("looked at what lies on the device")
                )
            for one in given:
                module.sampling(*one[: 4 if module is k01_gumbel else 6])

        first, second = recorder.calls
        assert first == second


def test_supports():
    assert [k01_gumbel.supports(w) for w in (workload(), workload(filtered=True))] == [True, False]
    assert all(k02_threshold.supports(w) for w in (*PROBLEM.check_on, *PROBLEM.time_on))
