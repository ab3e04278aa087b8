"""The multiply for Blackwell in CuTe-DSL, read without a card: the same instructions and descriptors as in ours."""

import re
import sys

import pytest

from course_kernels.blackwell import in_cute_dsl, machine_code
from course_kernels.blackwell.in_cute_dsl import compiled
from course_kernels.cuda.disassemble import sass
from course_kernels.gemm.listing import counted, instructions
from course_kernels.rungs import INSTALL, NotInstalled

NAMES = ("UTCHMMA", "UTCBAR", "UTCATOMSWS", "UTMALDG")
ABSENT = ("HGMMA", "HMMA", "LDGSTS", "LDG", "LDL", "STL", "UTCOMMA", "UTCQMMA")


@pytest.mark.parametrize("element", ["bfloat16", "float16"])
@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a"])
def test_a_tile_is_multiplied_as_by_our_own_kernel(element, arch):
    theirs = instructions(sass(compiled(element, arch).cubin))
    ours = machine_code.listing("one_block", arch)
    assert counted(theirs, NAMES) == counted(ours, NAMES)
    assert counted(ours, NAMES)["UTCHMMA"] == in_cute_dsl.BK // 16
    found = counted(theirs, (*ABSENT, "LDTM"))
    assert found.pop("LDTM") > 0
    assert {name: count for name, count in found.items() if count} == {}


def test_its_descriptors_are_those_that_our_functions_work_out():
    """What descriptors.cuh says bit by bit (tests/cpu/test_blackwell.py): A along k, B by rows of k."""
    text = compiled("bfloat16").ptx
    constant, swizzle = 1 << 46, 2 << 61
    rows_of_128_bytes = 1024 >> 4 << 32
    next_panel = in_cute_dsl.BK * 128 >> 4 << 16
    assert f"{16 >> 4 << 16 | rows_of_128_bytes | constant | swizzle};" in text
    assert f"{next_panel | rows_of_128_bytes | constant | swizzle};" in text
    how = 1 << 4 | 1 << 7 | 1 << 10 | 1 << 16 | in_cute_dsl.BN // 8 << 17 | in_cute_dsl.BM // 16 << 24
    assert re.search(rf"\b{how}\b", text)


def test_another_card_is_refused():
    with pytest.raises(ValueError, match=r"^arch: expected sm_100a or sm_103a, for tcgen05, got sm_90a$"):
        compiled("bfloat16", "sm_90a")


def test_a_language_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cutlass", None)
    in_cute_dsl._program.cache_clear()
    compiled.cache_clear()
    with pytest.raises(NotInstalled, match=rf"^CuTe-DSL: not installed here: {re.escape(INSTALL)}$"):
        compiled("float16")
