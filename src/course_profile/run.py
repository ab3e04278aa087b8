"""Run of a `Subject` to a `Profile`: what could be found out on this machine, and what is missing."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from course_judge.cpu_sizes import names_triton
from course_kernels.measure.counters import READ, WRITE, CountersUnavailable, parse, split_jobs, why
from course_kernels.measure.derive import derive
from course_kernels.measure.machine import MACHINES, machine_for
from course_kernels.measure.record_types import Measurement
from course_kernels.measure.roofline import bound, floor_us
from course_kernels.problem import Workload
from course_profile import measurement as r
from course_profile.errors import Unusable, Wrong
from course_profile.measurement import METRICS, Reading
from course_profile.occupancy import Occupancy, occupancy
from course_profile.profile import Profile
from course_profile.subject import Subject

SOURCES = Path(__file__).resolve().parents[1]
LIMIT_S = 600.0
ATTEMPTS = 6  # with fewer counters each time: as many as a profiler may lack before something else is wrong
NO_GPU = "no GPU: nothing is timed or counted; what the sources and the compiler say is shown"
NO_NCU = (
    "no `ncu` on PATH: no counters; install Nsight Compute with the CUDA toolkit, or add its folder to PATH"
)


@dataclass(frozen=True)
class _Cost:
    reads_bytes: int
    writes_bytes: int
    flops: int
    math: str


def profile(subject: Subject, *, gpu: bool, seconds: float = 1.0) -> Profile:
    """Check, time and count one kernel, as far as this machine can; see `profile_each`."""
    return profile_each([subject], gpu=gpu, seconds=seconds)[0]


def profile_each(subjects: Sequence[Subject], *, gpu: bool, seconds: float = 1.0) -> list[Profile]:
    """Check, time and count several kernels, in two processes for all of them.

    Args:
        subjects: kernels that may share a process.
        gpu: whether there is a card.
        seconds: time to sample, for each.
    Raises:
        Unusable: one cannot be run.
        Wrong: the answer of one is wrong.
    """
    told = _ask("look", subjects, {"gpu": gpu, "seconds": seconds}, environment(gpu))
    found = [looked(subject, one) for subject, one in zip(subjects, told["each"], strict=True)]
    if not gpu:
        return found
    try:
        groups, missing = counted(subjects)
    except (CountersUnavailable, Unusable) as error:  # it was timed: that much is shown
        line = str(error).removeprefix("counters: ")
        return [replace(one, missing=(*one.missing, line)) for one in found]
    return [with_counters(one, launches, missing) for one, launches in zip(found, groups, strict=True)]


def environment(gpu: bool) -> dict[str, str]:
    """Variables of the process that runs the file: without a card Triton's kernels run in its interpreter."""
    return {} if gpu else {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": "-1"}


# --- without a profiler -------------------------------------------------------------------------


def looked(subject: Subject, told: Mapping[str, Any]) -> Profile:
    """Return the profile without counters, from what the process that ran the file says."""
    workload = Workload.from_json(told["workload"])
    cost = _Cost(told["reads_bytes"], told["writes_bytes"], told["flops"], told["math"])
    gpu = told.get("gpu", "")
    missing: list[str] = []
    machine = machine_for(gpu) if gpu else MACHINES[0]
    if machine is None:
        missing.append(
            f"no data sheet of {gpu} in course_kernels/measure/machine.py: no floor, no percent of peak"
        )
    reading = Reading(
        least_read_bytes=cost.reads_bytes,
        least_write_bytes=cost.writes_bytes,
        flops=cost.flops,
        sms=told.get("sms"),
    )
    spread = None
    if machine:
        reading = replace(reading, floor_us=floor_us(cost, machine), bound=bound(cost, machine))
    if "measurement" in told:
        leaf = Measurement.from_json(told["measurement"])
        reading = replace(
            reading,
            time_us=leaf.median_us,
            host_us=told.get("host_us"),
            of_peak=derive(leaf, "of_peak", machine=machine),
        )
        spread = derive(leaf, "spread")
        checked = f"right: a scaled error of {leaf.error:.1e} where {leaf.allowed:.1e} is allowed"
    elif "right_on" in told:
        where = ", in Triton's interpreter" if names_triton(subject.file) else ""
        checked = f"right on {', '.join(told['right_on'])}, without a card{where}"
    elif "not_run" in told:
        checked = f"not judged, needs a card: {told['not_run']}"
    elif "crashed" in told:
        checked = f"it does not run without a card: {told['crashed']}"
    elif "not_compiled" in told:
        checked = f"not run and not compiled: {told['not_compiled']}"
    else:
        checked = f"compiled for {told.get('arch')}, not run"
    if not gpu:
        missing.append(NO_GPU)
    return Profile(
        subject=subject,
        workload=workload,
        formula=told["formula"],
        reading=reading,
        machine=machine or MACHINES[0],
        gpu=gpu,
        math=cost.math,
        places=_places(told),
        launch=told.get("launch") or (),
        resources=told.get("resources") or (),
        checked=checked,
        spread=spread,
        missing=tuple(missing),
    )


def _places(told: Mapping[str, Any]) -> Occupancy | None:
    if not told.get("launch") or not told.get("resources"):
        return None
    _, block, dynamic = told["launch"]
    registers, static, _ = told["resources"]
    threads = block[0] * block[1] * block[2]
    return occupancy(told["arch"], threads, registers, static + dynamic)


def _ask(
    verb: str,
    subjects: Sequence[Subject],
    asked: Mapping[str, Any],
    more: Mapping[str, str],
    before: Sequence[str] = (),
    printed: list[str] | None = None,
) -> dict[str, Any]:
    """Answer of the process that runs the file.

    Raises:
        Unusable, Wrong: it says so.
    """
    with tempfile.TemporaryDirectory(prefix="course-profile-") as folder:
        request, answer = Path(folder, "request.json"), Path(folder, "answer.json")
        request.write_text(json.dumps({"subjects": [one.as_json() for one in subjects], **asked}))
        path = os.pathsep.join(filter(None, [str(SOURCES), os.environ.get("PYTHONPATH")]))
        command = [
            *before,
            *(sys.executable, "-m", "course_profile.worker", verb, str(request), str(answer)),
        ]
        try:
            output = _said_by(command, {**os.environ, **more, "PYTHONPATH": path}, LIMIT_S * len(subjects))
        except subprocess.TimeoutExpired:
            raise Unusable(
                f"{subjects[0].file.name}: it did not end within {LIMIT_S:.0f} s; take a smaller --size"
            ) from None
        except OSError as error:
            raise Unusable(f"{command[0]} does not start: {error.strerror}") from None
        if printed is not None:
            printed.append(output)
        told: dict[str, Any] = json.loads(answer.read_text()) if answer.exists() else {}
    if "refused" in told:
        raise Wrong(told["refused"])
    if "unusable" in told:
        raise Unusable(told["unusable"])
    if not told and not before:
        last = next((line for line in reversed(output.splitlines()) if line.strip()), "it said nothing")
        raise Unusable(f"{subjects[0].file.name}: its process ended in the middle: {last.strip()[:200]}")
    return told


def _said_by(command: Sequence[str], environment: Mapping[str, str], limit_s: float) -> str:
    """Return what a process prints until it ends. If its time is up first, it ends with all that it has started."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    try:
        out, errors = process.communicate(timeout=limit_s)
    except BaseException:  # Ctrl-C too: it goes to this group alone
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    return f"{out}\n{errors}"


# --- with one -----------------------------------------------------------------------------------


def counted(subjects: Sequence[Subject]) -> tuple[list[list[Any]], tuple[str, ...]]:
    """Kernels that one call of each launches, with their counters, and the counters that this profiler lacks.

    Raises:
        CountersUnavailable: no ncu, no permission, no kernel.
        Unusable, Wrong: as in `profile`.
    """
    if shutil.which("ncu") is None:
        raise CountersUnavailable(NO_NCU)
    wanted = [READ, WRITE, *METRICS]
    for _ in range(ATTEMPTS):
        printed: list[str] = []
        told = _ask("call", subjects, {}, {}, command_of(wanted), printed)
        unknown = unknown_metrics(printed[0], wanted)
        if told.get("each") and not unknown:
            # What a counter cannot tell of a kernel is an empty cell, and no number.
            launches = parse(printed[0].replace('"n/a"', '""'), wanted)
            if launches:
                return split_jobs(launches, len(subjects)), tuple(
                    name for name in METRICS if name not in wanted
                )
        if not unknown:
            raise CountersUnavailable(why(printed[0]))
        wanted = [name for name in wanted if name not in unknown]
    raise CountersUnavailable(f"ncu does not know {unknown[0]}, among others: it is older than this card")


def command_of(metrics: Sequence[str]) -> list[str]:
    """Command of ncu, ahead of the process that it looks at, as in `course_kernels.measure.counters`."""
    return [
        *("ncu", "--clock-control", "none", "--profile-from-start", "off", "--target-processes", "all"),
        *("--csv", "--page", "raw", "--print-units", "base", "--print-kernel-base", "function"),
        *("--metrics", ",".join(metrics)),
    ]


def unknown_metrics(output: str, wanted: Sequence[str]) -> list[str]:
    """Return the counters that ncu complains of."""
    lines = [line for line in output.splitlines() if line.startswith(("==ERROR==", "==WARNING=="))]
    words = {word.strip("'\".,:;()") for line in lines if "metric" in line.lower() for word in line.split()}
    return [name for name in wanted if name in words]


def with_counters(found: Profile, launches: Sequence[Any], missing: Sequence[str] = ()) -> Profile:
    """Return the profile with what ncu counted: the kernel that ran longest, and the bytes of all."""
    times = [_nanoseconds(launch) for launch in launches]
    longest = launches[max(range(len(launches)), key=lambda n: times[n])]
    # A ratio of nothing to nothing is no number.
    known = {name: value for name, (value, _) in longest.metrics.items() if math.isfinite(value)}
    counters = {name: value for name, value in known.items() if name in METRICS}
    if r.TIME in counters:
        counters[r.TIME] = _nanoseconds(longest)
    absent = tuple(dict.fromkeys([*missing, *(name for name in METRICS if name not in counters)]))
    reading = replace(
        found.reading,
        kernel=longest.name,
        counters=counters,
        launches=len(launches),
        kernels_us=sum(times) / 1e3 or None,
        read_bytes=_sum(launches, READ),
        write_bytes=_sum(launches, WRITE),
        missing=absent,
    )
    lines = found.missing
    if absent:
        more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
        lines += (f"not counted on this card: {absent[0]}{more}; a rule that reads it is not asked",)
    return replace(found, reading=reading, missing=lines)


def _nanoseconds(launch: Any) -> float:
    value, unit = launch.metrics.get(r.TIME, (0.0, "ns"))
    return float(value * 1e9 if unit == "s" else value)


def _sum(launches: Sequence[Any], metric: str) -> float | None:
    if not all(metric in launch.metrics for launch in launches):
        return None
    return float(sum(launch.metrics[metric][0] for launch in launches))


def with_recorded(found: Profile, text: str) -> Profile:
    """Return the profile with a reading that was taken on a card before, as `--json` printed it.

    Raises:
        Unusable: it is none, or one of another kernel or size.
    """
    try:
        told = json.loads(text)
        reading = Reading.from_json(told["reading"])
        of = told["function"], Workload.from_json(told["workload"])
    except (ValueError, KeyError, TypeError) as error:
        raise Unusable(f"no reading in it, as --json prints one: {type(error).__name__}: {error}") from None
    if of != (found.subject.function, found.workload):
        raise Unusable(f"the reading is of {of[0]} on {of[1].label}, not of {found.workload.label}")
    line = (
        f"time and counters are recorded ones, of {told.get('gpu')}, and may be of another text of the file"
    )
    return replace(found, reading=reading, missing=(line,))
