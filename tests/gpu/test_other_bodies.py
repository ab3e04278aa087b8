"""Kernels that are no rung of a ladder, under compute-sanitizer: a product's other body, a step's layer of four bits.

`test_sanitizer.py` goes over every `kNN_*.cu`; these two have other names, and another way to be called. Its runner is
used as it is, in a copy of its own: there the program that a tool goes over is this file, and what it runs is listed
here. Faults planted in the same way must be found.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
import torch

from course_kernels.cuda.four_bits import GROUP, quantised, values_of
from course_kernels.decode_linear import stream_w4
from course_kernels.decode_linear.arguments import ADD, GATE, NOTHING, ROPE, Turned
from course_kernels.decode_linear.problem import PROBLEM as LINEAR
from course_kernels.gemm import k14_tuned, one_wave, plans
from course_kernels.gemm.plans import Plan, plan_of
from course_kernels.gemm.problem import PROBLEM as GEMM
from course_kernels.problem import Workload, worst_error

GROUPS = ("gemm", "decode_linear")


def _runner() -> ModuleType:
    spec = spec_from_file_location("sanitizer_of_other_bodies", Path(__file__).with_name("test_sanitizer.py"))
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look there for their own module
    spec.loader.exec_module(module)
    module.__file__ = __file__
    module.OTHERS.update(BODIES)
    return module


# --- what runs --------------------------------------------------------------------------------------------


def _source_of(module: ModuleType) -> None:
    """Let a launcher compile the source in which the runner has planted a fault, if it has."""
    planted = runner.GIVEN / module.SOURCE.name
    if planted.exists():
        module.SOURCE = planted


def _one_tile() -> float:
    """One tile and one step; sizes that no tile divides; and what kernel 14 hands on, in both layouts of b."""
    _source_of(one_wave)
    worst = 0.0
    alone = Plan(plans.ALONE, 1, 1, 8)  # by its module: ALONE in a test file says when the file runs
    for M, N, K in ((128, 256, 64), (136, 264, 328), (2048, 2048, 2048)):
        w = Workload.of("bfloat16", M=M, N=N, K=K)
        a, b = GEMM.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
        due = (a.float() @ b.float()).double()
        handed_on = M == 2048
        if handed_on:
            card = torch.cuda.get_device_properties(0)
            assert one_wave.suits(plan_of(M, N, K, card.multi_processor_count), M, N)
        for layout in (b.cuda(), b.t().contiguous().cuda().t()):
            on_the_card = a.cuda()
            c = (
                k14_tuned.gemm(on_the_card, layout)
                if handed_on
                else one_wave.gemm(on_the_card, layout, plan=alone)
            )
            worst = max(worst, worst_error(c.cpu(), due) / GEMM.max_error(w))
    return worst


def _rounded(w: torch.Tensor) -> torch.Tensor:
    return values_of(*quantised(w.float(), w.dtype))


def _stream_w4() -> float:
    """Every kind of what stands behind; x in one, two and four eights; K in one block, and in several."""
    _source_of(stream_w4)
    worst = 0.0
    kinds = ({}, {"norm": True}, {"add": True}, {"norm": True, "gated": True})
    sizes = [(M, N, K, kind) for M, N, K in ((1, 80, 384), (9, 2128, 640), (29, 48, 4224)) for kind in kinds]
    for i, (M, N, K, kind) in enumerate(sizes):
        w = Workload.of(("float16", "bfloat16")[i % 2], M=M, N=N, K=K, **kind)
        x, weights, *rest = LINEAR.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
        due = LINEAR.reference(x, _rounded(weights), *rest, **kind)
        behind = GATE if kind.get("gated") else ADD if kind.get("add") else NOTHING
        parts = tuple(weights.chunk(2)) if behind == GATE else (weights,)
        packed = stream_w4.Packed(*(t.cuda() for t in stream_w4.packed_for(parts, behind)))
        g = rest[0].cuda() if kind.get("norm") else None
        r = rest[-1].cuda() if kind.get("add") else None
        tickets = torch.zeros(stream_w4.tickets_for(len(weights)), dtype=torch.int32).cuda()
        room = stream_w4.ROOM[1 if M <= 8 else 2 if M <= 16 else 4]
        groups = -(-K // GROUP)
        for cut in (None, stream_w4.Cut(3, -(-groups // (2 * room.held)), 2, 2, room.held, 1)):
            y = stream_w4.start(x.cuda(), packed, behind, g=g, r=r, tickets=tickets, cut=cut)
            worst = max(worst, worst_error(y.cpu(), due) / LINEAR.max_error(w))
        if tickets.cpu().any():
            return float("inf")
    return max(worst, _turned(1, 64), _turned(17, 128))


def _turned(M: int, D: int, H: int = 3, KV: int = 2, room: int = 5, K: int = 384) -> float:
    """Queries, keys and values, turned by hand."""
    generator = torch.Generator().manual_seed(M)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    x = normal(M, K).half()
    weights = tuple((normal(heads * D, K) / K**0.5).half() for heads in (H, KV, KV))
    angle = normal(M, D // 2)
    position = torch.arange(M) % (room + 1)  # one is past the end, and writes nothing
    caches = [torch.full((M, KV, room, D), 7.0).half() for _ in range(2)]
    on_the_card = [cache.cuda() for cache in caches]
    turned = Turned(angle.cos().cuda(), angle.sin().cuda(), position.cuda(), *on_the_card)
    packed = stream_w4.Packed(*(t.cuda() for t in stream_w4.packed_for(weights, ROPE, D)))
    q = stream_w4.start(x.cuda(), packed, ROPE, turned=turned)
    due = [(x.double() @ _rounded(w).t()).view(M, -1, D) for w in weights]
    cos, sin = (t.double()[:, None] for t in (angle.cos(), angle.sin()))
    for i in range(2):
        low, high = due[i].chunk(2, dim=-1)
        due[i] = torch.cat([low * cos - high * sin, high * cos + low * sin], dim=-1)
    allowed = LINEAR.max_error(Workload.of("float16", M=M, N=H * D, K=K))
    worst = worst_error(q.cpu(), due[0])
    for cache, right in zip(caches, due[1:], strict=True):
        full = cache.double()
        for m in range(M):
            if position[m] < room:
                full[m, :, position[m]] = right[m]
        worst = max(worst, worst_error(on_the_card.pop(0).cpu(), full))
    return worst / allowed


BODIES = {"gemm/one_wave": _one_tile, "decode_linear/stream_w4": _stream_w4}
runner = _runner()

FAULTS = {
    "rows that x has not": runner.Fault(
        "memcheck",
        "decode_linear/stream_w4",
        "if (m < M && i / 4 < mine)",
        "if (i / 4 < mine)",
        "Invalid __global__",
    ),
    "sums read before they are there": runner.Fault(
        "racecheck",
        "decode_linear/stream_w4",
        "    __syncthreads();  // the sums of all warps",
        "    //",
        "Race reported",
    ),
    "half of every warp at a barrier": runner.Fault(
        "synccheck",
        "decode_linear/stream_w4",
        "total[2 + i] * scale);\n      }\n    }\n  }\n}",
        "total[2 + i] * scale);\n      }\n    }\n  }\n  if (lane < 16) __syncthreads();\n"
        "  if (M < 0) tickets[lane] = side;\n}",
        "Divergent thread(s) in warp",
    ),
}


# --- the tests --------------------------------------------------------------------------------------------

_begun: dict[tuple[str, str], Future] = {}


def begin_behind(items):
    """The processes that the chosen tests ask for, while the tests of other files run."""
    workers = ThreadPoolExecutor(max(2, (os.cpu_count() or 2) // 4), thread_name_prefix="other-bodies")
    for item in items:
        tool, kernel, name = item.callspec.params["asked"]
        fault = FAULTS.get(name)
        edits = ((fault.right, fault.wrong),) if fault else ()
        _begun[tool, kernel, name] = workers.submit(runner.run_under, tool, [runner.Call(kernel, "", edits)])
    workers.shutdown(wait=False)  # what was handed in is still done


def report_of(asked):
    report = _begun[asked].result()
    if report.said == runner.ABSENT:
        pytest.fail(runner.ABSENT, pytrace=False)
    return report


def in_its_group(tool, kernel, name=""):
    return pytest.param(
        (tool, kernel, name), marks=pytest.mark.group(kernel.partition("/")[0]), id=name or f"{kernel}-{tool}"
    )


@pytest.mark.parametrize("asked", [in_its_group(tool, kernel) for kernel in BODIES for tool in runner.TOOLS])
def test_nothing_is_found(asked, record_property):
    kernel, report = asked[1], report_of(asked)
    if asked[:2] == ("racecheck", "gemm/one_wave"):
        record_property("not_looked_at", runner.WGMMA)

    assert report.findings == {}
    assert report.ended, report.said
    assert report.ran.get(runner.Call(kernel, ""), torch.inf) < 1, report.said


@pytest.mark.parametrize(
    "asked", [in_its_group(fault.tool, fault.kernel, name) for name, fault in FAULTS.items()]
)
def test_a_planted_fault_is_found(asked):
    fault = FAULTS[asked[2]]
    report = report_of(asked)

    assert fault.says in " ".join(report.findings.get(fault.kernel, [])), report


if __name__ == "__main__":
    sys.exit(runner.main(Path(sys.argv[1])))
