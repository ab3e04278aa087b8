"""Matrix multiply in CUTLASS C++: the launcher of in_cutlass.cu. Read that file.

Contract  problem.py

How it was tuned: eight configurations, all by the same two builders, timed at 4096 and 8192.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from course_kernels.gemm import by_tma
from course_kernels.gemm.by_tma import supports as supports
from course_kernels.gemm.launch_cache import sizes_of
from course_kernels.nvcc import Library, compile_library
from course_kernels.problem import Workload
from course_kernels.rungs import INSTALL, Compiled, NotInstalled

SOURCE = Path(__file__).with_suffix(".cu")
ARCH = "sm_90a"


@dataclass(frozen=True)
class Config:
    """Constants of the source, and the order of the tiles.

    Attributes:
        BM, BN, BK: a tile of A is BM x BK, a tile of B BK x BN.
        CLUSTER_M, CLUSTER_N: blocks of a cluster, one below the other and side by side.
        PINGPONG: two consumers have a tile each; else half a tile each.
        swizzle: clusters that are walked together at most, across the order of the tiles; no constant of the source.
    """

    BM: int
    BN: int
    BK: int = 64  # rows of 128 bytes, the widest swizzle
    CLUSTER_M: int = 2
    CLUSTER_N: int = 1
    PINGPONG: bool = False
    swizzle: int = 8


# Tiles as large as the sums of two consumers allow: 128 x 256, or, in turns, half of it each.
CONFIGS = {
    "wide": Config(128, 256),
    "wide in rows": Config(128, 256, swizzle=1),
    "wide, pair across": Config(128, 256, CLUSTER_M=1, CLUSTER_N=2),
    "wide, alone": Config(128, 256, CLUSTER_M=1),
    "tall": Config(256, 128),
    "square in turns": Config(128, 128, PINGPONG=True),
    "low in turns": Config(64, 256, PINGPONG=True),
    "small in turns": Config(64, 128, PINGPONG=True),
}
BEST = "wide"


def gemm(a: torch.Tensor, b: torch.Tensor, *, tile: str | None = None) -> torch.Tensor:
    """Return the product a @ b on Hopper. The first call of a type and a tile compiles, with nvcc.

    Args:
        a: (M, K) bfloat16 or float16, contiguous, K a multiple of 8, M and K <= 2**30.
        b: (K, N), the same type, contiguous, N a multiple of 8, N <= 2**30.
        tile: one of CONFIGS; without it, BEST.
    Returns:
        (M, N), the same type; sums over K in float32, rounded once.
    Raises:
        TypeError, ValueError: see `sizes_of`; or a GPU that is no Hopper, or a tile of another name.
        NotInstalled: there are no headers of CUTLASS here.
        CudaMissingError: there is no nvcc, or no host compiler.
        RuntimeError: CUTLASS refused; the message has its words.
    """
    M, N, K = sizes_of(a, b)
    device = a.get_device()
    multiprocessors = by_tma.multiprocessors(device)
    config = config_of(tile)
    library = _loaded(config, a.dtype is torch.float16)
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    stream = torch.cuda.current_stream(device).cuda_stream
    status = library.multiply(
        a.data_ptr(), b.data_ptr(), c.data_ptr(), M, N, K, device, multiprocessors, config.swizzle, stream
    )
    if status:
        raise RuntimeError(f"CUTLASS: {library.words_of(status).decode()}, for M={M}, N={N}, K={K}")
    return c


def compiled(w: Workload, arch: str = ARCH, *, tile: str | None = None) -> Compiled:
    """Return what nvcc made of the kernel that `gemm` launches for a workload; no GPU is asked for.

    Raises:
        ValueError: a workload that `gemm` refuses, or another architecture than sm_90a.
        NotInstalled, CudaMissingError: see `gemm`.
    """
    if arch != ARCH:
        raise ValueError(f"arch: expected {ARCH}, whose instructions this kernel is made of, got {arch}")
    if not supports(w):
        raise ValueError(f"w: expected 16-bit types, K and N multiples of 8, got {w.label}")
    config, float16 = config_of(tile), w.torch_dtype is torch.float16
    made = built(config, float16)
    return Compiled(made.cubin, ptx=made.ptx, shared_bytes=_loaded(config, float16).shared_bytes())


def config_of(tile: str | None) -> Config:
    """Return the configuration of that name.

    Raises:
        ValueError: there is none.
    """
    name = BEST if tile is None else tile
    if name not in CONFIGS:
        raise ValueError(f"tile: expected one of {', '.join(map(repr, CONFIGS))}, got {tile!r}")
    return CONFIGS[name]


@functools.cache
def built(config: Config, float16: bool = False) -> Library:
    """Return the library of a configuration, compiled if it is not kept: nothing is loaded.

    Raises:
        NotInstalled, CudaMissingError: see `gemm`.
    """
    headers = cutlass_headers()
    macros = {name: int(value) for name, value in asdict(config).items() if name != "swizzle"}
    macros["FLOAT16"] = int(float16)
    # CUTLASS's asserts are function calls. Where one stands between two wgmma, ptxas waits after each of them.
    macros["NDEBUG"] = 1
    return compile_library(SOURCE, ARCH, macros, (headers,), also=(headers / "cutlass/version.h",))


@functools.cache
def cutlass_headers() -> Path:
    """Return the folder of CUTLASS's headers, from the wheel nvidia-cutlass; its Python is not imported.

    Raises:
        NotInstalled: they are not here.
    """
    found = importlib.util.find_spec("cutlass_library")
    headers = Path(found.origin).parent / "source/include" if found and found.origin else None
    if headers is None or not (headers / "cutlass/version.h").is_file():
        raise NotInstalled(
            f"CUTLASS: its headers are not installed here: {INSTALL}, which brings the wheel nvidia-cutlass"
        )
    return headers


@functools.cache
def _loaded(config: Config, float16: bool) -> ctypes.CDLL:
    """Return the library with its functions' types."""
    library = ctypes.CDLL(str(built(config, float16).library))
    address, number = ctypes.c_void_p, ctypes.c_int
    library.multiply.argtypes = [address] * 3 + [number] * 6 + [address]
    library.words_of.restype = ctypes.c_char_p
    return library
