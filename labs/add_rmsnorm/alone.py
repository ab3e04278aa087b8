"""The last task of the lab: a row is added, normalised, and brought between -1 and 1, for a multiply in 8 bits.

    s[m, n] = x[m, n] + r[m, n]
    y[m, n] = g[n] * s[m, n] / sqrt(mean over n of s[m, n]**2 + EPSILON)
    a[m]    = largest over n of abs(y[m, n])
    q[m, n] = y[m, n] / a[m]

Shapes    x, r, q, s (M, N), g (N,), a (M,), row-major, N <= 16384
Types     float16; squares and their sum in float32 at least
Cost      read x, r and g, write q, a and s: the floor is bytes, not arithmetic
"""

from __future__ import annotations

import torch

from course_kernels.problem import Problem, Workload
from course_kernels.rms_norm.problem import make_inputs
from course_kernels.rms_norm.problem import reference as normalised

# float16 may round the sum, the normalised row, its product with g, the largest and the quotient: five times, where the
# lab's own task allows three.
ROUNDED = 2.0**-9


def reference(x: torch.Tensor, g: torch.Tensor, r: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """q (M, N), a (M,) and s (M, N) in float64."""
    y, s = normalised(x, g, r)
    a = y.abs().amax(dim=-1)
    return y / a[:, None], a, s


PROBLEM = Problem(
    name="add_rmsnorm_scaled",
    formula="q = y / a, a[m] = largest over n of abs(y[m, n]), y and s as in rms_norm",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=lambda w: w.element_bytes * (2 * w.M * w.N + w.N),
    writes_bytes=lambda w: w.element_bytes * (2 * w.M * w.N + w.M),
    flops=lambda w: 7 * w.M * w.N,  # those of rms_norm; compare; multiply
    math=lambda w: "fp32",  # whatever the type in memory
    max_error=lambda w: ROUNDED,
    rows_apart=True,
    # No NaN and no infinity: a right kernel that takes the larger of two may lose one.
    hard=lambda w: ({0: (0.0, -0.0)}, {0: (30000.0, -30000.0)}),
    check_on=(
        Workload.of("float16", M=1, N=1),
        Workload.of("float16", M=3, N=31),
        Workload.of("float16", M=37, N=1000),
        Workload.of("float16", M=257, N=4097),
        Workload.of("float16", M=5, N=16384),
    ),
    time_on=(Workload.of("float16", M=65536, N=4096),),
)
