"""No kernel with shared memory or atomics reaches out of bounds, misuses a barrier or races, says compute-sanitizer.

A tool goes over all CUDA C++ kernels of a folder, and over the last stage of its labs, in one process: this file, run
as a program. The GEMM ladders run on sizes that nothing divides, and on sizes that fit vectors of 16 bytes; the others
on what they are checked on. Every tensor is an allocation of its own. Faults planted in the same way must be found, so
that a green run means something.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import course_kernels
from course_kernels.cuda.includes import sources_of
from course_kernels.cuda.launch import launch, load_kernel
from course_kernels.cuda.shared_memory import allow_shared_memory
from course_kernels.cuda.signature import kernels_of
from course_kernels.error_demos.run import ABSENT, API_ERRORS, HOST_CALLS, RULER, SANITIZER, SOURCES, watch
from course_kernels.problem import Problem, Workload, worst_error
from course_site.records.gpu_test_records import Project

GROUPS = ("every problem that shares memory", "microbenchmarks", "bottleneck")
ROOT = Path(course_kernels.__file__).parent
PROJECT = Project(ROOT.parents[1])
GIVEN = PROJECT.every_lab["bottleneck"].folder / "given"
FOLDERS = PROJECT.test_files[Path(__file__).resolve()]
TOOLS = ("memcheck", "synccheck", "racecheck")
LIMIT_S = 200.0  # of one process, beside others; a barrier that somebody never comes to ends here
OPTIONS = ("--show-backtrace", "no", "--print-limit", "100")
# After an access out of bounds the other kernels still get their turn.
MORE_OPTIONS = {"memcheck": (*API_ERRORS["memcheck"], "--destroy-on-device-error", "kernel")}
KERNELS = [
    f"{folder}/{path.stem}"
    for folder in FOLDERS
    for path in sorted((ROOT / folder).glob("k[0-9][0-9]_*.py"))
    if path.with_suffix(".cu").exists()
]
LABS = {
    f"{lab.problem}/{name}": lab
    for name, lab in PROJECT.every_lab.items()
    if lab.problem in FOLDERS and "cuda" in lab.doors
}

# Two blocks each way and a rest, long enough for every ring of buffers to come round; nothing divides anything, then
# vectors fit and tiles do not.
SIZES = ((131, 261, 331), (136, 264, 328))
MORE_SIZES = {
    # More tiles than multiprocessors; and few tiles with a long K, so that several blocks share each.
    "sgemm/k12_persistent": ((1700, 3077, 20), (67, 69, 4099)),
    "gemm/k03_mma_sync": ((1701, 3080, 72),),
}
LADDERS = ("gemm", "sgemm")
LARGEST = (
    1 << 22
)  # numbers of the inputs, and of the scores of attention: more only takes longer under a tool


@dataclass(frozen=True)
class Explained:
    """What a tool says of a kernel that is right.

    Attributes:
        part: of every such finding, a regular expression.
        reason: why it says so.
        edits: what makes a kernel of it in which the tool sees the order, too: there it must find nothing.
    """

    part: str
    reason: str
    edits: tuple[tuple[str, str], ...]


EXPLAINED = {
    ("racecheck", "attention_backward/k04_wgmma"): Explained(
        r"Write access at load_bytes\(.* and Read access at multiply\(",
        "32 lanes have read, a __syncwarp orders them, and one of them arrives at the barrier of bytes: of those who "
        "read, the tool sees an order for the one alone",
        (
            ("if (lane == 0) arrive(&shared.o_empty[at.stage]);", "arrive(&shared.o_empty[at.stage]);"),
            ("if (lane == 0) arrive(&shared.q_empty[at.stage]);", "arrive(&shared.q_empty[at.stage]);"),
            ("&shared.o_empty[i], WARPGROUPS * 4)", "&shared.o_empty[i], WARPGROUPS * 128)"),
            ("&shared.q_empty[i], WARPGROUPS * 4)", "&shared.q_empty[i], WARPGROUPS * 128)"),
        ),
    ),
    ("racecheck", "bottleneck/sum"): Explained(
        r"Write access at sum\b.* in sum\.cu:20 and Read access at sum\b.* in sum\.cu:22",
        "the compiler lets all threads read what thread 0 has just written, and only thread 0 uses it",
        (("    if (t == 0) total += part[0];", "    __syncthreads();\n    if (t == 0) total += part[0];"),),
    ),
}
# What a tool does not look at, as planted faults have shown: its silence there says nothing.
WGMMA = (
    "what wgmma reads from shared memory: in gemm/k04_wgmma the barrier before it, left out, is not missed"
)
GLOBAL = "blocks that meet in global memory: racecheck looks at shared memory only"
UNSEEN = {
    ("racecheck", "attention/k06_wgmma"): WGMMA,
    ("racecheck", "attention_backward/k04_wgmma"): WGMMA,
    ("racecheck", "gemm/k04_wgmma"): WGMMA,
    ("racecheck", "microbenchmarks/tensor"): WGMMA,
    ("racecheck", "microbenchmarks/bandwidth"): GLOBAL,
    ("racecheck", "reduction/k01_atomics"): GLOBAL,
}


@dataclass(frozen=True)
class Fault:
    """What a tool must find: in a kernel's source `right` becomes `wrong`; a finding then says `says`."""

    tool: str
    kernel: str
    right: str
    wrong: str
    says: str


FAULTS = {
    "columns past the edge": Fault(
        "memcheck",
        "sgemm/k01_naive",
        "if (m >= M || n >= N) return;",
        "if (m >= M) return;",
        "Invalid __global__",
    ),
    "half of every warp at a barrier": Fault(
        "synccheck",
        "sgemm/k03_shared_tiles",
        "  if (m < M && n < N) C[",
        "  if (column < 16) __syncthreads();\n  if (m < M && n < N) C[",
        "Divergent thread(s) in warp",
    ),
    "tiles read before they are whole": Fault(
        "racecheck",
        "sgemm/k03_shared_tiles",
        "__syncthreads();  // nobody eats before",
        "//",
        "Race reported",
    ),
    "asynchronous copies of others read before they are there": Fault(
        "racecheck", "sgemm/k09_asynchronous", "    __syncthreads();  ", "    //", "Race reported"
    ),
    "a tile of matrix instructions written over while it is read": Fault(
        "racecheck", "gemm/k03_mma_sync", "__syncthreads();  // it is filled", "//", "Race reported"
    ),
    "a number past the end of a vector": Fault(
        "memcheck", "reduction/k01_atomics", "if (i < N) atomicAdd(", "atomicAdd(", "Invalid __global__"
    ),
    "sums added before they are complete": Fault(
        "racecheck", "reduction/k02_tree", "__syncthreads();  // the numbers", "//", "Race reported"
    ),
    "a tile turned before it is whole": Fault(
        "racecheck", "transpose/k02_tiled", "__syncthreads();  // an element", "//", "Race reported"
    ),
    "keys written over while they are read": Fault(
        "racecheck", "attention/k02_teaching", "__syncthreads();  // nobody reads", "//", "Race reported"
    ),
    "a window read before it is written": Fault(
        "racecheck", "bank_conflicts/k01_stride", "  __syncthreads();\n", "\n", "Race reported"
    ),
}


@dataclass(frozen=True)
class Call:
    """One kernel on one workload; in its source the first text of each edit becomes the second, and it is compiled."""

    kernel: str
    workload: str
    edits: tuple[tuple[str, str], ...] = ()


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


# --- what runs --------------------------------------------------------------------------------------------


def source_of(name: str) -> Path:
    """The file with the kernel: of a lab, what its last stage comes to, or what it gives the student."""
    if name in LABS:
        return LABS[name].snapshot("cuda", len(LABS[name].stages))
    if name.startswith("bottleneck/"):
        return GIVEN / f"{name.partition('/')[2]}.cu"
    return ROOT / f"{name}.cu"


def problem_of(name: str) -> Problem:
    return import_module(f"course_kernels.{name.partition('/')[0]}.problem").PROBLEM


def workloads_of(name: str) -> list[Workload]:
    """What a kernel or a lab runs on: the sizes above in every type that it takes, or what it is checked on."""
    if name in LABS:
        return [Workload.parse(text) for text in LABS[name].tries]
    problem = problem_of(name)
    if problem.name in LADDERS:
        types = dict.fromkeys(w.dtype for w in problem.check_on)
        sizes = SIZES + MORE_SIZES.get(name, ())
        every = [Workload.of(dtype, M=M, N=N, K=K) for dtype in types for M, N, K in sizes]
    else:
        every = [w for w in problem.check_on if max(_numbers(problem, w)) <= LARGEST]
    takes = getattr(_module_of(name), "supports", lambda w: True)
    return [w for w in every if takes(w)]


def _numbers(problem: Problem, w: Workload) -> tuple[int, int]:
    scores = w.B * w.H * w.N * w.N if problem.name.startswith("attention") else 0
    return problem.reads_bytes(w) // w.element_bytes, scores


def _module_of(name: str) -> ModuleType:
    return import_module("course_kernels." + name.replace("/", "."))


def _one_instruction() -> float:
    module = _module_of("gemm/one_instruction")
    a, b = module.small_numbers(device="cpu")
    return float((module.multiply(a.cuda(), b.cuda()).cpu().double() - a.double() @ b.double()).abs().max())


def _latency() -> float:
    module = _module_of("microbenchmarks/latency")
    chain = module.make_chain(1024, 4, device="cpu")
    chain = replace(chain, words=chain.words.cuda())
    for pointer in (False, True):
        module.walk(chain, "shared", warm=256, hops=64, n=2, pointer=pointer)
    return 0.0  # it would have raised


def _bandwidth() -> float:
    module = _module_of("microbenchmarks/bandwidth")
    off = 0
    for level in ("shared", "l1", "l2"):
        blocks, passes = 4, 2
        vectors = module.THREADS * module.UNROLL * (blocks if level == "l1" else 1)
        words = torch.randint(-(2**31), 2**31, (4 * vectors,), dtype=torch.int32)
        reading = module.read(level, words.cuda(), blocks, passes)
        off += reading.total != module.expected_total(level, words, blocks, passes)
    return float(off)


def _tensor() -> float:
    module = _module_of("microbenchmarks/tensor")
    off = [module._Launches("mma", kind, 256, "shared").run(2)[1] for kind in ("bf16", "tf32")]
    if torch.cuda.get_device_capability() == (9, 0):
        for a_in in ("shared", "registers"):
            off += [module._Launches("wgmma", kind, 64, a_in).run(2)[1] for kind in module.K]
    return sum(off)  # none is below 0, and a NaN stays one


def _given_sum() -> float:
    x = torch.randint(-9, 10, (5001,)).float()
    y = torch.zeros(1).cuda()
    launch(load_kernel(GIVEN / "sum.cu", "sum"), 2, 1024, x.cuda(), y, np.int64(len(x)))
    return abs(y.item() - x.double().sum().item())  # small integers: exact in every order


def _given_add() -> float:
    x, y = torch.randint(-9, 10, (2, 5001)).float()
    z = torch.full_like(x, float("nan")).cuda()
    kernel, room = load_kernel(GIVEN / "add.cu", "add"), 4 * 48 * 1024
    allow_shared_memory(kernel, room)
    launch(kernel, 2, 128, x.cuda(), y.cuda(), z, np.int64(len(x)), shared_bytes=room)
    return (z.cpu() - (x + y)).abs().max().item()


# Kernels that solve no problem: each brings its own inputs, and says how far it is off.
OTHERS: dict[str, Callable[[], float]] = {
    "gemm/one_instruction": _one_instruction,
    "microbenchmarks/latency": _latency,
    "microbenchmarks/bandwidth": _bandwidth,
    "microbenchmarks/tensor": _tensor,
    "bottleneck/sum": _given_sum,
    "bottleneck/add": _given_add,
}
EVERY = (*KERNELS, *LABS, *OTHERS)


def call_of(kernel: str, edits: tuple[tuple[str, str], ...]) -> Call:
    if kernel in OTHERS:
        return Call(kernel, "", edits)
    workloads = workloads_of(kernel)
    largest = max(workloads, key=lambda w: problem_of(kernel).reads_bytes(w))
    return Call(kernel, largest.as_text(), edits)


def calls_of(folder: str) -> list[Call]:
    names = [name for name in (*KERNELS, *LABS) if name.startswith(f"{folder}/")]
    calls = [Call(name, w.as_text()) for name in names for w in workloads_of(name)]
    return calls + [Call(name, "") for name in OTHERS if name.startswith(f"{folder}/")]


def call_from(data: dict[str, Any]) -> Call:
    return Call(data["kernel"], data["workload"], tuple((right, wrong) for right, wrong in data["edits"]))


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
        environment |= {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "OMP_NUM_THREADS": "1"}
        environment |= {
            "PYTHONPATH": os.pathsep.join(filter(None, [str(SOURCES), os.environ.get("PYTHONPATH")]))
        }
        _, timed_out = watch(command, environment, said, begun, LIMIT_S)
        report = Report(said=said.read_text(encoding="utf-8", errors="replace"))
        output = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    for line in report.said.splitlines():
        if line.startswith('{"call": '):
            answer = json.loads(line)
            report.ran[call_from(answer["call"])] = answer["error"]
    places = places_of({call.kernel for call in calls})
    for finding in findings_in(output):
        # The file is one kernel's own; a function may stand in several files, and a header is many kernels'.
        files = [Path(file).name for file in re.findall(r"\bin (\S+\.cuh?):\d", finding)]
        files.sort(key=lambda file: file.endswith(".cuh"))
        names = [*files, *re.findall(r"\bat (\w+)", finding)]
        owners = next((places[name] for name in names if name in places), {""})
        for kernel in owners:
            report.findings.setdefault(kernel, []).append(finding)
    report.ended = not timed_out and "SUMMARY:" in output
    return report


def places_of(kernels: set[str]) -> dict[str, set[str]]:
    """The kernels that a source file, a header or a `__global__` function belongs to."""
    places: dict[str, set[str]] = {}
    for kernel in sorted(kernels):
        source = source_of(kernel)
        for file in sources_of(source):
            places.setdefault(file.name, set()).add(kernel)
        for found in kernels_of(source.read_text(encoding="utf-8")):
            places.setdefault(found.name, set()).add(kernel)
    return places


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


def begin_behind(items):
    """The processes that the chosen tests ask for, the longest first, while the tests of other files run."""
    # A quarter of the processor: the tests before them compile meanwhile, and other processes of tests run beside.
    workers = ThreadPoolExecutor(max(2, (os.cpu_count() or 2) // 4), thread_name_prefix="sanitizer")
    chosen = {group for item in items for marker in item.iter_markers("group") for group in marker.args}
    for tool in TOOLS:
        for folder in sorted(chosen & set(FOLDERS), reverse=True):
            _begun[tool, folder] = workers.submit(run_under, tool, calls_of(folder))
    for name, fault in FAULTS.items():
        if fault.kernel.partition("/")[0] in chosen:
            call = call_of(fault.kernel, ((fault.right, fault.wrong),))
            _begun[fault.tool, name] = workers.submit(run_under, fault.tool, [call])
    for (tool, kernel), explained in EXPLAINED.items():
        if kernel.partition("/")[0] in chosen:
            call = call_of(kernel, explained.edits)
            _begun[tool, f"{kernel}, in other words"] = workers.submit(run_under, tool, [call])
    workers.shutdown(wait=False)  # what was handed in is still done


def in_its_group(kernel: str, value: str = ""):
    """A parameter whose test belongs to the problem that the kernel solves."""
    return pytest.param(value or kernel, marks=pytest.mark.group(kernel.partition("/")[0]))


def report_of(tool: str, what: str) -> Report:
    report = _begun[tool, what].result()
    if report.said == ABSENT:
        pytest.fail(ABSENT, pytrace=False)
    return report


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("kernel", [in_its_group(kernel) for kernel in EVERY])
def test_nothing_is_found(kernel, tool, record_property):
    report = report_of(tool, kernel.partition("/")[0])
    calls = [call for call in calls_of(kernel.partition("/")[0]) if call.kernel == kernel]
    found = report.findings.get(kernel, [])
    explained = EXPLAINED.get((tool, kernel))
    if explained:
        record_property("explained", explained.reason)
        record_property("findings_explained", len(found))
        found = [finding for finding in found if not re.search(explained.part, finding)]
    if (tool, kernel) in UNSEEN:
        record_property("not_looked_at", UNSEEN[tool, kernel])

    assert calls
    assert found == []
    assert report.ended, report.said
    assert [call for call in calls if not report.ran.get(call, torch.inf) < 1] == [], report.said


@pytest.mark.parametrize("folder", [in_its_group(folder) for folder in FOLDERS])
@pytest.mark.parametrize("tool", TOOLS)
def test_nothing_is_found_elsewhere(tool, folder):
    assert report_of(tool, folder).findings.get("", []) == []


@pytest.mark.parametrize("name", [in_its_group(fault.kernel, name) for name, fault in FAULTS.items()])
def test_a_planted_fault_is_found(name):
    fault = FAULTS[name]
    report = report_of(fault.tool, name)

    assert fault.says in " ".join(report.findings.get(fault.kernel, [])), report


@pytest.mark.parametrize(
    ("tool", "kernel"),
    [pytest.param(*key, marks=pytest.mark.group(key[1].partition("/")[0])) for key in EXPLAINED],
)
def test_what_is_explained_is_silent_in_other_words(tool, kernel):
    report = report_of(tool, f"{kernel}, in other words")
    call = call_of(kernel, EXPLAINED[tool, kernel].edits)

    assert report.findings.get(kernel, []) == []
    assert report.ended, report.said
    assert report.ran.get(call, torch.inf) < 1, report.said


@pytest.mark.group("sgemm")
def test_every_tool_has_a_planted_fault():
    assert {fault.tool for fault in FAULTS.values()} == set(TOOLS)


# --- the child --------------------------------------------------------------------------------------------


def main(request: Path) -> int:
    """Run the calls of `request`, print a line for each; no kernel but theirs runs on the card."""
    import cuda.core

    # Line numbers change no instruction, and the tool names the line.
    cuda.core.ProgramOptions = partial(cuda.core.ProgramOptions, lineinfo=True)
    for entry in json.loads(request.read_text(encoding="utf-8")):
        call = call_from(entry)
        try:
            error = error_of(call)
        except Exception as problem:
            print(f"{call.kernel} on {call.workload}: {type(problem).__name__}: {problem}", flush=True)
        else:
            print(json.dumps({"call": asdict(call), "error": error}), flush=True)
    return 0


def error_of(call: Call) -> float:
    """The worst element's error, as a part of what is allowed."""
    if call.kernel in OTHERS:
        with tempfile.TemporaryDirectory(prefix="course-planted-") as folder:
            if call.edits:
                globals()["GIVEN"] = planted(source_of(call.kernel), call, Path(folder)).parent
            return OTHERS[call.kernel]()
    problem = problem_of(call.kernel)
    w = Workload.parse(call.workload)
    inputs = problem.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
    on_the_card, options = [x.cuda() for x in inputs], problem.options(w)
    if call.kernel in LABS:
        out = answer_of(call.kernel, on_the_card, options)
    else:
        module = _module_of(call.kernel)
        with tempfile.TemporaryDirectory(prefix="course-planted-") as folder:
            if call.edits:
                module.SOURCE = planted(module.SOURCE, call, Path(folder))
            out = getattr(module, problem.name)(*on_the_card, **options)
    torch.cuda.synchronize()
    out = out.cpu() if isinstance(out, torch.Tensor) else [x.cpu() for x in out]
    error = worst_error(out, problem.reference(*inputs, **options), rows_apart=problem.rows_apart)
    return error / problem.max_error(w) if error else 0.0


def answer_of(lab: str, inputs: list[torch.Tensor], options: dict[str, object]) -> torch.Tensor:
    """What a lab's last stage comes to, launched as the grader launches it."""
    source = source_of(lab)
    text = source.read_text(encoding="utf-8")
    (found,) = kernels_of(text)
    handle = load_kernel(source, found.name)
    listed = ",".join(re.findall(r"constexpr int ([^;]*);", text)).split(",")
    constants = dict(part.strip().split(" = ") for part in listed if re.fullmatch(r"\s*\w+ = \d+", part))
    kernel = partial(launch, handle)
    kernel.constants = {name: int(value) for name, value in constants.items()}  # type: ignore[attr-defined]
    spec = spec_from_file_location("lab_launch", LABS[lab].folder / "launch.py")
    launcher = module_from_spec(spec)
    spec.loader.exec_module(launcher)
    return launcher.launch(kernel, *inputs, **options)


def planted(source: Path, call: Call, folder: Path) -> Path:
    """A copy of a kernel's source, with what it includes beside it, and the edits in it."""
    text = source.read_text(encoding="utf-8")
    for right, wrong in call.edits:
        if text.count(right) != 1:
            raise ValueError(f"{source.name} holds {text.count(right)} times: {right}")
        text = text.replace(right, wrong)
    for beside in source.parent.glob("*.cuh"):
        shutil.copy(beside, folder)
    changed = folder / source.name
    changed.write_text(text, encoding="utf-8")
    return changed


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
