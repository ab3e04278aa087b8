"""The ring on a card: which constants of k12_stored may be tried, and how both kernels are started."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PROBLEM, KERNEL = "gemm", "k12_stored"
WORKLOAD = "dtype=bfloat16,M=4096,N=4096,K=4096"
# The macros of the source: what stands there, the least and the most. One stage is no ring, a fifth has no room.
CONSTANTS = {"GROUP": (8, 1, 64), "STAGES": (4, 2, 4)}


def competitors(name: str, value: int) -> dict[str, Callable[..., Any]]:
    """The kernel as it is, and with one constant changed, as functions of (a, b)."""
    from dataclasses import replace

    from course_kernels.gemm import k12_stored
    from course_kernels.gemm.by_tma import gemm_by_tma

    shape = replace(k12_stored.SHAPE, stages=value) if name == "STAGES" else k12_stored.SHAPE

    def changed(a: Any, b: Any) -> Any:
        return gemm_by_tma(k12_stored.SOURCE, "gemm_stored", shape, a, b, ((name, value),))

    return {"as it was": k12_stored.gemm, "changed": changed}
