"""Our multiply and our attention for Apple's chips: MLX runs them on its CPU back end, coremltools makes graphs.

Neither Apple's GPU nor its Neural Engine is here, and what would run there is not to be had: Metal compiles on a Mac,
and which unit takes an operation of a graph is decided there. What is here is MLX's own arithmetic and the graph.
"""

from __future__ import annotations

import logging
import re
import warnings
from itertools import count
from typing import Any

# mypy: allow-untyped-defs
from course_chips import kept
from course_chips.counting import counts

PACKAGES = ("mlx", "mlx-cpu", "coremltools", "torch", "numpy")
SIZES = {"multiply": {"M": 512, "N": 512, "K": 512}, "attention": {"B": 1, "H": 2, "N": 512, "D": 128}}
SYSTEMS = ("iOS16", "iOS18")  # which set of operations a graph may use
FORMATS = ("mxfp4", "mxfp8", "nvfp4")
SPREADS = {"one": 1.0, "fiftieth": 0.02, "five_hundredth": 0.002}  # of normal numbers
GROUP = 32  # numbers that share a scale in mxfp4; in nvfp4 16 do

_OPERATION = re.compile(r"^%\S+: .*? = (?P<name>\w+)\(")


def lines_of(text: str) -> list[str]:
    """Return the operations of a MIL program, one a line.

    Raises:
        ValueError: there is none.
    """
    found = [line for line in (one.strip() for one in text.splitlines()) if names(line)]
    if not found:
        raise ValueError(f"no operation in {len(text)} characters")
    return found


def names(line: str) -> list[str]:
    """Return the operation of a line: ["matmul"]; [] for what is none."""
    found = _OPERATION.match(line)
    return [found["name"]] if found else []


def make(chip: str) -> dict[str, Any]:
    """Return what a record says: `checked`, `ran` and `kernels`.

    Raises:
        ImportError: MLX or coremltools is not installed. ValueError: an answer is wrong, or a fault was not seen.
    """
    checked = _checked()
    errors = {name.replace(" ", "_"): one["error"] for name, one in checked.items() if "planted" not in name}
    return {
        "checked": checked,
        "ran": {"errors": errors, "formats": _formats(), "special": _special()},
        "kernels": {
            f"{problem}_{system.lower()}": _graph(problem, system) for problem in SIZES for system in SYSTEMS
        },
    }


# --- MLX ------------------------------------------------------------------------------------------


def _checked() -> dict[str, Any]:
    """Return the errors of our kernels and of MLX's own in bfloat16, and of ours with a wrong tile."""
    import mlx.core as mx
    import numpy as np
    import torch

    from course_chips import apple_kernels as ours
    from course_kernels.attention.problem import PROBLEM as ATTENTION
    from course_kernels.gemm.problem import PROBLEM as GEMM
    from course_kernels.problem import Workload, worst_error

    def theirs(q, k, v):
        return mx.fast.scaled_dot_product_attention(q, k, v, scale=q.shape[-1] ** -0.5)

    def wrong_tile(x, step: int, axis: int):
        # Tiles are asked for in pairs, of A and B and of K and V: the second one is a tile further on.
        further = next(calls) % 2
        return right(x, (step + further) % (x.shape[axis] // ours.BLOCK), axis)

    def tried(problem, function) -> dict[str, Any]:
        workload = Workload.of("bfloat16", **SIZES["multiply" if problem is GEMM else "attention"])
        given = problem.make_inputs(workload, torch.Generator().manual_seed(48), "cpu")
        answer = function(*(mx.array(x.float().numpy()).astype(mx.bfloat16) for x in given))
        answer = torch.from_numpy(np.array(answer.astype(mx.float32)))
        return {
            "sizes": dict(workload.dims),
            "error": worst_error(answer, problem.reference(*given)),
            "allowed": problem.max_error(workload),
        }

    found = {
        "multiply": tried(GEMM, ours.multiply),
        "multiply by mlx": tried(GEMM, mx.matmul),
        "attention": tried(ATTENTION, ours.attention),
        "attention by mlx": tried(ATTENTION, theirs),
    }
    right, calls = ours.tile, count()
    ours.tile = wrong_tile  # type: ignore[assignment]
    try:
        found["planted: tiles of B one further on"] = tried(GEMM, ours.multiply)
        found["planted: tiles of V one further on"] = tried(ATTENTION, ours.attention)
    finally:
        ours.tile = right
    for name, one in found.items():
        if (one["error"] > one["allowed"]) != name.startswith("planted"):
            raise ValueError(f"{name}: {one}")
    return found


def _there_and_back(x, mode: str, whole: bool = False):
    """Return what an array is after it was quantised, and the bits that a number of it took.

    Args:
        whole: whether MLX is also handed the largest number of all, as one scale for the whole array.
    """
    import mlx.core as mx
    import numpy as np

    options = {"global_scale": mx.array(float(abs(x).max()))} if whole else {}
    made = mx.quantize(mx.array(x), mode=mode, **options)
    back = mx.dequantize(*made, mode=mode, **options)
    return np.array(back.astype(mx.float32)), sum(one.nbytes for one in made) * 8 / x.size


def _formats() -> dict[str, Any]:
    """Return what each format of MLX costs: bits, and by spread of the numbers the error of all, in spreads."""
    import numpy as np

    x = np.random.default_rng(48).standard_normal((1024, 1024)).astype(np.float32)
    found: dict[str, Any] = {}
    for mode, whole in (*((mode, False) for mode in FORMATS), ("nvfp4", True)):
        told: dict[str, Any] = {}
        for name, spread in SPREADS.items():
            back, told["bits"] = _there_and_back(x * np.float32(spread), mode, whole)
            error = back.astype(np.float64) / spread - x
            told[name] = {"error": float(np.sqrt((error**2).mean())), "zeros": float((back == 0).mean())}
        found[f"{mode}_whole" if whole else mode] = told
    return found


def _special() -> dict[str, Any]:
    """Return what becomes of a group of 32 with one number in it that is none, or that is nearly zero."""
    import mlx.core as mx
    import numpy as np

    def group(**changed: float):
        x = np.ones((1, GROUP), np.float32)
        for at, value in enumerate(changed.values()):
            x[0, at] = value
        return _there_and_back(x, "mxfp4")[0]

    tiny, _ = _there_and_back(np.full((1, GROUP), 6e-39, np.float32), "mxfp4")
    ones = mx.full((1, GROUP // 8), 0x22222222, dtype=mx.uint32)  # 2 is the code of 1.0
    last = mx.dequantize(ones, mx.full((1, 1), 255, dtype=mx.uint8), mode="mxfp4").astype(mx.float32)
    found = {
        "with_nan": group(one=float("nan")),
        "with_inf": group(one=float("inf")),
        "tiny": tiny,
        "scale_255": np.array(last),
    }
    return {
        name: {
            "zeros": int((x == 0).sum()),
            "nans": int(np.isnan(x).sum()),
            "infs": int(np.isinf(x).sum()),
        }
        for name, x in found.items()
    }


# --- coremltools ----------------------------------------------------------------------------------


def _graph(problem: str, system: str) -> dict[str, Any]:
    """Return the graph that coremltools makes of PyTorch's own multiply or attention, float32 handed in."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    import coremltools
    import torch

    class Ours(torch.nn.Module):
        def forward(self, *given):
            if problem == "multiply":
                return given[0] @ given[1]
            return torch.nn.functional.scaled_dot_product_attention(*given)

    size = SIZES[problem]
    given = {"a": "MK", "b": "KN"} if problem == "multiply" else dict.fromkeys("qkv", "BHND")
    shapes = {name: tuple(size[length] for length in lengths) for name, lengths in given.items()}
    traced = torch.jit.trace(Ours().eval(), [torch.zeros(shape) for shape in shapes.values()])
    model = coremltools.convert(
        traced,
        inputs=[coremltools.TensorType(name=name, shape=shape) for name, shape in shapes.items()],
        minimum_deployment_target=getattr(coremltools.target, system),
        convert_to="mlprogram",
        skip_model_load=True,
    )
    lines = lines_of(str(model._mil_program))
    return {
        "source": f"{kept.HERE}/apple.py",
        "sizes": size,
        "lines": len(lines),
        "counts": counts(names, lines),
        "excerpt": lines,
        "resources": {"halves": sum(", fp16)" in line for line in lines)},
        "listing": kept.packed(lines),
    }
