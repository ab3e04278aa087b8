"""Our multiply and our attention for an FPGA that is not here: hls4ml writes the C++, and that C++ is run.

What it writes is meant for a synthesis tool of a vendor, which is not to be had here: so there is no netlist, no clock
and no latency. But the arithmetic of the circuit is in the C++, bit by bit, and a compiler for this processor runs it.
"""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
from pathlib import Path
from typing import Any

# mypy: allow-untyped-defs, allow-any-generics
from course_chips import kept
from course_chips.counting import counts

PACKAGES = ("hls4ml", "torch", "numpy")
SIZE = {"M": 16, "N": 16, "K": 16, "D": 16}
DEFAULT = "ap_fixed<16,6>"  # hls4ml's own: 16 bits, 6 of them before the point; it truncates, and it wraps
TYPES = {
    "default": DEFAULT,
    "saturating": "ap_fixed<16,6,AP_RND_CONV,AP_SAT>",
    "short": "ap_fixed<10,6>",
    "narrow": "ap_fixed<16,4>",
    "narrow_saturating": "ap_fixed<16,4,AP_RND_CONV,AP_SAT>",
}
STEP = 2.0**-10  # between two numbers of the default type
REUSE = (1, 4, 16)
TABLES = (1024, 4096, 16384)  # of softmax; hls4ml's own is the first
SHARPER = 4  # so many times as large are queries, so that a few keys get nearly all of the weight
FAR_OFF = 1.0  # rounding alone is a hundred times smaller

_PRAGMA = re.compile(r"^#pragma HLS (?P<name>\w+)")
_CALL = re.compile(r"^(?P<name>nnet::\w+)<")


def lines_of(text: str) -> list[str]:
    """Return the calls and pragmas of the C++ that hls4ml writes for the top of a circuit, without comments.

    Raises:
        ValueError: there is no call: this is something else.
    """
    found = [line for line in (one.split("//", 1)[0].strip() for one in text.splitlines()) if names(line)]
    if not any(map(_CALL.match, found)):
        raise ValueError(f"no call of nnet in {len(text)} characters")
    return found


def names(line: str) -> list[str]:
    """Return what a line calls or asks for: ["nnet::einsum"], ["ARRAY_PARTITION"]; [] for anything else."""
    found = _CALL.match(line) or _PRAGMA.match(line)
    return [found["name"]] if found else []


class _Circuit:
    """One circuit: what hls4ml wrote, and a library that was built of it."""

    def __init__(self, module, precision: str = DEFAULT, reuse: int = 1, table: int = TABLES[0]) -> None:
        """Convert a module and compile what comes out.

        Args:
            module: of fpga_circuits.
            precision: of every number.
            reuse: how often a multiplier is used.
            table: entries of each table of softmax.
        """
        import hls4ml

        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            config = hls4ml.utils.config_from_pytorch_model(
                module,
                _shapes(module),
                granularity="name",
                default_precision=precision,
                default_reuse_factor=reuse,
                backend="Vitis",
                channels_last_conversion="off",
            )
            if "softmax" in config["LayerName"]:
                config["LayerName"]["softmax"].update(ExpTableSize=table, InvTableSize=table)
            self._model = hls4ml.converters.convert_from_pytorch_model(
                module, hls_config=config, output_dir=folder, backend="Vitis", io_type="io_parallel"
            )
            self._model.compile()
            firmware = Path(folder) / "firmware"
            self.text = (firmware / "myproject.cpp").read_text(encoding="utf-8")
            self._parameters = (firmware / "parameters.h").read_text(encoding="utf-8")
            self.clock_ns = float(self._model.config.get_config_value("ClockPeriod"))

    def __call__(self, *arrays):
        """Return the answer for a batch of arguments, float32."""
        import numpy as np

        return self._model.predict([np.ascontiguousarray(array, dtype=np.float32) for array in arrays])

    def constants(self, name: str) -> list[int]:
        """Return what hls4ml wrote behind a name, in the order of its layers."""
        return [int(value) for value in re.findall(rf"unsigned {name} = (\d+);", self._parameters)]


def make(chip: str) -> dict[str, Any]:
    """Return what a record says: `checked`, `ran` and `kernels`.

    Raises:
        ImportError: hls4ml is not installed. ValueError: an answer is wrong, or a fault was not seen.
    """
    from course_chips import fpga_circuits as ours

    multiply, attention = _inputs()
    circuits = {
        "multiply": _Circuit(ours.Multiply()),
        "attention": _Circuit(ours.Attention(), table=TABLES[-1]),
    }
    exact, loose = SIZE["K"] * STEP, _loosely(attention)
    found = {
        "multiply": _tried(circuits["multiply"], multiply, exact),
        "attention": _tried(circuits["attention"], attention, loose),
        "planted: B is read by its columns": _tried(_Circuit(ours.MultiplyTurned()), multiply, exact),
        "planted: V is read by its columns": _tried(
            _Circuit(ours.AttentionTurned(), table=TABLES[-1]), attention, loose
        ),
    }
    for name, one in found.items():
        if (one["error"] > one["allowed"]) != name.startswith("planted"):
            raise ValueError(f"{name}: {one}")
    return {
        "checked": found,
        "ran": {
            "fits": _does_32_fit(),
            "types": _by_type(multiply),
            "reuse": _by_reuse(multiply),
            "softmax": _by_table(attention),
            "all_rows": _all_rows_at_once(attention),
        },
        "kernels": {f"{name}_hls": _told(circuit) for name, circuit in circuits.items()},
    }


def _told(circuit: _Circuit) -> dict[str, Any]:
    """Return what is kept of a circuit."""
    lines = lines_of(circuit.text)
    return {
        "source": f"{kept.HERE}/fpga_circuits.py",
        "dtype": DEFAULT,
        "sizes": SIZE,
        "lines": len(lines),
        "counts": counts(names, lines),
        "excerpt": lines,
        "resources": {"multipliers": sum(circuit.constants("multiplier_limit"))},
        "listing": kept.packed(lines),
    }


def _shapes(module) -> list[tuple[int, ...]]:
    """Return the shapes of a module's arguments, without the batch."""
    from course_chips import fpga_circuits as ours

    m, n, k, d = SIZE["M"], SIZE["N"], SIZE["K"], SIZE["D"]
    if isinstance(module, ours.Multiply):
        return [(m, k), (k, n)]
    return [(d,) if isinstance(module, ours.Attention) else (n, d), (n, d), (n, d)]


def _inputs() -> tuple[tuple, tuple]:
    """Return arguments and truth of both problems; every number of them is one of the default type."""
    import torch

    from course_kernels.attention.problem import PROBLEM as ATTENTION
    from course_kernels.gemm.problem import PROBLEM as GEMM
    from course_kernels.problem import Workload

    def on_grid(*arrays):
        return [(array / STEP).round() * STEP for array in arrays]

    generator = torch.Generator().manual_seed(48)
    small = Workload.of("float32", M=SIZE["M"], N=SIZE["N"], K=SIZE["K"])
    a, b = on_grid(*GEMM.make_inputs(small, generator, "cpu"))
    q, k, v = ATTENTION.make_inputs(
        Workload.of("float32", B=1, H=1, N=SIZE["N"], D=SIZE["D"]), generator, "cpu"
    )
    root = SIZE["D"] ** 0.5  # 4: to divide by it and to multiply again is exact
    q, k, v = on_grid(SHARPER * q / root, k, v)
    truth = ATTENTION.reference(q * root, k, v)[0, 0]
    return ((a, b), GEMM.reference(a, b).numpy()), ((q[0, 0], k[0, 0], v[0, 0]), truth.numpy())


def _run(circuit: _Circuit, arguments):
    """Return a circuit's answer in the shape of the problem: attention takes a query after the other."""
    first, *rest = (argument.numpy() for argument in arguments)
    if len(rest) == 1:
        return circuit(first[None], rest[0][None]).reshape(SIZE["M"], SIZE["N"])
    return circuit(first, *(array[None].repeat(len(first), 0) for array in rest)).reshape(first.shape)


def _tried(circuit: _Circuit, problem, allowed: float) -> dict[str, Any]:
    arguments, truth = problem
    error = float(abs(_run(circuit, arguments) - truth).max())
    return {"sizes": SIZE, "error": error, "allowed": allowed}


def _loosely(attention) -> float:
    """Return what the largest tables cost at most: a sum is read to 1/64, and the rest is some roundings."""
    (_, _, v), _ = attention
    return float(abs(v).max()) / 64 + 4 * SIZE["N"] * STEP


def _does_32_fit() -> dict[str, float]:
    """Return 10 + 10 + 10 + 2 in two types. The largest number of both is a step below 32."""
    import numpy as np

    from course_chips import fpga_circuits as ours

    a, b = np.zeros((2, 1, SIZE["M"], SIZE["K"]), np.float32)
    a[0, 0, :4], b[0, :4, 0] = 1, (10, 10, 10, 2)
    return {
        name: float(_Circuit(ours.Multiply(), TYPES[name])(a, b).reshape(-1)[0])
        for name in ("default", "saturating")
    }


def _by_type(multiply) -> dict[str, dict[str, float]]:
    """Return what each type does to the multiply: worst and mean error, how many are low, how many are far off."""
    from course_chips import fpga_circuits as ours

    arguments, truth = multiply
    found = {}
    for name, precision in TYPES.items():
        error = _run(_Circuit(ours.Multiply(), precision), arguments) - truth
        found[name] = {
            "worst": float(abs(error).max()),
            "mean": float(error.mean()),
            "too_low": int((error < 0).sum()),
            "far_off": int((abs(error) > FAR_OFF).sum()),
            "answers": error.size,
        }
    return found


def _by_reuse(multiply) -> dict[str, dict[str, float]]:
    """Return what a reuse factor asks for: multipliers, and how soon the next multiply may begin.

    That time is the factor by the clock that hls4ml asks for. It is an estimate: no tool has met either.
    """
    from course_chips import fpga_circuits as ours

    arguments, _ = multiply
    circuits = {factor: _Circuit(ours.Multiply(), reuse=factor) for factor in REUSE}
    answers = {factor: _run(circuit, arguments) for factor, circuit in circuits.items()}
    return {
        f"by_{factor}": {
            "multipliers": sum(circuit.constants("multiplier_limit")),
            "estimated_ns": factor * circuit.clock_ns,
            "different": int((answers[factor] != answers[1]).sum()),
        }
        for factor, circuit in circuits.items()
    }


def _by_table(attention) -> dict[str, dict[str, float]]:
    """Return what tables of three sizes make of attention: worst error, and what its weights of a query sum to."""
    import torch

    from course_chips import fpga_circuits as ours

    (q, k, v), truth = attention
    found = {}
    for size in TABLES:
        circuit = _Circuit(ours.Attention(), table=size)
        sums = _run(circuit, (q, k, torch.ones_like(v)))
        error = _run(circuit, (q, k, v)) - truth
        found[f"of_{size}"] = {
            "worst": float(abs(error).max()),
            "least_sum": float(sums.min()),
            "largest_sum": float(sums.max()),
        }
    return found


def _all_rows_at_once(attention) -> dict[str, float]:
    """Return what a softmax of a matrix is in hls4ml: over how many numbers it goes, and what its rows sum to."""
    import numpy as np

    from course_chips import fpga_circuits as ours

    (q, k, v), _ = attention
    circuit = _Circuit(ours.AttentionOfAllRows(), table=TABLES[-1])
    sums = circuit(q.numpy()[None], k.numpy()[None], np.ones((1, *v.shape))).reshape(v.shape)[:, 0]
    return {
        "softmax_over": circuit.constants("n_slice")[0],
        "largest_sum": float(sums.max()),
        "all_sums": float(sums.sum()),
    }
