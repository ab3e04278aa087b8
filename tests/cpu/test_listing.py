"""Machine code as lines: counted by kernel, its loops found, of our own kernels and of a listing made by hand."""

import re
import tomllib
from pathlib import Path

import pytest
from machine_code import sass

from course_kernels.cuda.compile import compile_cubin
from course_kernels.gemm import (
    k04_wgmma,
    k06_tma,
    k07_wide,
    k08_roles,
    k09_registers,
    k10_persistent,
    k11_cluster,
    k12_stored,
    k13_by_size,
    k14_tuned,
    listing,
)

BY_HAND = """
.text.first:
        /*0000*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
.text.second:
.L_x_0:
        /*0010*/                   LDG.E R2, desc[UR4][R2.64] ;   /* a comment */
.L_x_1:
        /*0020*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R3], R0 ;
        /*0030*/              @!P0 BRA `(.L_x_3) ;
.L_x_2:
        /*0040*/                   HGMMA.64x256x16.F32.BF16 R24, gdesc[UR12], R24, gsb0 ;
        /*0050*/             @!PT LDS RZ, [RZ] ;
        /*0060*/              @!P1 BRA `(.L_x_1) ;
        /*0070*/               @P2 BRA `(.L_x_0) ;
        /*0080*/                   EXIT ;
.L_x_3:
        /*0090*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R3], R0 ;
        /*00a0*/              @!P0 BRA `(.L_x_3) ;
        /*00b0*/                   BRA `(.L_x_2) ;
"""


def test_a_listing_is_read_kernel_by_kernel():
    lines = listing.instructions(BY_HAND, "second")

    assert [line.stem for line in lines[:4]] == ["LDG", "SYNCS", "BRA", "HGMMA"]
    assert listing.counted(lines, ("SYNCS", "BAR", "LDS", "HGMMA.64x256x16", "HGMMA.64x2")) == {
        "SYNCS": 2,
        "BAR": 0,  # the other kernel's
        "LDS": 0,  # never done
        "HGMMA.64x256x16": 1,
        "HGMMA.64x2": 0,
    }
    assert listing.counted(listing.instructions(BY_HAND), ("BAR.SYNC",)) == {"BAR.SYNC": 1}
    assert lines[0].number == 6
    assert str(lines[2]) == "@!P0 BRA `(.L_x_3)"


def test_a_loop_is_the_shortest_that_waits_and_ends_with_a_condition():
    lines = listing.instructions(BY_HAND, "second")
    loop = listing.loop_with(lines, "HGMMA")

    assert [line.stem for line in loop] == ["SYNCS", "BRA", "HGMMA", "BRA"]
    with pytest.raises(ValueError, match="no loop with UTMALDG"):
        listing.loop_with(lines, "UTMALDG")
    with pytest.raises(ValueError, match="no loop with LDG and a wait"):
        listing.loop_with([line for line in lines if not listing.waits(line)], "LDG")


def code(kernel, **defines):
    pytest.importorskip("cuda.core")
    return listing.instructions(sass(compile_cubin(kernel.SOURCE, "sm_90a", defines)))


TMA = [
    k06_tma,
    k07_wide,
    k08_roles,
    k09_registers,
    k10_persistent,
    k11_cluster,
    k12_stored,
    k13_by_size,
    k14_tuned,
]


@pytest.mark.parametrize("kernel", TMA, ids=lambda kernel: kernel.__name__.rpartition(".")[2])
def test_every_rung_multiplies_by_wgmma_what_the_copy_engine_brings(kernel):
    found = listing.counted(code(kernel), ("HGMMA", "UTMALDG", "LDGSTS", "LDL", "STL", "UTMASTG", "STG"))

    assert found["HGMMA"] >= 4
    assert found["UTMALDG"] >= 3
    assert (found["LDGSTS"], found["LDL"], found["STL"]) == (0, 0, 0)
    assert (found["UTMASTG"] > 0, found["STG"] > 0) == ((kernel in TMA[6:]), (kernel in TMA[:6]))


def test_without_roles_everybody_meets_in_the_loop_and_with_roles_nobody_does():
    names = ("HGMMA", "UTMALDG", "BAR.SYNC", "LDGSTS", "SYNCS.PHASECHK", "SYNCS.ARRIVE", "WARPGROUP.DEPBAR")

    def loop(kernel, name):
        return list(listing.counted(listing.loop_with(code(kernel), name), names).values())

    assert loop(k04_wgmma, "HGMMA") == [4, 0, 1, 12, 0, 0, 1]
    assert loop(k07_wide, "HGMMA") == [4, 5, 1, 0, 1, 1, 1]
    assert loop(k08_roles, "HGMMA") == [4, 0, 0, 0, 1, 1, 1]
    assert loop(k08_roles, "UTMALDG") == [0, 5, 0, 0, 1, 1, 0]


def test_one_consumer_with_the_whole_tile_spills():
    found = listing.counted(code(k09_registers, CONSUMERS=1), ("LDL", "STL"))

    assert min(found.values()) > 100


# --- the sheets of W2 -------------------------------------------------------------------------------------

MATTERS = {
    "HGMMA",
    "UTMALDG",
    "LDGSTS",
    "LDGDEPBAR",
    "DEPBAR",
    "BAR",
    "SYNCS",
    "WARPGROUP",
    "BRA",
}  # as on the page


def sheet(kernel, *names):
    """The lines of a sheet: of each loop what matters."""
    lines = code(kernel)
    return [
        line
        for name in names
        for line in listing.loop_with(lines, name)
        if line.stem in MATTERS and ".ANY" not in line.name
    ]


def test_a_sheet_is_short_enough_to_be_marked():
    assert len(sheet(k04_wgmma, "HGMMA")) <= 24
    assert len(sheet(k08_roles, "HGMMA", "UTMALDG")) <= 24
    page = Path("docs/workshops/w2_hopper.py").read_text(encoding="utf-8")
    assert {name for name in MATTERS if f'"{name}"' in page} == MATTERS


def test_the_printed_sheet_with_roles_has_the_lines_of_the_kernel():
    sheets = tomllib.loads(Path("handbook/handouts/w2.toml").read_text(encoding="utf-8"))["sheet"]
    (printed,) = (each for each in sheets if each["title"] == "two loops with roles")
    (text,) = (part["text"] for part in printed["part"] if part["kind"] == "code")
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("the ")]
    named = [(words[0], words[1]) if words[0].startswith("@") else ("", words[0]) for words in lines]

    assert named == [(line.guard, line.name) for line in sheet(k08_roles, "HGMMA", "UTMALDG")]
    assert len(text.splitlines()) <= 24


@pytest.mark.parametrize(
    ("loop", "name", "where", "source"),
    [
        ("HGMMA", "SYNCS.PHASECHK", "0x30000", "wait(&full[s], step / STAGES & 1);"),
        ("HGMMA", "WARPGROUP.ARRIVE", "", "wgmma_fence(d);"),
        ("HGMMA", "HGMMA", "gsb0", "wgmma_commit();"),
        ("HGMMA", "WARPGROUP.DEPBAR", "gsb0, 0x1", "wgmma_wait<1>();"),
        ("HGMMA", "SYNCS.ARRIVE", "0x30020", "arrive(&empty[(step - 1) % STAGES]);"),
        ("UTMALDG", "SYNCS.PHASECHK", "0x30020", "wait(&empty[s], step / STAGES & 1 ^ 1);"),
        ("UTMALDG", "SYNCS.ARRIVE", "0x30000", "arrive_and_expect_bytes(&full[s], STAGE_BYTES);"),
        ("UTMALDG", "UTMALDG", "", "load_tile(a, a_map, &full[s], step * BK, tile.m);"),
    ],
)
def test_what_the_page_says_of_a_line_is_so(loop, name, where, source):
    """One line of the loop, and the line of the source that the table of the page sets beside it."""
    found = [line for line in sheet(k08_roles, loop) if line.name.startswith(name) and where in line.rest]

    assert len(found) == (5 if name == "UTMALDG" else 1)
    assert source in k08_roles.SOURCE.read_text(encoding="utf-8")
    page = Path("docs/workshops/w2_hopper.py").read_text(encoding="utf-8")
    table = page[page.index("on k08's sheet") :]
    assert re.search(rf"`{name.replace('.', '[.]')}", table)
