"""The operators of a prefill by our Hopper kernels, on the card: against the plain ones, and in a CUDA graph."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from course_kernels.measure.check import checked_errors
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import Workload, worst_error
from course_models import bench, operators
from course_models.config import Config
from course_models.hopper_operators import LEAST_ROWS, PREFILL_SWAPS, tuned_linear, wgmma_prefill_attention
from course_models.prefill_graph import CapturedPrefill

GROUPS = ("hopper_operators",)
SMALL = Config(layers=4, width=512, heads=8, kv_heads=2, head_dim=128, hidden=768, vocab=1000, max_tokens=512)


def drawn(*shape, dtype=torch.bfloat16, seed=0):
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(shape, generator=generator, device="cuda").to(dtype)


@pytest.mark.parametrize("rows", [1, LEAST_ROWS - 1, LEAST_ROWS, 300, 1024])
@pytest.mark.parametrize(("N", "K"), [(512, 512), (768, 4096), (1000, 512)])
def test_a_linear_layer_is_the_plain_one(rows, N, K):
    x, weight = drawn(2, rows, K), drawn(N, K, seed=1)
    truth = functional.linear(x.double(), weight.double())
    assert worst_error(tuned_linear(x, weight), truth) <= 2.0**-7


@pytest.mark.parametrize(("N", "M"), [(1, 1), (17, 17), (300, 300), (64, 300), (1, 300)])
def test_attention_is_the_plain_one_with_shared_heads_and_earlier_keys(N, M):
    q, k, v = drawn(2, 8, N, 128), drawn(2, 2, M, 128, seed=1), drawn(2, 2, M, 128, seed=2)
    truth = operators.prefill_attention(q.double(), k.double(), v.double())
    assert worst_error(wgmma_prefill_attention(q, k, v), truth, rows_apart=True) <= 2.0**-4
    of_others = operators.prefill_attention(q.double(), k.double().flip(1), v.double().flip(1))
    assert worst_error(wgmma_prefill_attention(q, k, v), of_others, rows_apart=True) > 2.0**-4


def test_every_swap_passes_the_check_eager_and_captured(record_property):
    model = bench.subject(SMALL)
    problem, w = bench.prefill_problem(model), Workload.of("bfloat16", B=2, N=200)
    tokens = torch.zeros(2, 200, dtype=torch.int64, device="cuda")
    field = {}
    for name, swap in {"library": bench.LIBRARY, **PREFILL_SWAPS}.items():
        prefill = bench.prefilling(model.with_operators(swap))
        field[name] = Competitor(name, problem, prefill)
        field[f"{name}_graph"] = Competitor(f"{name}_graph", problem, CapturedPrefill(prefill, tokens))
    compiled = CapturedPrefill(bench.prefilling(bench.compiled(model)), tokens)
    field["compiled_graph"] = Competitor("compiled_graph", problem, compiled)
    errors = checked_errors(field, w)
    record_property("errors", errors)
    assert max(errors.values()) < 0.33  # of a narrow model
