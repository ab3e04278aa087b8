"""Time of a kernel's first call, compiler included, in a process that has compiled nothing yet.

python -m course_kernels.first_call gemm/in_tilelang dtype=bfloat16,M=4096,N=4096,K=4096

`timed` runs that twice with one empty folder for everybody's caches: cold, and once more with what the first run kept.
"""

from __future__ import annotations

import json
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
        cold_s: with no cache of any compiler.
        warm_s: in a second process, with what the first one kept.
        import_s: of the language, in the second process: part of neither.
    """

    cold_s: float
    warm_s: float
    import_s: float


def first_call(kernel: str, workload: Workload) -> dict[str, float]:
    """Import a kernel's language and call it once on this process's GPU: seconds of each, by wall clock.

    Args:
        kernel: folder and file, such as "gemm/in_tilelang".
        workload: what it is called on; the inputs lie on the card before the clock starts.
    """
    import torch

    problem_name = kernel.partition("/")[0]
    problem = import_module(f"course_kernels.{problem_name}.problem").PROBLEM
    generator = torch.Generator("cuda").manual_seed(0)
    inputs = problem.make_inputs(workload, generator, "cuda")
    torch.cuda.synchronize()
    began = time.perf_counter()
    module = import_module("course_kernels." + kernel.replace("/", "."))
    getattr(module, "load", lambda: None)()  # a language that is imported at the first call
    imported = time.perf_counter()
    getattr(module, problem.name)(*inputs, **problem.options(workload))
    torch.cuda.synchronize()
    return {"import_s": imported - began, "call_s": time.perf_counter() - imported}


def timed(kernel: str, workload: Workload, environment: Mapping[str, str] | None = None) -> FirstCall:
    """Return the seconds of a kernel's first call, without and with what compilers keep on disk.

    Raises:
        NoFirstCall: it failed, or took longer than LIMIT_SECONDS.
    """
    with tempfile.TemporaryDirectory(prefix="first-call-") as folder:
        caches = {name: str(Path(folder, name.lower())) for name in CACHES}
        variables = {**os.environ, **caches, "HOME": folder, "XDG_CACHE_HOME": folder, **(environment or {})}
        cold, warm = (_in_a_process(kernel, workload, variables) for _ in range(2))
    return FirstCall(cold["call_s"], warm["call_s"], warm["import_s"])


def all_timed(kernels: Mapping[str, str], workload: Workload, at_once: int = 8) -> dict[str, FirstCall]:
    """Return the seconds of several kernels by name, so many of them at once: compilers run on the host's cores."""
    with ThreadPoolExecutor(at_once) as pool:
        found = pool.map(lambda kernel: timed(kernel, workload), kernels.values())
        return dict(zip(kernels, found, strict=True))


def _in_a_process(kernel: str, workload: Workload, variables: Mapping[str, str]) -> dict[str, float]:
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
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def main(arguments: Sequence[str]) -> int:
    """Print the seconds of one first call as JSON; returns the exit code."""
    if len(arguments) != 2:
        print(
            "first_call: expected a kernel and a workload, such as gemm/k05_triton dtype=bfloat16,M=64,N=64,K=64"
        )
        return 2
    print(json.dumps(first_call(arguments[0], Workload.parse(arguments[1]))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
