"""GPT-2 of our own on the card: right in half precision, one token in a graph too; its kernels by their lines."""

import copy

import pytest
import torch

from course_kernels.problem import worst_error
from course_models.gpt2 import GPT2, LINES
from course_models.kernel_times import ELSE, profiled

GROUPS = ("gpt2",)


@pytest.fixture(scope="module")
def gpt2():
    return GPT2()


def tokens(B, N):
    return torch.randint(50257, (B, N), generator=torch.Generator().manual_seed(1)).cuda()


def test_it_is_off_by_rounding_alone(gpt2):
    x = tokens(2, 256)

    assert worst_error(gpt2(x), copy.deepcopy(gpt2).double()(x), rows_apart=True) < 0.03


def test_a_token_in_a_graph_is_a_token(gpt2):
    x = tokens(2, 33)
    exact = copy.deepcopy(gpt2).double()(x)
    keys, values = gpt2.cache(2, 40)
    for held in range(32):
        gpt2.decode(x[:, held], keys, values, held)
    last, graph = x[:, 32].clone(), torch.cuda.CUDAGraph()
    gpt2.decode(last, keys, values, 32)
    with torch.cuda.graph(graph):
        found = gpt2.decode(last, keys, values, 32)
    found.fill_(torch.nan)
    graph.replay()

    assert worst_error(found, exact[:, 32], rows_apart=True) < 0.03


def test_every_line_has_kernels_and_few_have_none(gpt2):
    x = tokens(2, 512)
    gpt2.watched = True
    seen = profiled(lambda: gpt2(x), LINES)
    gpt2.watched = False

    assert min(seen.us[line] for line in LINES) > 0
    assert seen.us[ELSE] < 0.2 * sum(seen.us.values())
    assert seen.kernels >= 12 * 12
    assert 0 < seen.busy_us <= 1.01 * sum(seen.us.values())
