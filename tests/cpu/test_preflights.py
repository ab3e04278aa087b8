"""Preflights: what a mentor types the day before runs every kernel of the demo, or says that it proves nothing."""

import re
import shlex
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from course_site.sessions.preflights import faults, measured, one_line
from course_site.sessions.session import Demo, load_sessions

ROOT = Path(__file__).resolve().parents[2]
MEASURE = "PYTHONPATH=src python -m course_kernels.measure"
DEMOS = [
    pytest.param(demo, id=demo.name) for session in load_sessions(ROOT).values() for demo in session.demos
]


def demo(command, preflight):
    return Demo(
        "a_race", "The race", command, preflight, "docs/w1.py#race", "demos.a_race.wait_s", "demos.gpu.name"
    )


# --- planted faults -------------------------------------------------------------------------------

RACE = f"{MEASURE} copy/k01 copy/k02 --workload dtype=float32,N=4096,C=8 --seconds 0.5"
SMALL = f"{MEASURE} copy/k01 copy/k02 --workload dtype=float32,N=64,C=8"
LOOP = f"for M in 1 64; do {MEASURE} gemm/k01 --workload dtype=float32,M=$M,N=64; done"
ROWS = [f"{MEASURE} gemm/k01 --workload dtype=float32,M={rows},N=8" for rows in (1, 64)]
ASM = 'PYTHONPATH=src python -c "from course_kernels.gemm import k04; print(k04.SOURCE)" | grep BRA'

LEAVES_OUT = "leaves out what the demo runs, {}: only B, H, K, M, N may be less"
TAKE_OUT = "runs what the demo does not, {}: take it out"
AS_IT_STANDS = (
    "mentors type it as it is: write `python -m course_kernels.measure …` with plain options, "
    "two of them with && between"
)
ITS_OWN = "this demo does more than measure kernels, so nothing else proves it: write its own command"
ITEM = "{} at C=8,dtype=float32"


@pytest.mark.parametrize(
    ("command", "preflight"),
    [
        (RACE, RACE),
        (RACE, SMALL),
        (RACE, SMALL.replace("copy/k01 copy/k02", "copy/k02 copy/k01")),
        (RACE, SMALL.replace(" --workload", " \\\n    --workload")),
        (RACE, SMALL.replace("dtype=float32,N=64,C=8", "C=8,N=64,dtype=float32")),
        (LOOP, " && ".join(ROWS)),
        (ASM, ASM),
        ("nvidia-smi", "nvidia-smi"),
    ],
)
def test_what_runs_the_kernels_of_the_demo_is_taken(command, preflight):
    assert list(faults(demo(command, preflight))) == []


@pytest.mark.parametrize(
    ("command", "preflight", "said"),
    [
        (RACE.replace("copy/k02", "copy/k02 copy/k03"), SMALL, [LEAVES_OUT.format(ITEM.format("copy/k03"))]),
        (RACE, SMALL.replace("copy/k02", "copy/k02 copy/k03"), [TAKE_OUT.format(ITEM.format("copy/k03"))]),
        (
            RACE,
            SMALL.replace(" copy/k02", ""),
            [LEAVES_OUT.format(ITEM.format("copy/k02"))],
        ),
        (
            RACE.replace(" copy/k02", ""),
            SMALL.replace(" copy/k02", "").replace("C=8", "C=1"),
            [
                LEAVES_OUT.format(ITEM.format("copy/k01")),
                TAKE_OUT.format("copy/k01 at C=1,dtype=float32"),
            ],
        ),
        (
            RACE.replace(" copy/k02", ""),
            SMALL.replace(" copy/k02", "").replace("float32", "bfloat16"),
            [
                LEAVES_OUT.format(ITEM.format("copy/k01")),
                TAKE_OUT.format("copy/k01 at C=8,dtype=bfloat16"),
            ],
        ),
        (LOOP, ROWS[1], [LEAVES_OUT.format("gemm/k01 at dtype=float32")]),
        (LOOP.replace("1 64", "1 8 64"), ROWS[1], [LEAVES_OUT.format("gemm/k01 at dtype=float32 (2 times)")]),
        (LOOP, LOOP, [AS_IT_STANDS]),
        (RACE, "nvidia-smi", [AS_IT_STANDS]),
        (RACE, "python --version", [AS_IT_STANDS]),
        (RACE, "PYTHONPATH=src python -m course_kernels.cuda.compile copy/k01", [AS_IT_STANDS]),
        (RACE, 'PYTHONPATH=src python -c "from course_kernels.copy import k01; print(k01)"', [AS_IT_STANDS]),
        (RACE, f"{SMALL}; rm -rf /", [AS_IT_STANDS]),
        (RACE, f"{SMALL} | tail -1", [AS_IT_STANDS]),
        (RACE, f"{SMALL} || true", [AS_IT_STANDS]),
        (RACE, f"{SMALL} --json out.json", [AS_IT_STANDS]),
        (ASM, SMALL, [ITS_OWN]),
        (ASM, "PYTHONPATH=src python -c \"from course_kernels.gemm import k04; print(k04)\"", [ITS_OWN]),
        (f"{RACE} && nvidia-smi", SMALL, [ITS_OWN]),
    ],
)  # fmt: skip
def test_what_proves_less_is_refused(command, preflight, said):
    assert list(faults(demo(command, preflight))) == said


def test_a_loop_counts_each_turn():
    assert measured(LOOP) == Counter({"gemm/k01 at dtype=float32": 2})
    assert measured("for F in a/k b/k; do " + f"{MEASURE} $F --workload dtype=half; done") == Counter(
        {"a/k at dtype=half": 1, "b/k at dtype=half": 1}
    )
    assert measured(ASM) is None


# --- the real ones --------------------------------------------------------------------------------


def kernels_of(command):
    """What a command names as a kernel, measured, looped over or imported; how often it runs is left aside."""
    found = set(re.findall(r"(?<![\w./=])[a-z]\w*/[\w.]+", command))
    return found | {
        f"{folder}/{name}"
        for folder, names in re.findall(r"from course_kernels\.(\w+) import ([\w, ]+)", command)
        for name in re.findall(r"k\d+\w*", names)
    }


@pytest.mark.parametrize("demo", DEMOS)
def test_a_preflight_runs_the_kernels_of_its_demo(demo):
    assert kernels_of(demo.command)
    assert kernels_of(demo.preflight) == kernels_of(demo.command)
    assert list(faults(demo)) == []


@pytest.mark.parametrize("demo", DEMOS)
def test_a_demo_with_one_kernel_more_is_refused(demo):
    """Planted in each real demo, where it names its kernels."""
    for place in (r"(?<=course_kernels\.measure )", r"(?<=for FOLDER in )", r"(?<= import )(?=k\d)"):
        more = re.sub(place, "copy/k99_planted ", demo.command)
        if more != demo.command and "measure copy/k99_planted $FOLDER" not in more:
            (said,) = faults(replace(demo, command=more))
            assert "copy/k99_planted at " in said if measured(more) else said == ITS_OWN
            break
    else:
        pytest.fail("planted nowhere")


@pytest.mark.parametrize("demo", DEMOS)
def test_a_preflight_without_a_gpu_says_so_in_one_line(demo, capsys, monkeypatch):
    torch = pytest.importorskip("torch")
    from course_kernels.measure.__main__ import main

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    measurements = re.findall(r"course_kernels\.measure ([^&]+)", one_line(demo.preflight))
    assert measurements or demo.name == "w2_sass"  # which shows machine code, and needs no GPU for it
    for words in measurements:
        assert main(shlex.split(words)) == 2
        out, said = capsys.readouterr()
        assert out == ""
        assert re.fullmatch(r"not measured: RuntimeError: no GPU: .+\n", said)


@pytest.mark.parametrize("demo", DEMOS)
def test_a_preflight_that_fails_ends_there(demo, tmp_path):
    """Whatever stands between its commands: the first that fails is the last, and its exit code is not lost."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho no GPU >&2\nexit 2\n")
    python.chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", demo.preflight],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert done.stderr == "no GPU\n"
