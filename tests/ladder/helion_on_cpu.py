"""Answers of Helion's multiply on the CPU, where Triton interprets what it wrote: prints errors as JSON.

float16 alone: Triton's interpreter multiplies the bits of a bfloat16 as if they were whole numbers.
"""

import json
import os
import sys

os.environ["TRITON_INTERPRET"] = "1"

import helion
import torch

from course_kernels.gemm import in_helion
from course_kernels.gemm.problem import PROBLEM
from course_kernels.problem import Workload, worst_error

helion.runtime.get_num_sm = lambda device, **more: 3  # on a CPU Helion asks nobody

SIZES = (
    (1000, 264, 72), (129, 257, 65), (33, 65, 17), (127, 129, 136), (128, 256, 64), (136, 8, 520),
    (1, 8, 8), (8, 1, 8), (8, 8, 1), (1, 300, 70), (200, 1, 70), (200, 130, 1), (2, 1, 1), (3, 3, 3),
)  # fmt: skip
found = {}


def error_of(a, b, tile=None):
    return worst_error(in_helion.gemm(a, b, tile=tile), PROBLEM.reference(a, b))


for tile in in_helion.CONFIGS if len(sys.argv) < 2 else sys.argv[1:]:
    for M, N, K in SIZES:
        a, b = PROBLEM.make_inputs(
            Workload.of("float16", M=M, N=N, K=K), torch.Generator().manual_seed(M), "cpu"
        )
        found[f"{tile}: {M} {N} {K}"] = error_of(a, b, tile)

# What lies past the edges is not multiplied in, and what is there is.
a, b = (torch.randn(shape).half() for shape in ((136, 72), (72, 264)))
behind = torch.full((80, 264), float("nan"), dtype=torch.float16)
behind[:72] = b
found["nan behind"] = error_of(a, behind[:72])
b[3, 5] = float("inf")
c = in_helion.gemm(a, b)
found["inf"] = float(not (c[:, 5].isinf() | c[:, 5].isnan()).all() or not c[:, 6].isfinite().all())
print(json.dumps(found))
