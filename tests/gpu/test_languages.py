"""One multiply and one attention in every language of the ladder, on the card: right at ugly sizes, or refused by name.

The languages are packages of the extra `ladder`; where they are not installed this file has no tests.
"""

from __future__ import annotations

import pytest
import torch

from course_kernels.attention.problem import PROBLEM as ATTENTION
from course_kernels.gemm.problem import PROBLEM as GEMM
from course_kernels.measure.check import checked_error
from course_kernels.problem import Workload
from course_site.records.packages import packages_lacking

GROUPS = ("languages",)
PACKAGES = "ladder"
__test__ = packages_lacking(PACKAGES) is None

if __test__:
    from course_kernels.attention import in_cute_dsl as attention_in_cute_dsl
    from course_kernels.attention import in_cutile as attention_in_cutile
    from course_kernels.attention import in_tilelang as attention_in_tilelang
    from course_kernels.gemm import in_cute_dsl, in_cutile, in_cutlass, in_gluon, in_helion, in_tilelang

    MULTIPLIES = (in_helion, in_cutile, in_tilelang, in_gluon, in_cute_dsl, in_cutlass)
    ATTENTIONS = (attention_in_cutile, attention_in_tilelang, attention_in_cute_dsl)
else:
    MULTIPLIES = ATTENTIONS = ()

# One of each kind: one element, less than a tile, one past a tile and one before it, odd lengths, long and thin, many
# tiles with an edge on every side.
SIZES = [
    *(
        (1, 1, 1),
        (1, 8, 8),
        (33, 65, 17),
        (127, 129, 136),
        (129, 264, 72),
        (255, 520, 64),
        (1000, 1000, 1000),
    ),
    *((1023, 1023, 1023), (8, 8, 4104), (5000, 8, 72), (2305, 2312, 520), (1024, 4096, 4096)),
]
LENGTHS = [1, 17, 127, 128, 129, 175, 177, 1000, 4095]


def name_of(kernel):
    return kernel.__name__.rpartition(".")[2]


def generator():
    return torch.Generator("cuda").manual_seed(0)


@pytest.mark.parametrize("kernel", MULTIPLIES, ids=name_of)
@pytest.mark.parametrize(("M", "N", "K"), SIZES)
def test_a_multiply_is_right_or_refuses_the_size_by_name(kernel, M, N, K):
    w = Workload.of("bfloat16", M=M, N=N, K=K)
    if kernel.supports(w):
        assert checked_error(kernel, w, generator()) <= GEMM.max_error(w)
        return
    a, b = GEMM.make_inputs(w, generator(), "cuda")
    with pytest.raises(ValueError, match=r"\b[MNK]\b|N=1|M \* N"):
        kernel.gemm(a, b)


@pytest.mark.parametrize("kernel", ATTENTIONS, ids=name_of)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("D", [64, 128])
@pytest.mark.parametrize("N", LENGTHS)
def test_attention_is_right_at_every_length(kernel, N, D, causal):
    w = Workload.of("bfloat16", B=2, H=3, N=N, D=D, causal=causal)
    assert kernel.supports(w)
    assert checked_error(kernel, w, generator()) <= ATTENTION.max_error(w)


@pytest.mark.parametrize("kernel", MULTIPLIES, ids=name_of)
def test_the_same_bits_again(kernel):
    a, b = GEMM.make_inputs(Workload.of("bfloat16", M=1000, N=1032, K=520), generator(), "cuda")
    first = kernel.gemm(a, b)
    assert all(torch.equal(kernel.gemm(a, b), first) for _ in range(5))
