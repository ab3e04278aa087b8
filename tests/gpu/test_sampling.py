"""Sampling on the card: what is drawn, over and over; in a CUDA graph; rows of a real vocabulary; FlashInfer's draw."""

import pytest
import torch

from course_kernels.problem import Workload
from course_kernels.sampling import k01_gumbel, k02_threshold, library
from course_kernels.sampling.problem import MARGIN, PROBLEM, Given, probabilities, reference, scores_of

GROUPS = ("sampling",)
KERNELS = (k01_gumbel, k02_threshold)
LOGITS = (1.2, 0.3, -0.5, 2.0, 0.3, -1.5, 1.9, 0.0, -3.0)
DRAWS = 60_000
# A statistic that a right rule passes but once in a thousand million times, for up to eight degrees of freedom.
MOST_CHI_SQUARE = 60.0


def asked(temperature, top_k=None, top_p=None, seed=0):
    """Many rows of the same logits, each with a seed of its own."""
    logits = torch.tensor(LOGITS, device="cuda").expand(DRAWS, -1).contiguous()
    rows = torch.arange(DRAWS, device="cuda")
    k = None if top_k is None else torch.full_like(rows, top_k, dtype=torch.int32)
    p = None if top_p is None else torch.full_like(rows, top_p, dtype=torch.float32)
    warm = torch.full_like(rows, temperature, dtype=torch.float32)
    return Given(logits, warm, rows + seed, rows.int(), k, p)


def chi_square(tokens, expected):
    """Pearson's statistic of tokens against a distribution; infinite where one is drawn that cannot be."""
    counts = torch.bincount(tokens.long(), minlength=len(expected)).double()
    if (counts[expected == 0] > 0).any():
        return float("inf")
    due = len(tokens) * expected[expected > 0]
    return float(((counts[expected > 0] - due) ** 2 / due).sum())


def one_of(given):
    return Given(*(x if x is None else x[:1] for x in given))


def without_none(given):
    return tuple(x for x in given if x is not None)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_a_temperature_alone_draws_from_the_distribution(kernel, temperature):
    given = asked(temperature)

    assert (
        chi_square(kernel.sampling(*without_none(given)), probabilities(one_of(given))[0]) < MOST_CHI_SQUARE
    )


@pytest.mark.parametrize(("temperature", "top_k", "top_p"), [(0.5, 6, 0.8), (1.0, 6, 0.8), (2.0, 3, 0.99)])
def test_both_filters_draw_from_the_distribution_and_a_wrong_one_is_told(temperature, top_k, top_p):
    given = asked(temperature, top_k, top_p)
    tokens = k02_threshold.sampling(*given)
    wrong = given._replace(top_p=given.top_p - 0.4, top_k=given.top_k - 1)

    assert not torch.equal(probabilities(one_of(given)) > 0, probabilities(one_of(wrong)) > 0), "no fault"
    assert chi_square(tokens, probabilities(one_of(given))[0]) < MOST_CHI_SQUARE
    assert chi_square(k02_threshold.sampling(*wrong), probabilities(one_of(given))[0]) > 10 * MOST_CHI_SQUARE


def test_flashinfer_draws_from_the_same_distribution_where_it_is_installed():
    given = asked(1.0, 6, 0.8)  # no cut among equals: there it keeps what it likes
    arguments = given.logits, given.temperature, given.top_k, given.top_p
    if library.flashinfer_version():
        tokens = library.flashinfer_drawn(*arguments)
        assert chi_square(tokens, probabilities(one_of(given))[0]) < MOST_CHI_SQUARE
    else:
        with pytest.raises(RuntimeError, match=r"^flashinfer: not installed here: "):
            library.flashinfer_drawn(*arguments)


@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_many_rows_of_a_real_vocabulary_are_right_to_the_token(dtype, filtered):
    w = Workload.of("int64", B=64, V=128256, filtered=filtered)
    given = Given(*PROBLEM.make_inputs(w, torch.Generator("cuda").manual_seed(3), "cuda"))
    given = given._replace(logits=given.logits.to(dtype))
    # Rounding the logits moves what `make_inputs` kept apart: rows that are close again are left out.
    best = scores_of(given).topk(2, -1).values
    clear = (best[:, 0] - best[:, 1] > MARGIN) | (given.temperature <= 0)
    truth = reference(*given)
    assert clear.sum() > 55
    for kernel in KERNELS:
        if kernel is k02_threshold or not filtered:
            tokens = kernel.sampling(*without_none(given)).double()
            assert torch.equal(tokens[clear], truth[clear])


def test_parts_of_any_size_find_the_same_tokens_over_and_over():
    w = Workload.of("int64", B=9, V=128256, bf16=True)
    given = PROBLEM.make_inputs(w, torch.Generator("cuda").manual_seed(0), "cuda")
    tickets = torch.zeros(9, dtype=torch.int32, device="cuda")
    first = k01_gumbel.sampling(*given)
    for turn in range(200):
        each = k01_gumbel.BLOCK * (1, 2, 7, 63)[turn % 4]
        assert torch.equal(k01_gumbel.sampling(*given, tickets=tickets, each=each), first)
    assert not tickets.any()


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_graph_draws_anew_when_the_steps_are_raised(kernel):
    w = Workload.of("int64", B=32, V=5000, filtered=kernel is k02_threshold)
    given = PROBLEM.make_inputs(w, torch.Generator("cuda").manual_seed(0), "cuda")
    tickets = torch.zeros(32, dtype=torch.int32, device="cuda")
    options = {"tickets": tickets} if kernel is k01_gumbel else {}
    kernel.sampling(*given, **options)  # compiles
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        tokens = kernel.sampling(*given, **options)
    seen = []
    for _ in range(4):
        given[3].add_(1)
        tokens.fill_(-1)
        graph.replay()
        seen.append(tokens.clone())
        best = scores_of(Given(*given)).topk(2, -1).values
        clear = (best[:, 0] - best[:, 1] > MARGIN) | (given[1] <= 0)
        assert torch.equal(tokens.double()[clear], reference(*given)[clear])
    assert not all(torch.equal(seen[0], other) for other in seen[1:])
