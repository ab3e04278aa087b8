"""No kernel of the two GEMM ladders reaches out of bounds, misuses a barrier or races, says compute-sanitizer.

A tool goes over all CUDA C++ kernels of a folder in one process: this file, run as a program. Every run is on
sizes that nothing divides, and on sizes that fit vectors of 16 bytes; every tensor is an allocation of its own.
Faults planted in the same way must be found, so that a green run means something.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest
import torch

import course_kernels
from course_kernels.cuda.compile import sources_of
from course_kernels.cuda.signature import kernels_of
from course_kernels.mishaps.run import ABSENT, API_ERRORS, HOST_CALLS, RULER, SANITIZER, SOURCES, watch
from course_kernels.problem import Workload, worst_error

ROOT = Path(course_kernels.__file__).parent
FOLDERS = ("sgemm", "gemm")
TOOLS = ("memcheck", "synccheck", "racecheck")
LIMIT_S = 75.0  # of one process; a barrier that somebody never comes to ends here
OPTIONS = ("--show-backtrace", "no", "--print-limit", "100")
# After an access out of bounds the other kernels still get their turn.
MORE_OPTIONS = {"memcheck": (*API_ERRORS["memcheck"], "--destroy-on-device-error", "kernel")}
KERNELS = [
    f"{folder}/{path.stem}"
    for folder in FOLDERS
    for path in sorted((ROOT / folder).glob("k[0-9][0-9]_*.py"))
    if path.with_suffix(".cu").exists()
]

# Two blocks each way and a rest, long enough for every ring of buffers to come round; nothing divides anything, then
# vectors fit and tiles do not.
SIZES = ((131, 261, 331), (136, 264, 328))
MORE_SIZES = {
    "sgemm/k11_persistent": ((1700, 1540, 20),),  # more tiles than multiprocessors
    "sgemm/k12_split_k": ((67, 69, 4099),),  # few tiles, long K
}

# What a tool says of a kernel that is right, and why it says so: (tool, kernel) -> (a part of every finding, reason).
EXPLAINED: dict[tuple[str, str], tuple[str, str]] = {}

FAULTS = {
    "memcheck": (
        "sgemm/k01_naive",
        "if (m >= M || n >= N) return;",
        "if (m >= M) return;",
        "Invalid __global__",
    ),
}


@dataclass(frozen=True)
class Call:
    """One kernel on one workload; `right` in its source becomes `wrong` before it is compiled."""

    kernel: str
    workload: str
    right: str = ""
    wrong: str = ""


@dataclass
class Report:
    """What a process came to.

    Attributes:
        ran: for every call that ended, its error over what is allowed; below 1 is right.
        findings: the tool's, by the kernel they name; "" for those that name none of ours.
        said: what the program printed.
        ended: the tool's summary was reached, within the time limit.
    """

    ran: dict[Call, float] = field(default_factory=dict)
    findings: dict[str, list[str]] = field(default_factory=dict)
    said: str = ""
    ended: bool = False


def workloads_of(kernel: str) -> list[Workload]:
    """The sizes above in every type that the kernel takes."""
    folder = kernel.partition("/")[0]
    module = import_module("course_kernels." + kernel.replace("/", "."))
    takes = getattr(module, "supports", lambda w: True)
    problem = import_module(f"course_kernels.{folder}.problem").PROBLEM
    types = dict.fromkeys(w.dtype for w in problem.check_on)
    every = [
        Workload.of(dtype, M=M, N=N, K=K) for dtype in types for M, N, K in SIZES + MORE_SIZES.get(kernel, ())
    ]
    return [w for w in every if takes(w)]


def calls_of(folder: str) -> list[Call]:
    kernels = [kernel for kernel in KERNELS if kernel.startswith(f"{folder}/")]
    return [Call(kernel, w.as_text()) for kernel in kernels for w in workloads_of(kernel)]


def run_under(tool: str, calls: list[Call]) -> Report:
    """Run calls one after the other in a process of their own, under a tool."""
    sanitizer = shutil.which(SANITIZER)
    if sanitizer is None:
        return Report(said=ABSENT)
    with tempfile.TemporaryDirectory(prefix="course-sanitizer-") as folder:
        request, begun, said, log = (Path(folder, name) for name in ("request.json", "begun", "said", "log"))
        request.write_text(json.dumps([asdict(call) for call in calls]), encoding="utf-8")
        begun.touch()  # the clock runs from the start
        command = [sanitizer, "--tool", tool, *OPTIONS, *MORE_OPTIONS.get(tool, ()), "--log-file", str(log)]
        command += [sys.executable, __file__, str(request)]
        environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
        environment |= {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
        environment |= {
            "PYTHONPATH": os.pathsep.join(filter(None, [str(SOURCES), os.environ.get("PYTHONPATH")]))
        }
        _, timed_out = watch(command, environment, said, begun, LIMIT_S)
        report = Report(said=said.read_text(encoding="utf-8", errors="replace"))
        output = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    for line in report.said.splitlines():
        if line.startswith('{"call": '):
            answer = json.loads(line)
            report.ran[Call(**answer["call"])] = answer["error"]
    owners = owners_of({call.kernel for call in calls})
    for finding in findings_in(output):
        named = re.findall(r"\bat (\w+)", finding)
        for kernel in {owners[name] for name in named if name in owners} or {""}:
            report.findings.setdefault(kernel, []).append(finding)
    report.ended = not timed_out and "SUMMARY:" in output
    return report


def owners_of(kernels: set[str]) -> dict[str, str]:
    """The kernel that every `__global__` function belongs to."""
    owners: dict[str, str] = {}
    for kernel in sorted(kernels):
        for source in sources_of(ROOT / f"{kernel}.cu"):
            owners |= {found.name: kernel for found in kernels_of(source.read_text(encoding="utf-8"))}
    return owners


def findings_in(output: str) -> list[str]:
    """Each finding of the tool as one text: a line and the indented lines under it, without rulers."""
    found: list[list[str]] = []
    for line in output.splitlines():
        words = line.removeprefix(RULER)
        if words == line or not words.strip() or HOST_CALLS.search(words):
            continue
        if words.strip() == "COMPUTE-SANITIZER" or "SUMMARY:" in words:
            continue
        if words.startswith("  ") and found:
            found[-1].append(words.strip())
        else:
            found.append([words.strip()])
    return [" ".join(lines) for lines in found]


# --- the tests --------------------------------------------------------------------------------------------

_begun: dict[tuple[str, str], Future[Report]] = {}


@pytest.fixture(scope="module", autouse=True)
def _all_at_once():
    torch.cuda.empty_cache()
    with ThreadPoolExecutor(max(2, min(10, (os.cpu_count() or 2) // 2))) as workers:
        for tool in TOOLS:
            for folder in FOLDERS:
                _begun[tool, folder] = workers.submit(run_under, tool, calls_of(folder))
        for tool, (kernel, right, wrong, _) in FAULTS.items():
            w = workloads_of(kernel)[0].as_text()
            _begun[tool, "planted"] = workers.submit(run_under, tool, [Call(kernel, w, right, wrong)])
        yield


def report_of(tool: str, what: str) -> Report:
    report = _begun[tool, what].result()
    if report.said == ABSENT:
        pytest.fail(ABSENT, pytrace=False)
    return report


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_nothing_is_found(kernel, tool, record_property):
    report = report_of(tool, kernel.partition("/")[0])
    calls = [call for call in calls_of(kernel.partition("/")[0]) if call.kernel == kernel]
    found = report.findings.get(kernel, [])
    part, reason = EXPLAINED.get((tool, kernel), ("", ""))
    if reason:
        record_property("explained", reason)
        record_property("findings_explained", len(found))
        found = [finding for finding in found if not re.search(part, finding)]

    assert calls
    assert found == []
    assert report.ended, report.said
    assert [call for call in calls if not report.ran.get(call, torch.inf) < 1] == [], report.said


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("tool", TOOLS)
def test_nothing_is_found_elsewhere(tool, folder):
    assert report_of(tool, folder).findings.get("", []) == []


@pytest.mark.parametrize("tool", FAULTS)
def test_a_planted_fault_is_found(tool):
    kernel, _, _, says = FAULTS[tool]
    report = report_of(tool, "planted")

    assert says in " ".join(report.findings.get(kernel, [])), report


# --- the child --------------------------------------------------------------------------------------------


def main(request: Path) -> int:
    """Run the calls of `request`, print a line for each; no kernel but theirs runs on the card."""
    import cuda.core

    # Line numbers change no instruction, and the tool names the line.
    cuda.core.ProgramOptions = partial(cuda.core.ProgramOptions, lineinfo=True)
    status = 0
    for entry in json.loads(request.read_text(encoding="utf-8")):
        call = Call(**entry)
        try:
            error = error_of(call)
        except Exception as problem:
            status = 1
            print(f"{call.kernel} on {call.workload}: {type(problem).__name__}: {problem}", flush=True)
        else:
            print(json.dumps({"call": asdict(call), "error": error}), flush=True)
    return status


def error_of(call: Call) -> float:
    """The worst element's error, as a part of what is allowed."""
    folder = call.kernel.partition("/")[0]
    module = import_module("course_kernels." + call.kernel.replace("/", "."))
    problem = import_module(f"course_kernels.{folder}.problem").PROBLEM
    w = Workload.parse(call.workload)
    inputs = problem.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
    with tempfile.TemporaryDirectory(prefix="course-planted-") as folder:
        if call.right:
            module.SOURCE = planted(module.SOURCE, call, Path(folder))
        out = getattr(module, problem.name)(*(x.cuda() for x in inputs))
    torch.cuda.synchronize()
    return worst_error(out.cpu(), problem.reference(*inputs)) / problem.max_error(w)


def planted(source: Path, call: Call, folder: Path) -> Path:
    """A copy of a kernel's source, with what it includes beside it, and the fault in it."""
    text = source.read_text(encoding="utf-8")
    if text.count(call.right) != 1:
        raise ValueError(f"{source.name} holds {text.count(call.right)} times: {call.right}")
    for beside in source.parent.glob("*.cuh"):
        shutil.copy(beside, folder)
    changed = folder / source.name
    changed.write_text(text.replace(call.right, call.wrong), encoding="utf-8")
    return changed


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
