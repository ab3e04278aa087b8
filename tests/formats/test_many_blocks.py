"""Ten million random blocks: the encoder, CUDA's headers on the host, and the Triton kernels, bit for bit.

A few minutes; FORMATS_BLOCKS=100000 asks fewer. The blocks are normal numbers of all sizes, numbers on ties and one
float32 beside them, and bits drawn at random, with infinities and NaN among them; and the hard ones of the CI's test.
"""

import ctypes
import os
import subprocess
import sys

import hard_blocks
import numpy as np
import pytest
import torch
import who_rounds_how

from course_kernels.nvfp4 import blocks, dequantise, quantise
from course_kernels.nvfp4.blocks import MXFP4, NVFP4

BLOCKS = int(os.environ.get("FORMATS_BLOCKS", 10**7))
AT_ONCE = 2**16  # blocks of 16
F = np.float32


@pytest.fixture(scope="module")
def cuda(tmp_path_factory):
    """The functions of blocks.cpp."""
    folder = tmp_path_factory.mktemp("cuda")
    wheels = [wheel for wheel in who_rounds_how.PINNED if wheel.startswith("nvidia-")]
    quietly = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*quietly, "--target", str(folder), *wheels], check=True)
    include = folder / "nvidia/cu13/include"
    source = os.path.join(os.path.dirname(__file__), "blocks.cpp")
    flags = ["-O2", "-ffp-contract=off", "-shared", "-fPIC", "-I", str(include), "-I", str(include / "cccl")]
    subprocess.run(["g++", *flags, source, "-o", str(folder / "blocks.so")], check=True)
    return ctypes.CDLL(str(folder / "blocks.so"))


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


def drawn(draw):
    """(AT_ONCE, 16) float32, and a second scale that fits some of them."""
    second = F(np.exp2(draw.uniform(-126, 120)) if draw.random() < 0.5 else np.exp2(draw.uniform(-12, 4)))
    rows = AT_ONCE // 4
    usual = draw.standard_normal((2 * rows, 16), F) * np.exp2(draw.uniform(-14, 14, (2 * rows, 1))).astype(F)
    scales = np.exp2(draw.integers(-9, 9, (rows, 1))) * draw.integers(8, 16, (rows, 1)) / 8
    ties = draw.choice([*hard_blocks.MIDDLES, 6], (rows, 16)) * scales * draw.choice([-1, 1], (rows, 16))
    with np.errstate(over="ignore", under="ignore"):
        known = np.concatenate([usual, ties.astype(F)]) * second
        beside = draw.integers(-1, 2, known.shape)
        known = np.where(beside > 0, np.nextafter(known, F(np.inf)), known)
        known = np.where(beside < 0, np.nextafter(known, F(-np.inf)), known)
    bits = draw.integers(0, 2**32, (rows, 16), np.uint32)
    bits[: rows // 2] &= np.uint32(0xBFFFFFFF)  # half of them without a huge number in each block
    return np.concatenate([known, bits.view(F)]), second


@pytest.mark.parametrize("form", [NVFP4, MXFP4], ids=lambda f: f.name)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_all_round_alike(cuda, form, monkeypatch):
    for module in (quantise, dequantise):
        monkeypatch.setattr(module, "NUMBERS", 2**18)  # the interpreter is quicker with few large programs
    draw = np.random.default_rng(9)
    hard = hard_blocks.blocks().reshape(-1, 16)
    seen = 0
    while seen < BLOCKS:
        x, second = (hard, F(1)) if seen == 0 else drawn(draw)
        x = np.ascontiguousarray(x.reshape(-1, form.block))
        second = second if form.has_second else F(1)
        seen += len(x)
        due = blocks.encode(x, form, second=second)

        codes, scales = np.empty(x.shape, np.uint8), np.empty(len(x), np.uint8)
        how = (form.block, int(form.has_second), ctypes.c_float(second))
        cuda.encode(pointer(x), ctypes.c_long(len(x)), *how, pointer(codes), pointer(scales))
        np.testing.assert_array_equal(codes, due.codes)
        np.testing.assert_array_equal(scales, due.scales[:, 0])

        given = torch.tensor([second]) if form.has_second else None
        packed, in_triton, used = quantise.quantise(torch.from_numpy(x), form, second=given)
        np.testing.assert_array_equal(packed.numpy(), blocks.pack(due.codes))
        np.testing.assert_array_equal(in_triton.numpy(), due.scales)

        back, by_cuda = blocks.decode(due, form), np.empty(x.shape, F)
        cuda.decode(pointer(codes), pointer(scales), ctypes.c_long(len(x)), *how, pointer(by_cuda))
        by_triton = dequantise.dequantise(packed, in_triton, used, form, dtype=torch.float32).numpy()
        for found in (by_cuda, by_triton):
            np.testing.assert_array_equal(np.isnan(found), np.isnan(back))
            there = ~np.isnan(back)
            np.testing.assert_array_equal(found[there].view(np.uint32), back[there].view(np.uint32))
    print(f"{form.name}: {seen} blocks")
