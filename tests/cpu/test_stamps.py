"""Kernels with stamps: the timed ones line by line, right, and their stamps in the order in which things happen."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hopper_on_cpu import prepare_in, tensor_map
from machine_code import sass

from course_kernels.cuda.compile import compile_cubin
from course_kernels.gemm import listing, stamped
from course_kernels.gemm.problem import PROBLEM
from course_kernels.gemm.stamped import ASKS, MEETS, MULTIPLIES, ROLES, WAITS, WIDE
from course_kernels.problem import Workload, worst_error

pytestmark = pytest.mark.kept

BOTH = pytest.mark.parametrize("which", [WIDE, ROLES], ids=["wide", "roles"])


def code(path: Path) -> list[str]:
    """Its lines from the first include on."""
    text = path.read_text()
    return text[text.index("#include") :].splitlines()


@BOTH
def test_without_its_stamps_it_is_the_timed_kernel_line_by_line(which):
    with_stamps = code(which.source)

    assert [line for line in with_stamps if "stamp" not in line.lower()] == code(which.plain.SOURCE)
    assert sum("stamp" in line.lower() for line in with_stamps) <= 12


@BOTH
def test_stamps_take_no_instruction_from_the_loop_that_multiplies(which):
    pytest.importorskip("cuda.core")
    names = ("HGMMA", "UTMALDG", "BAR.SYNC", "WARPGROUP", "SYNCS", "LDL", "STL", "CS2R")

    def loop(source):
        lines = listing.instructions(sass(compile_cubin(source, "sm_90a")))
        return listing.counted(listing.loop_with(lines, "HGMMA"), names)

    plain, noted = loop(which.plain.SOURCE), loop(which.source)

    assert {**noted, "CS2R": 0} == {**plain, "CS2R": 0}
    # The look behind the barrier is two in the machine code, and one of them counts.
    assert noted["CS2R"] - plain["CS2R"] == (5 if which is WIDE else 3)


def looks_behind_the_barrier(text):
    """Whether something is read behind the loop's barrier for everybody, and needed before the clock is looked at."""
    lines = listing.loop_with(listing.instructions(text), "HGMMA")
    at = next(i for i, line in enumerate(lines) if line.name.startswith("BAR.SYNC"))
    look = next(i for i in range(at, len(lines)) if lines[i].stem == "CS2R")
    between = lines[at + 1 : look]
    read = next((i for i, line in enumerate(between) if line.stem == "LDS"), None)
    if read is None:
        return False
    register = str(between[read]).split("LDS ")[1].split(",")[0]
    return any(f" {register}," in str(line) for line in between[read + 1 :])


def test_the_clock_behind_the_barrier_waits_for_what_the_barrier_guards(tmp_path):
    """A look at the clock needs nothing, so it was taken while the warp still stood at the barrier."""
    pytest.importorskip("cuda.core")
    assert looks_behind_the_barrier(sass(compile_cubin(WIDE.source, "sm_90a")))

    early = tmp_path / "stamped_wide.cu"
    text = WIDE.source.read_text()
    early.write_text(text.replace("note_behind_barrier(step, 3, a)", "note(step, 3)"))
    for header in ("hopper_tiles.cuh", "stamps.cuh", "ticks.cuh"):
        (tmp_path / header).write_text(WIDE.source.with_name(header).read_text())
    assert early.read_text() != text
    assert not looks_behind_the_barrier(sass(compile_cubin(early, "sm_90a")))


@pytest.fixture
def on_cpu(monkeypatch, tmp_path):
    monkeypatch.setenv("TRITON_INTERPRET", "1")  # tensors on the CPU are welcome
    monkeypatch.setattr(stamped, "prepare", prepare_in(tmp_path))
    monkeypatch.setattr(stamped, "tensor_map", tensor_map)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda device: SimpleNamespace(multi_processor_count=3)
    )
    for kept in (stamped._prepared, stamped._room, stamped.multiprocessors):
        kept.cache_clear()
    yield
    for kept in (stamped._prepared, stamped._room, stamped.multiprocessors):
        kept.cache_clear()


@BOTH
def test_it_is_right_and_its_stamps_come_in_order(on_cpu, which):
    w = Workload.of("bfloat16", M=130, N=264, K=584)  # four blocks, ten steps
    a, b = PROBLEM.make_inputs(w, torch.Generator().manual_seed(1), "cpu")
    c, ticks = stamped.multiply(which, a, b)

    assert worst_error(c, PROBLEM.reference(a, b)) <= 2.0**-8
    assert ticks.shape == (4, 3, 11, 4)
    at_work = (0, 1) if which is WIDE else (1, 2)
    places = 4 if which is WIDE else 3
    for block in range(4):
        for group in at_work:
            own = ticks[block, group, :-1, :places].flatten()
            assert own.diff().gt(0).all()
            assert ticks[block, group, -1, 2] < own[0]
            assert own[-1] < ticks[block, group, -1, 0] < ticks[block, group, -1, 1]
            assert ticks[block, group, -1, 3] == 1 + block % 2
    assert ticks[:, 2].eq(0).all() == (which is WIDE)

    told = stamped.intervals(ticks, which, block=1, first=4, last=6)
    assert min(told["from_cycles"]) == 0
    assert all(begin < end for begin, end in zip(told["from_cycles"], told["to_cycles"], strict=True))
    does = {
        group: {int(d) for g, d in zip(told["lane"], told["does"], strict=True) if g == group}
        for group in range(3)
    }
    if which is WIDE:
        assert does == {0: {WAITS, MULTIPLIES, MEETS, ASKS}, 1: {WAITS, MULTIPLIES, MEETS}, 2: set()}
    else:
        assert does == {0: {WAITS, ASKS}, 1: {WAITS, MULTIPLIES}, 2: {WAITS, MULTIPLIES}}


def made(which):
    """Stamps by hand: two blocks on one multiprocessor, twelve steps of 100 ticks, waiting in 10 of them."""
    ticks = torch.zeros(2, 3, 13, 4, dtype=torch.int64)
    for block in range(2):
        start = 5000 * block + 1000
        for group in range(3):
            for step in range(12):
                begin = start + 100 * step
                ticks[block, group, step] = torch.tensor([begin, begin + 10, begin + 70, begin + 90])
            ticks[block, group, -1] = torch.tensor([start + 1200, start + 1500, start - 200, 8])
    return ticks


def test_shares_steps_and_gaps_are_what_the_stamps_say():
    for which, meets in ((WIDE, 0.2), (ROLES, 0.0)):
        told = stamped.shares(made(which), which)

        assert told == pytest.approx({"for_tiles": 0.1, "for_all": meets, "rest": 0.9 - meets})
        assert stamped.step_cycles(made(which), which) == [100.0, 100.0]
        assert stamped.gaps(made(which), which) == [5000 + 10 - 1200]


def test_who_leaves_a_barrier_too_early_is_counted():
    ticks = made(WIDE)
    assert (stamped.early(ticks), stamped.apart(ticks)) == (0, 0.0)

    ticks[:, 1, :-1, 3] += 7
    assert (stamped.early(ticks), stamped.apart(ticks)) == (0, 7.0)

    ticks[1, 0, 3, 2] += 21  # comes a tick behind the place where, by the other's stamp, both have left
    ticks[1, 0, 3, 3] += 30
    assert stamped.early(ticks) == 0
    ticks[1, 0, 3, 2] += 7
    assert stamped.early(ticks) == 1


def test_what_it_cannot_take_is_refused_in_one_line(on_cpu):
    a, b = torch.zeros(8, 16).bfloat16(), torch.zeros(16, 24).bfloat16()
    with pytest.raises(ValueError, match="K: expected a multiple of 8"):
        stamped.multiply(WIDE, a[:, :12].contiguous(), b[:12])


def test_two_kernels_never_write_to_the_same_ticks():
    """Both have as many blocks and steps at 4096: who reads the first one's ticks last would read the second's."""
    wide, roles = (stamped._room(which, torch.device("cpu"), 2, 3) for which in (stamped.WIDE, stamped.ROLES))
    assert wide.data_ptr() != roles.data_ptr()
    assert wide.shape == roles.shape == (2, stamped.WARPGROUPS, 4, 4)
