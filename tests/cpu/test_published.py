"""Kernels that others have published: cut out of the file that was read, and of no other."""

import hashlib
import re

import pytest

from course_kernels.cuda.compile import compile_cubin
from course_kernels.cuda.published import GOOD_KERNELS, Published

pytestmark = pytest.mark.kept

FILE = '''raise SystemExit("nothing of this file is executed")
source = r"""
#include <torch/extension.h>
__global__ void doubled(float* x, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) x[i] *= 2;
}
__global__ void zeroed(float* x) { x[0] = 0; }
torch::Tensor host(torch::Tensor x) { doubled<<<1, 1>>>(x.data_ptr<float>(), 1); return x; }
"""
'''


def published(text=FILE):
    return Published(
        folder=GOOD_KERNELS,
        file="Doubled/src.py",
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        first="__global__ void doubled",
        behind="torch::Tensor host",
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "Doubled").mkdir()
    (tmp_path / "Doubled/src.py").write_text(FILE)
    monkeypatch.setenv("COURSE_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setenv(GOOD_KERNELS.variable, str(tmp_path))
    return tmp_path


def test_the_kernels_and_nothing_else_are_cut_out_and_compile(folder):
    source = published().source()
    text = source.read_text()

    assert published().at_hand()
    assert text.startswith('extern "C" __global__ void doubled')
    assert text.count('extern "C" __global__') == 2
    assert "torch" not in text
    assert folder / "kept" in source.parents
    cubin = compile_cubin(source, "sm_90a")
    assert b"doubled" in cubin
    assert b"zeroed" in cubin


def test_another_file_is_refused(folder):
    (folder / "Doubled/src.py").write_text(FILE.replace("*= 2", "*= 3"))
    says = f"{folder}/Doubled/src.py: expected the file of 5c94620, SHA-256 {published().sha256[:16]}…, got "
    with pytest.raises(ValueError, match=f"^{re.escape(says)}[0-9a-f]{{16}}…$"):
        published().source()
    assert not (folder / "kept").exists()


def test_a_folder_without_it_is_refused(folder, monkeypatch):
    monkeypatch.setenv(GOOD_KERNELS.variable, str(folder / "nowhere"))
    says = f"COURSE_GOOD_KERNELS: expected Doubled/src.py in it, got no such file at {folder}/nowhere/Doubled/src.py"
    with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
        published().source()


def test_without_a_folder_it_says_what_to_do(monkeypatch):
    monkeypatch.delenv(GOOD_KERNELS.variable, raising=False)

    assert not published().at_hand()
    says = (
        "Doubled/src.py: not at hand: clone github.com/ScalingIntelligence/good-kernels, check out 5c94620, "
        "and let COURSE_GOOD_KERNELS name the folder"
    )
    with pytest.raises(RuntimeError, match=f"^{re.escape(says)}$"):
        published().source()
