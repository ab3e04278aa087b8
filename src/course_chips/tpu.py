"""Our multiply and our attention for a TPU that is not here: XLA and Mosaic compile ahead of time, from libtpu alone.

What it prints of a kernel is its last form, bundles: what all units of the core begin in one cycle.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

# mypy: allow-untyped-defs
from course_chips import kept, listing

# By chip: which slice of them the compiler is told of. A kernel is compiled for one core of the first.
TOPOLOGIES = {"tpu_v5e": "v5e:2x2", "tpu_v5p": "v5p:2x2x1", "tpu_v6e": "v6e:2x2", "tpu_7x": "tpu7x:2x2x1"}
PACKAGES = ("jax", "jaxlib", "libtpu", "numpy", "torch")  # the last one for the truth only
SIZES = {"multiply": {"M": 1024, "N": 1024, "K": 1024}, "attention": {"H": 8, "N": 1024, "D": 128}}
SMALL = {"multiply": {"M": 512, "N": 512, "K": 512}, "attention": {"B": 1, "H": 2, "N": 512, "D": 128}}
# What a program has around its kernels: it begins, ends, and hands on.
_AROUND = re.compile(r"-(?:<[\w-]+>|TLP)-\d+-")
_KERNEL = re.compile(r"^\d+-(?P<name>.+?)-\d+-final_bundles\.txt$")
_LAYOUT = re.compile(r"\b[a-z]+\d+\[[\d,]+\]\{[^}]*\}")
# Cost analysis names each operand, too.
_TOTALS = ("flops", "bytes accessed", "transcendentals", "optimal_seconds")
_MEMORY = ("generated_code", "argument", "output", "temp")


def make(chip: str) -> dict[str, Any]:
    """Return what a record says of a chip: `checked` and `kernels`. In a process of its own: it sets the environment.

    Raises:
        ImportError: JAX is not installed. Whatever JAX raises where it does not compile.
    """
    dump = Path(tempfile.mkdtemp(prefix="bundles-"))
    os.environ |= {
        "JAX_PLATFORMS": "cpu",
        "TPU_SKIP_MDS_QUERY": "1",  # asks nobody on the network what machine this is
        "LIBTPU_INIT_ARGS": f"--xla_jf_dump_to={dump} --xla_jf_dump_llo_text=true",
    }
    try:
        return {"checked": checked(), "kernels": _kernels(chip, dump)}
    finally:
        shutil.rmtree(dump)


def _kernels(chip: str, dump: Path) -> dict[str, Any]:
    """Compile all four, and read each."""
    # Not at the top: JAX reads the environment when it is imported.
    import jax
    import jax.numpy as jnp
    from jax.experimental import topologies
    from jax.sharding import SingleDeviceSharding

    from course_chips import tpu_attention, tpu_multiply

    cards = topologies.get_topology_desc(topology_name=TOPOLOGIES[chip], platform="tpu").devices
    lies = SingleDeviceSharding(cards[0])
    made = {}
    for problem, module in (("multiply", tpu_multiply), ("attention", tpu_attention)):
        size = SIZES[problem]
        given = 2 if problem == "multiply" else 3
        shape = (size["M"], size["K"]) if problem == "multiply" else (size["H"], size["N"], size["D"])
        arguments = [jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=lies)] * given
        for how in ("pallas", "jax"):
            function = getattr(module, f"in_{how}")
            compiled = jax.jit(function).lower(*arguments).compile()
            source = f"{kept.HERE}/{module.__name__.rpartition('.')[2]}.py"
            made[f"{problem}_{how}"] = {"source": source, "sizes": size, "dtype": "bfloat16"} | _told(
                compiled, dump, keep=how == "pallas"
            )
            for file in dump.iterdir():
                file.unlink()
    return made


def _told(compiled, dump: Path, keep: bool) -> dict[str, Any]:
    """Return what is kept of a program: code, layouts, memory, and the compiler's estimate."""
    files = [
        (found["name"], file)
        for file in sorted(dump.iterdir())
        if (found := _KERNEL.match(file.name))
        and "schedule-analysis" not in file.name
        and not _AROUND.search(file.name)
    ]
    parts = {name: listing.lines_of_tpu(file.read_text()) for name, file in files}
    lines = [line for part in parts.values() for line in part]
    hlo = compiled.as_text()
    cost = compiled.cost_analysis() or {}
    memory = compiled.memory_analysis()
    return {
        "lines": len(lines),
        "parts": {name: len(part) for name, part in parts.items()},
        "counts": listing.counts("tpu", lines),
        "excerpt": listing.excerpt("tpu", max(parts.values(), key=lambda part: _products(part)), 8),  # type: ignore[arg-type]
        "layouts": sorted(set(_LAYOUT.findall(hlo[hlo.index("\nENTRY ") :]))),
        "bytes": {name: getattr(memory, f"{name}_size_in_bytes") for name in _MEMORY},
        "compilers_estimate": {name: cost[name] for name in _TOTALS if name in cost},
        "listing": kept.packed(lines) if keep else "",
    }


def _products(lines: list[str]) -> int:
    """Return how many matrix products are in a listing."""
    return listing.beginning(listing.counts("tpu", lines), *listing.MATRIX)


def checked() -> dict[str, Any]:
    """Return what was found by running both Pallas kernels step by step on the CPU, and two faulty ones.

    The interpreter gives memory that nobody has written NaN, and notes who reads what is still being written.

    Raises:
        ValueError: an answer is wrong, or a fault was not seen.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np
    import torch
    from jax._src.pallas.mosaic.interpret import interpret_pallas_call  # where the finding is left; pinned
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import tpu as pltpu

    from course_chips import tpu_attention, tpu_multiply
    from course_kernels.attention.problem import PROBLEM as ATTENTION
    from course_kernels.gemm.problem import PROBLEM as GEMM
    from course_kernels.problem import Workload, worst_error

    step_by_step = pltpu.InterpretParams(detect_races=True)

    def tried(problem, size: dict[str, int], function: Callable[..., Any]) -> dict[str, Any]:
        workload = Workload.of("bfloat16", **size)
        given = problem.make_inputs(workload, torch.Generator().manual_seed(48), "cpu")
        truth = problem.reference(*given)
        given, truth = ([x[0] for x in given], truth[0]) if truth.dim() == 4 else (given, truth)
        answer = function(
            *(jnp.asarray(x.float().numpy(), jnp.bfloat16) for x in given), interpret=step_by_step
        )
        error = worst_error(torch.from_numpy(np.array(answer, np.float32)), truth)
        races = bool(interpret_pallas_call.races.races_found)
        return {"sizes": size, "error": error, "allowed": problem.max_error(workload), "races": races}

    def reads_too_early(X, Y, there, arrived):
        copy = pltpu.make_async_copy(X, there, arrived)
        copy.start()
        Y[...] = there[...]
        copy.wait()

    found: dict[str, Any] = {
        "multiply": tried(GEMM, SMALL["multiply"], tpu_multiply.in_pallas),
        "attention": tried(ATTENTION, SMALL["attention"], tpu_attention.in_pallas),
    }
    pl.pallas_call(
        reads_too_early,
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA],
        interpret=step_by_step,
    )(jnp.ones((8, 128))).block_until_ready()
    found["planted: a tile is read before it has arrived"] = {
        "races": bool(interpret_pallas_call.races.races_found)
    }
    right = tpu_attention.jnp
    tpu_attention.jnp = _WithoutRepair(right)  # type: ignore[assignment]
    try:
        found["planted: what came before is not repaired"] = tried(
            ATTENTION, SMALL["attention"], tpu_attention.in_pallas
        )
    finally:
        tpu_attention.jnp = right
    for name, one in found.items():
        wrong = one["races"] or not one.get("error", 0.0) <= one.get("allowed", 0.0)
        if wrong != name.startswith("planted"):
            raise ValueError(f"{name}: {one}")
    return found


class _WithoutRepair:
    """jax.numpy, whose power of two is 1 where a column is asked for: the answer so far is not made smaller."""

    def __init__(self, right) -> None:
        self.right = right

    def __getattr__(self, name: str):
        return getattr(self.right, name)

    def exp2(self, x):
        """Return two to the power of x, but ones for [rows, 1]."""
        return self.right.ones_like(x) if x.shape[-1] == 1 else self.right.exp2(x)
