"""Speculative sampling on the card: pairs of tokens by the million; a real vocabulary; graphs; FlashInfer's kernel."""

import pytest
import torch

from course_kernels.measure.check import checked_error
from course_kernels.problem import Workload
from course_kernels.speculative_sampling import k01_in_torch, k02_one_launch, library
from course_kernels.speculative_sampling.problem import PROBLEM, reference, wanted
from course_models.exact_pairs import LEAST_P, chain, p_value, pairs

GROUPS = ("speculative_sampling",)
KERNELS = (k01_in_torch, k02_one_launch)
PAIRS = 4_000_000
TEMPERATURES = (0.5, 1.0, 2.0)


def generator(seed=0):
    return torch.Generator("cuda").manual_seed(seed)


def looked_at(rule, temperature, count=PAIRS, K=2):
    """The p-value of what a rule says on the card."""
    language = chain(temperature, device="cuda")
    return p_value(pairs(rule, language, count, generator(), K), language.pairs)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_pairs_of_tokens_are_distributed_as_the_target_says(kernel, temperature):
    assert looked_at(kernel.speculative_sampling, temperature) > LEAST_P


@pytest.mark.parametrize("K", [1, 4])
def test_with_shorter_and_longer_drafts_too(K):
    assert looked_at(k02_one_launch.speculative_sampling, 1.0, K=K) > LEAST_P


def kept_after_a_refusal(target, draft, drafted, temperature, uniforms):
    tokens, accepted = k02_one_launch.speculative_sampling(target, draft, drafted, temperature, uniforms)
    refused = torch.arange(drafted.shape[1], device="cuda") == accepted[:, None]
    tokens[:, :-1] = torch.where(refused, drafted, tokens[:, :-1])
    return tokens, accepted


def one_position_off(target, *more):
    return k02_one_launch.speculative_sampling(target.roll(-1, 1), *more)


def drawn_from_the_target(target, draft, drafted, temperature, uniforms):
    _, accepted = k02_one_launch.speculative_sampling(target, draft, drafted, temperature, uniforms)
    ended = torch.where(torch.arange(drafted.shape[1], device="cuda") >= accepted[:, None], -1, drafted)
    return k02_one_launch.speculative_sampling(target, draft, ended, temperature, uniforms)


@pytest.mark.parametrize("rule", [kept_after_a_refusal, one_position_off, drawn_from_the_target])
def test_a_wrong_rule_is_rejected(rule):
    assert min(looked_at(rule, temperature, PAIRS // 16) for temperature in TEMPERATURES) < LEAST_P / 1000


@pytest.mark.parametrize("flag", ["", "greedy", "mixed", "certain"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_rows_of_a_real_vocabulary_are_right_to_the_token(kernel, flag):
    w = Workload.of("int32", B=33, K=4, V=128256, **({flag: True} if flag else {}))
    inputs = PROBLEM.make_inputs(w, generator(3), "cuda")
    tokens, accepted = kernel.speculative_sampling(*inputs)
    truth = reference(*inputs)

    assert accepted.tolist() == wanted(w)
    assert torch.equal(tokens.double(), truth[0])
    assert torch.equal(accepted.double(), truth[1])


def test_it_says_the_same_over_and_over():
    inputs = PROBLEM.make_inputs(Workload.of("int32", B=64, K=4, V=128256, mixed=True), generator(), "cuda")
    first = k02_one_launch.speculative_sampling(*inputs)
    for _ in range(100):
        assert all(map(torch.equal, first, k02_one_launch.speculative_sampling(*inputs)))


def test_the_first_asks_the_device_and_the_second_does_not():
    inputs = PROBLEM.make_inputs(Workload.of("int32", B=4, K=3, V=5000), generator(), "cuda")
    for kernel in KERNELS:
        kernel.speculative_sampling(*inputs)  # compiles
    torch.cuda.set_sync_debug_mode("error")
    try:
        k02_one_launch.speculative_sampling(*inputs)
        with pytest.raises(RuntimeError, match="synchronizing"):
            k01_in_torch.speculative_sampling(*inputs)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_a_graph_accepts_anew_what_lies_there():
    w = Workload.of("int32", B=32, K=4, V=5000, mixed=True)
    given = [x.clone() for x in PROBLEM.make_inputs(w, generator(), "cuda")]
    k02_one_launch.speculative_sampling(*given)  # compiles
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        tokens, accepted = k02_one_launch.speculative_sampling(*given)
    seen = []
    for seed in range(4):
        for x, new in zip(given, PROBLEM.make_inputs(w, generator(seed), "cuda"), strict=True):
            x.copy_(new)
        tokens.fill_(-7)
        graph.replay()
        seen.append(tokens.clone())
        assert torch.equal(tokens.double(), reference(*given)[0])
        assert accepted.tolist() == wanted(w)
    assert not any(torch.equal(seen[0], other) for other in seen[1:])


def test_flashinfer_says_the_same_where_it_is_installed():
    certain = Workload.of("int32", B=33, K=4, V=128256, certain=True)
    if library.flashinfer_version():
        for temperature in TEMPERATURES:
            assert looked_at(library.flashinfer_chain, temperature) > LEAST_P
        assert checked_error(library.flashinfer_chain, certain, generator()) == 0.0
    else:
        with pytest.raises(RuntimeError, match=r"^flashinfer: not installed here: "):
            library.flashinfer_chain(*PROBLEM.make_inputs(certain, generator(), "cuda"))
