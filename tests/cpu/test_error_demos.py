"""The mishaps compile, their runner ends what does not end, and what the tools print is made readable."""

import os
import sys
import time
from pathlib import Path

import pytest

from course_kernels.cuda.compile import CompileError
from course_kernels.error_demos import run as runner
from course_kernels.error_demos.__main__ import main
from course_kernels.error_demos.cases import CASES, HERE
from course_kernels.error_demos.lines import cubin_with_lines
from course_kernels.error_demos.run import (
    ABSENT,
    Outcome,
    Run,
    broken,
    execute,
    first_finding,
    show,
    trim,
    watch,
)

pytest.importorskip("cuda.core")

SOURCES = sorted(HERE.glob("*.cu"))

MEMCHECK = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at out_of_bounds+0x90 in out_of_bounds.cu:11
=========     by thread (1,0,0) in block (4,0,0)
=========     Access to 0x7f7a4e001004 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f7a4e000000 of size 4,100 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: [0x123456] in libcuda.so.1
=========
========= Invalid __global__ write of size 4 bytes
=========     at out_of_bounds+0x90 in out_of_bounds.cu:11
=========     by thread (2,0,0) in block (4,0,0)
=========
========= Program hit cudaErrorLaunchFailure (error 719) due to "unspecified launch failure".
=========     Saved host backtrace up to driver entry point at error
=========
========= Error: process didn't terminate successfully
========= ERROR SUMMARY: 255 errors
========= ERROR SUMMARY: 254 errors were not printed. Use --print-limit option to adjust the number of printed errors
"""

RACECHECK = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at missing_barrier(const float *, float *)+0xa0 in a.cu:14
=========     and Read access at missing_barrier(const float *, float *)+0xd0 in a.cu:15 [4096 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""

CLEAN = """\
========= COMPUTE-SANITIZER
========= ERROR SUMMARY: 0 errors
"""


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_mishap_compiles_with_its_line_numbers(path):
    cubin = cubin_with_lines(path, "sm_90a")

    assert b".debug_line" in cubin


def test_a_source_that_is_wrong_says_its_own_name(tmp_path):
    path = tmp_path / "mine.cu"
    path.write_text('extern "C" __global__ void mine(float *x) { x[0] = y; }')

    with pytest.raises(CompileError, match=r"mine\.cu does not compile[^$]*identifier \"y\" is undefined"):
        cubin_with_lines(path, "sm_90a")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_mishap_says_what_it_is(path):
    head = path.read_text().partition("\n\n")[0]

    assert [word for word in ("Contract", "Idea", "Source") if f"// {word} " not in head] == []
    assert any(name in head for name in CASES)


def test_the_first_finding_stands_for_all():
    assert trim(first_finding(MEMCHECK)).splitlines() == [
        "========= COMPUTE-SANITIZER",
        "========= Invalid __global__ write of size 4 bytes",
        "=========     at out_of_bounds+0x… in out_of_bounds.cu:11",
        "=========     by thread (1,0,0) in block (4,0,0)",
        "=========     Access to 0x… is out of bounds",
        "=========     and is 1 bytes after the nearest allocation at 0x… of size 4,100 bytes",
        "========= ERROR SUMMARY: 255 errors",
    ]


def test_a_race_keeps_both_its_ends():
    assert first_finding(RACECHECK).splitlines() == [
        line for line in RACECHECK.splitlines() if line != "========="
    ]


def test_nothing_found_is_a_title_and_a_count():
    assert first_finding(CLEAN) == CLEAN.strip()


def test_what_a_program_printed_is_no_finding():
    assert first_finding("hello\n" + CLEAN) == CLEAN.strip()


def test_trim_takes_folders_and_addresses_and_leaves_the_rest():
    assert trim(f"{HERE}/a.cu:3: x\n/opt/some/where/b.cu:4  \n") == "a.cu:3: x\nb.cu:4"
    assert trim("1/2 and a / b at 0xdeadbeef") == "1/2 and a / b at 0x…"
    assert trim("see https://docs.nvidia.com/cuda/index.html for more") == (
        "see https://docs.nvidia.com/cuda/index.html for more"
    )


def test_a_long_line_is_broken_and_keeps_its_words():
    ruled = "=========     and is 125 bytes after the nearest allocation at 0x… of size 4,100 bytes"
    text = f"launch: fine\n\n{ruled}\n    {'word ' * 30}".rstrip()

    done = broken(text, 60)

    assert max(map(len, done.splitlines())) <= 60
    assert done.splitlines()[:4] == [
        "launch: fine",
        "",
        "=========     and is 125 bytes after the nearest allocation",
        "=========         at 0x… of size 4,100 bytes",
    ]
    assert done.split() == text.replace(" at 0x", " ========= at 0x").split()
    assert broken(text, 1000) == text


def test_an_unknown_case_or_tool_is_refused_by_name():
    with pytest.raises(ValueError, match="no case 'oops'; there are out_of_bounds"):
        Run("oops")
    with pytest.raises(ValueError, match="no tool 'valgrind'; there are memcheck"):
        Run("out_of_bounds", "valgrind")


def test_a_run_knows_the_line_for_a_terminal():
    run = Run("out_of_bounds", "memcheck", mended=True, own_memory=True)

    assert run.command == (
        "PYTHONPATH=src PYTORCH_NO_CUDA_MEMORY_CACHING=1 compute-sanitizer --tool memcheck "
        "--show-backtrace no --print-limit 1 --report-api-errors no "
        "python -m course_kernels.error_demos out_of_bounds --mended"
    )


def test_an_absent_tool_is_one_line_and_no_failure(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    run = Run("missing_barrier", "racecheck")

    assert execute(run) == Outcome("", ABSENT, 0, False, 0.0)
    show("missing_barrier", "racecheck")
    assert capsys.readouterr().out == broken(ABSENT) + "\n"
    assert "\n" not in ABSENT


# --- the time limit ---------------------------------------------------------------------------------


def child(tmp_path, code, limit_s):
    said, begun = tmp_path / "said", tmp_path / "begun"
    environment = os.environ | {"BEGUN": str(begun)}
    status, timed_out = watch([sys.executable, "-c", code], environment, said, begun, limit_s)
    return status, timed_out, said.read_text()


def test_a_child_that_ends_by_itself_keeps_its_status(tmp_path):
    assert child(tmp_path, "print('hello'); raise SystemExit(3)", 60) == (3, False, "hello\n")


def test_a_child_that_does_not_end_is_ended_with_its_own_children(tmp_path):
    code = (
        "import os, pathlib, subprocess, sys, time\n"
        "grandchild = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(grandchild.pid, flush=True)\n"
        "pathlib.Path(os.environ['BEGUN']).touch()\n"
        "time.sleep(60)\n"
    )

    status, timed_out, said = child(tmp_path, code, 0.2)

    assert (status, timed_out) == (-9, True)
    assert is_gone(int(said))


def is_gone(pid, patience_s=10.0):
    """True once a process has ended; one that nobody has collected yet counts as ended."""
    status = Path(f"/proc/{pid}/stat")
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        try:
            if status.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


def test_the_limit_does_not_count_the_loading(tmp_path):
    code = (
        "import os, pathlib, time\n"
        "time.sleep(0.5)\n"
        "pathlib.Path(os.environ['BEGUN']).touch()\n"
        "time.sleep(0.1)\n"
    )

    assert child(tmp_path, code, 0.4)[:2] == (0, False)


def test_a_child_that_never_begins_is_ended_too(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "START_S", 0.2)

    assert child(tmp_path, "import time; time.sleep(60)", 60)[:2] == (-9, True)


# --- the command ------------------------------------------------------------------------------------


def test_a_case_that_fails_before_its_mishap_is_an_error(monkeypatch):
    monkeypatch.setattr(runner, "play", lambda run: Outcome("ImportError: no torch", "", 1, False, 0.0))

    with pytest.raises(RuntimeError, match="error_demos: out_of_bounds: ImportError: no torch"):
        show("out_of_bounds")


def test_how_a_child_ended_is_said(monkeypatch, capsys):
    monkeypatch.setattr(runner, "play", lambda run: Outcome("launch: fine", "", -9, True, 4.0))
    show("endless_loop", limit_s=2)
    monkeypatch.setattr(runner, "play", lambda run: Outcome("launch: fine", "", -6, False, 4.0))
    show("endless_loop")

    assert capsys.readouterr().out.splitlines() == [
        "launch: fine",
        "(no end after 2 s: ended from outside)",
        "launch: fine",
        "(exit status -6)",
    ]


def test_the_command_names_the_cases_it_knows(capsys):
    with pytest.raises(SystemExit):
        main(["oops"])
    assert "out_of_bounds" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--limit", "0"], "--limit 0: give 1 to 3600 seconds"),
        (["--limit", "-1"], "--limit -1: give 1 to 3600 seconds"),
        (["--limit", "99999999999"], "--limit 99999999999: give 1 to 3600 seconds"),
        ([], "no GPU: torch cannot use CUDA on this machine; run this where a GPU is"),
    ],
)
def test_what_cannot_be_run_is_one_line(arguments, said, monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("signal.alarm", lambda seconds: pytest.fail("an alarm is set"))

    with pytest.raises(SystemExit):
        main(["out_of_bounds", *arguments])

    assert capsys.readouterr().err.splitlines()[-1].endswith(f"error: {said}")
