"""Blackwell's kernels, compiled and not run: what each is about is in its machine code; another card gets one line."""

import json
import re
from pathlib import Path

import pytest
import torch
from compiled import READ, decides, known, seen
from compiled import _meanings as meanings

from course_kernels.blackwell import __main__ as command
from course_kernels.blackwell import card, decode, machine_code, one_block, pair, scaled
from course_kernels.blackwell.machine_code import ARCH, KERNELS
from course_kernels.gemm import listing

INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d\s+)?([A-Z][\w.]*)", re.MULTILINE)
MATTERS = re.compile(r"UTC|LDTM|UTMALDG|UBLKCP|F2FP\.F16\.E2M1|HGMMA|HMMA|OMMA|LDL|STL")


def counts(code):
    """How often each instruction that matters is there, by its whole name; and what spills."""
    names = [name for name in INSTRUCTION.findall(code.text) if MATTERS.match(name)]
    return {name: names.count(name) for name in sorted(set(names))}


ALLOCATED = {
    "UTCATOMSWS.FIND_AND_SET.ALIGN": 2,
    "UTCATOMSWS.AND": 1,
}  # asked for again where there was no room yet
SCALED = {**ALLOCATED, "UTCBAR": 2, "LDTM.x32": 4, "UTMALDG.2D": 2, "UBLKCP.S.G": 2}
DUE = {
    # Four products of 16 columns in a step; A, and four panels of B; the stage is free, the sums are done.
    "one_block": {**ALLOCATED, "UTCHMMA": 4, "UTCBAR": 2, "LDTM.x32": 2, "UTMALDG.2D": 5},
    # Half of B's panels in each block.
    "pair": {
        "UTCATOMSWS.2CTA.FIND_AND_SET.ALIGN": 2, "UTCATOMSWS.AND": 1, "UTCHMMA.2CTA": 4, "UTCBAR.2CTA.MULTICAST": 2,
        "LDTM.x32": 2, "UTMALDG.2D.2CTA": 3,
    },
    # Of A and of B, a block of scales for each product of four bits, one for four products of eight.
    "nvfp4": {**SCALED, "UTCOMMA.4X": 4, "UTCCP.T.S.4x32dp128bit": 8},
    "mxfp8": {**SCALED, "UTCQMMA": 4, "UTCCP.T.S.4x32dp128bit": 2},
    "decode_in_hardware": {"F2FP.F16.E2M1.UNPACK_B": 4},
    "decode_in_software": {},
}  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_a_kernel_is_about_is_in_its_machine_code(kernel):
    source, defines = KERNELS[kernel]
    assert seen(counts, source, ARCH, defines) == DUE[kernel]


def test_on_a_b300_a_product_of_four_bits_has_another_name():
    source, defines = KERNELS["nvfp4"]
    renamed = {name.replace("OMMA.4X", "OMMA.BLOCK16"): n for name, n in DUE["nvfp4"].items()}
    assert seen(counts, source, "sm_103a", defines) == renamed


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_the_page_shows_is_what_the_compiler_makes(kernel):
    source, defines = KERNELS[kernel]
    read = (Path(machine_code.__file__), Path(listing.__file__), *READ)
    made = known(
        ["told", kernel, decides(source), defines, meanings(read)], lambda: machine_code.told(kernel)
    )
    kept = json.loads(machine_code.KEPT.read_text())
    by = kept.pop("compilers")
    assert list(kept) == list(KERNELS)
    assert kept[kernel]["counts"] == made["counts"], "renew it: python -m course_kernels.blackwell --keep"
    if by == machine_code.compilers():  # another version may use other registers
        assert kept[kernel] == made, "renew it: python -m course_kernels.blackwell --keep"


# --- one line for everybody else ------------------------------------------------------------------

NUMBERS = torch.zeros(64, 64, dtype=torch.uint8)
CALLS = {
    "one_block": lambda: one_block.gemm(NUMBERS, NUMBERS),
    "pair": lambda: pair.gemm(NUMBERS, NUMBERS),
    "nvfp4": lambda: scaled.gemm(NUMBERS, NUMBERS, NUMBERS, NUMBERS),
    "mxfp8": lambda: scaled.gemm(NUMBERS, NUMBERS, NUMBERS, NUMBERS, form=scaled.MXFP8),
    "decode_in_hardware": lambda: decode.decode(NUMBERS[0], in_hardware=True),
}
WANTED = "expected a GPU of compute capability 10.0 (B200) or 10.3 (B300), got"
READ_IT = "compiled, it can be read anywhere: python -m course_kernels.blackwell"


def on_a(monkeypatch, capability, name="NVIDIA H200"):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: capability is not None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *device: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *device: name)


@pytest.mark.parametrize("kernel", CALLS)
def test_a_reader_with_another_card_gets_one_line(kernel, monkeypatch):
    here = {None: "no GPU", (9, 0): "9.0 (NVIDIA H200)", (12, 0): "12.0 (NVIDIA GeForce RTX 5090)"}
    for capability, said in here.items():
        on_a(monkeypatch, capability, said[said.find("(") + 1 : -1])
        line = f"blackwell, {kernel}: {WANTED} {said}; {READ_IT} {kernel}"
        with pytest.raises(ValueError, match=f"^{re.escape(line)}$"):
            CALLS[kernel]()


@pytest.mark.parametrize("capability", card.CARDS)
def test_a_reader_with_such_a_card_is_asked_for_the_right_tensors(capability, monkeypatch):
    on_a(monkeypatch, capability)
    monkeypatch.setattr("course_kernels.arguments.interpreted", lambda: False)
    for call in CALLS.values():
        with pytest.raises((TypeError, ValueError), match=r"^(?:a|codes): expected "):
            call()


def test_sizes_that_the_copy_engine_does_not_take_are_named(monkeypatch):
    on_a(monkeypatch, (10, 0))
    monkeypatch.setattr("course_kernels.arguments.interpreted", lambda: True)

    def ones(*shape, dtype=torch.bfloat16):
        return torch.ones(shape, dtype=dtype)

    one_byte = torch.uint8
    scales = scaled.in_blocks(ones(8, 4, dtype=one_byte))
    for call, says in {
        (lambda: pair.gemm(ones(8, 12), ones(12, 8))): "a: expected K a multiple of 8, got K=12",
        (lambda: pair.gemm(ones(8, 8), ones(8, 12))): "b: expected N a multiple of 8, got N=12",
        (
            lambda: scaled.gemm(*(ones(8, 16, dtype=one_byte), scales) * 2)
        ): "a: expected K a multiple of 64, got K=32",
        (
            lambda: scaled.gemm(*(ones(4, 32, dtype=one_byte), scales) * 2)
        ): "b: expected N a multiple of 8, got N=4",
        (
            lambda: scaled.gemm(*(ones(8, 64, dtype=one_byte), scales) * 2)
        ): "a_scales: expected (1, 2, 512), as in_blocks makes them, got (1, 1, 512)",
        (lambda: decode.decode(ones(6, dtype=one_byte))): "codes: expected B a multiple of 4, got B=6",
    }.items():
        with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
            call()


# --- the command that the line names --------------------------------------------------------------


def test_the_command_counts_and_says_that_nothing_was_run(capsys):
    assert command.main(["decode_in_hardware"]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"decode_in_hardware, compiled for sm_100a, not run: \d+ instructions", first)
    assert [line.split(maxsplit=2) for line in rest] == [
        ["4", "F2FP.F16.E2M1.UNPACK_B", "convert two codes of four bits"]
    ]

    with pytest.raises(SystemExit):
        command.main([])


def test_an_unknown_kernel_is_named():
    with pytest.raises(ValueError, match=r"^kernel: expected one of one_block, .*, got 'none'$"):
        machine_code.listing("none")
