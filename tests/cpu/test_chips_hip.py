"""The multiply in HIP, run on the CPU: 256 threads in waves of 64, and v_mfma as AMD's manual describes it.

Nothing but the matrix instruction and the words of HIP is replaced: who reads what from shared memory, and who stores
which sum, is the kernel's own text.
"""

import ctypes
import re
import shutil
import subprocess

import pytest
import torch

from course_chips import kept
from course_kernels.gemm.problem import PROBLEM
from course_kernels.problem import Workload, worst_error

pytestmark = pytest.mark.kept("src/course_chips/hip")
HIP = kept.ROOT / kept.HERE / "hip"
WORDS = r"""
#include <pthread.h>
#include <cstring>
#include <thread>
#include <vector>
#define __global__
#define __device__
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(n)
struct Place { unsigned x; };
static thread_local Place threadIdx;
static Place blockIdx;
static pthread_barrier_t of_block, of_wave[4];
static void __syncthreads() { pthread_barrier_wait(&of_block); }
struct Bf16 {
  unsigned short bits = 0;
  Bf16() = default;
  explicit Bf16(float x) {
    unsigned u;
    memcpy(&u, &x, 4);
    bits = (u + 0x7fff + (u >> 16 & 1)) >> 16;
  }
  explicit operator float() const {
    unsigned u = bits << 16;
    float x;
    memcpy(&x, &u, 4);
    return x;
  }
};
template <class T, int N>
struct Several {
  T of[N];
  T &operator[](int i) { return of[i]; }
};
// D[i][j] += sum over k of A[i][k] * B[k][j]. Thread l gives row l % 16 of A and column l % 16 of B, HELD numbers from
// k = l / 16 * HELD on; it gets column l % 16 of D, rows l / 16 * 4 to + 3.
template <class Bits, class Sums>
Sums matrix_product(Bits a, Bits b, Sums sums) {
  static Bits all_a[4][64], all_b[4][64];
  constexpr int HELD = sizeof(Bits) / 2;
  const int wave = threadIdx.x / 64, lane = threadIdx.x % 64;
  all_a[wave][lane] = a, all_b[wave][lane] = b;
  pthread_barrier_wait(&of_wave[wave]);
  for (int e = 0; e < 4; e++)
    for (int k = 0; k < 4 * HELD; k++) {
      Bf16 x, y;
      memcpy(&x, &all_a[wave][lane / 16 * 4 + e + k / HELD * 16].of[k % HELD], 2);
      memcpy(&y, &all_b[wave][lane % 16 + k / HELD * 16].of[k % HELD], 2);
      sums[e] += float(x) * float(y);
    }
  pthread_barrier_wait(&of_wave[wave]);
  return sums;
}
#define __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a, b, sums, x, y, z) matrix_product(a, b, sums)
#define __builtin_amdgcn_mfma_f32_16x16x32_bf16(a, b, sums, x, y, z) matrix_product(a, b, sums)
"""
LAUNCH = r"""
extern "C" void NAME_launch(const void *A, const void *B, void *C, int M, int N, int K, int blocks) {
  pthread_barrier_init(&of_block, nullptr, 256);
  for (auto &one : of_wave) pthread_barrier_init(&one, nullptr, 64);
  for (blockIdx.x = 0; blockIdx.x < unsigned(blocks); blockIdx.x++) {
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 256; t++)
      threads.emplace_back([=] {
        threadIdx.x = t, NAME::gemm_hip((const Bf16 *)A, (const Bf16 *)B, (Bf16 *)C, M, N, K);
      });
    for (auto &one : threads) one.join();
  }
}
"""
# By name: the chip, and a fault in the kernel's text.
PLANTED = {
    "gfx942": ("gfx942", None),
    "gfx950": ("gfx950", None),
    "takes_other_neighbours": ("gfx942", ("k + lane / F * HELD", "k + lane % 4 * HELD")),
    "stores_other_rows": ("gfx950", ("lane / F * 4 + e", "e * 4 + lane / F")),
    "forgets_the_last_row": ("gfx942", ("m < M && k0", "m + 1 < M && k0")),
}


def text_of(name):
    """The kernel's text for g++, in a namespace of its own."""
    chip, fault = PLANTED[name]
    kernel, header = (HIP / "multiply.cpp").read_text(), (HIP / "matrix_core.h").read_text()
    if fault:
        assert kernel.count(fault[0]) == 1
        kernel = kernel.replace(*fault)
    text = kernel.replace('#include "matrix_core.h"', header.replace("#pragma once", ""))
    text = text.replace("defined(__gfx950__)", str(int(chip == "gfx950")))
    text = re.sub(
        r"typedef (\w+) (\w+) __attribute__\(\(ext_vector_type\((\w+)\)\)\)",
        r"typedef Several<\1, \3> \2",
        text,
    )
    text = text.replace("__bf16", "Bf16").replace('extern "C" __global__', "static")
    return f"namespace {name} {{\n{text}\n}}\n{LAUNCH.replace('NAME', name)}"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    gxx = shutil.which("g++")
    if gxx is None:
        pytest.skip("no g++")
    folder = tmp_path_factory.mktemp("hip")
    (folder / "k.cpp").write_text(WORDS + "".join(text_of(name) for name in PLANTED))
    command = [gxx, "-std=c++17", "-O1", "-w", "-fPIC", "-shared", "-pthread", "k.cpp", "-o", "k.so"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "k.so"))


def error_of(library, name, M=136, N=24, K=40):
    a, b = PROBLEM.make_inputs(
        Workload.of("bfloat16", M=M, N=N, K=K), torch.Generator().manual_seed(1), "cpu"
    )
    c = torch.full((M, N), float("nan"), dtype=torch.bfloat16)
    blocks = -(-M // 128) * -(-N // 128)
    places = [ctypes.c_void_p(x.data_ptr()) for x in (a, b, c)]
    getattr(library, f"{name}_launch")(*places, M, N, K, blocks)
    return worst_error(c, PROBLEM.reference(a, b))


@pytest.mark.parametrize("name", PLANTED)
def test_the_multiply_in_hip_is_right_and_each_fault_is_seen(library, name):
    allowed = PROBLEM.max_error(Workload.of("bfloat16", M=136, N=24, K=40))
    assert (error_of(library, name) <= allowed) == (PLANTED[name][1] is None)
