"""Time of a kernel's first call, compiler included, in a process that has compiled nothing yet.

python -m course_kernels.first_call gemm/in_tilelang dtype=bfloat16,M=4096,N=4096,K=4096

`timed` runs that twice with one empty folder for everybody's caches: cold, and once more with what the first run kept.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from course_kernels.problem import Workload

# Where each compiler keeps what it made; what else one keeps lies below the home folder, which is moved as well.
CACHES = (
    "TRITON_CACHE_DIR",
    "TILELANG_CACHE_DIR",
    "CUTE_DSL_CACHE_DIR",
    "CUDA_CACHE_PATH",
    "COURSE_CACHE_DIR",
)
LIMIT_SECONDS = 300.0


class NoFirstCall(RuntimeError):
    """Error: the call failed, or took too long; the message is one line."""


@dataclass(frozen=True)
class FirstCall:
    """Seconds of a kernel's first call in a process of its own.

    Attributes:
        cold_s: with no cache of any compiler; the import of the kernel and its language is part of it.
        warm_s: the same in a second process, with what the first one kept.
    """

    cold_s: float
    warm_s: float


def first_call(kernel: str, workload: Workload) -> float:
    """Import a kernel and call it once on this process's GPU: seconds by the wall clock.

    Args:
        kernel: folder and file, such as "gemm/in_tilelang".
        workload: what it is called on; the inputs lie on the card before the clock starts.
    """
    import torch

    problem = import_module(f"course_kernels.{kernel.partition('/')[0]}.problem").PROBLEM
    inputs = problem.make_inputs(workload, torch.Generator("cuda").manual_seed(0), "cuda")
    torch.cuda.synchronize()
    began = time.perf_counter()
    module = import_module("course_kernels." + kernel.replace("/", "."))
    getattr(module, problem.name)(*inputs, **problem.options(workload))
    torch.cuda.synchronize()
    return time.perf_counter() - began


def timed(kernel: str, workload: Workload) -> FirstCall:
    """Return the seconds of a kernel's first call, without and with what compilers keep on disk.

    Raises:
        NoFirstCall: it failed, or took longer than LIMIT_SECONDS.
    """
    with tempfile.TemporaryDirectory(prefix="first-call-") as folder:
        caches = {name: str(Path(folder, name.lower())) for name in CACHES}
        variables = {**os.environ, **caches, "HOME": folder, "XDG_CACHE_HOME": folder}
        cold, warm = (_in_a_process(kernel, workload, variables) for _ in range(2))
    return FirstCall(cold, warm)


def all_timed(kernels: Mapping[str, str], workload: Workload, at_once: int = 8) -> dict[str, FirstCall]:
    """Return the seconds of several kernels by name, so many of them at once: compilers run on the host's cores."""
    with ThreadPoolExecutor(at_once) as pool:
        found = pool.map(lambda kernel: timed(kernel, workload), kernels.values())
        return dict(zip(kernels, found, strict=True))


def _in_a_process(kernel: str, workload: Workload, variables: Mapping[str, str]) -> float:
    command = [sys.executable, "-m", "course_kernels.first_call", kernel, workload.as_text()]
    try:
        done = subprocess.run(
            command, env=dict(variables), capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise NoFirstCall(f"{kernel}: its first call took more than {LIMIT_SECONDS:g} s") from None
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it failed without a word"]
        raise NoFirstCall(f"{kernel}: its first call failed: {said[-1]}")
    return float(done.stdout.strip().splitlines()[-1])


def main(arguments: Sequence[str]) -> int:
    """Print the seconds of one first call; returns the exit code."""
    if len(arguments) != 2:
        print(
            "first_call: expected a kernel and a workload, such as gemm/k05_triton dtype=bfloat16,M=64,N=64,K=64"
        )
        return 2
    print(first_call(arguments[0], Workload.parse(arguments[1])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
