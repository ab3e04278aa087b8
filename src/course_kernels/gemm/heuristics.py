"""cuBLASLt's algorithms for one product: the ways that its heuristics name first, each to be timed by itself.

`library.cublaslt` takes the first of them, as torch does. The first is a guess; who races against the library should
race against the best of its guesses.

Source  cuBLASLt, cublasLtMatmulAlgoGetHeuristic and cublasLtMatmul
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

WORKSPACE_BYTES = 32 * 2**20  # what torch gives it on Hopper

# cudaDataType, cublasComputeType_t, cublasOperation_t, and the attributes that are set.
_TYPES = {torch.bfloat16: 14, torch.float16: 2}
_FLOAT32, _COMPUTE_32F = 0, 68
_TRANSPOSED = 1
_DESC_TRANSPOSE_FIRST, _PREFERENCE_WORKSPACE = 3, 1


class _Found(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = (
        ("algorithm", ctypes.c_uint64 * 8),
        ("workspace_bytes", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


def ways(a: torch.Tensor, b: torch.Tensor, most: int = 8) -> list[Callable[[], torch.Tensor]]:
    """Return the ways of cuBLASLt to a @ b, the likeliest first.

    Args:
        a: (M, K), bfloat16 or float16, contiguous, on the current GPU.
        b: (K, N), the same type, contiguous or the transpose of a contiguous (N, K).
        most: how many are asked for.
    Returns:
        Functions of no argument that multiply these two tensors on the current stream: (M, N), the same type.
    Raises:
        RuntimeError: torch has not loaded cuBLASLt, or it refused.
    """
    (M, K), N = a.shape, b.shape[1]
    transposed = not b.is_contiguous()
    lt, kind = _library(), _TYPES[a.dtype]
    # It counts down columns, and to it a row-major matrix is the transposed one: C.T = B.T @ A.T.
    what = _made(lt.cublasLtMatmulDescCreate, _COMPUTE_32F, _FLOAT32)
    flag = ctypes.c_int(int(transposed))
    _ask(
        lt.cublasLtMatmulDescSetAttribute,
        what,
        _DESC_TRANSPOSE_FIRST,
        ctypes.byref(flag),
        ctypes.sizeof(flag),
    )
    first = _layout(lt, kind, K, N) if transposed else _layout(lt, kind, N, K)
    second, result = _layout(lt, kind, K, M), _layout(lt, kind, N, M)
    wish, bytes_ = _made(lt.cublasLtMatmulPreferenceCreate), ctypes.c_uint64(WORKSPACE_BYTES)
    _ask(lt.cublasLtMatmulPreferenceSetAttribute, wish, _PREFERENCE_WORKSPACE, ctypes.byref(bytes_), 8)
    found, count = (_Found * most)(), ctypes.c_int()
    _ask(
        lt.cublasLtMatmulAlgoGetHeuristic,
        _handle(),
        what,
        first,
        second,
        result,
        result,
        wish,
        most,
        found,
        ctypes.byref(count),
    )
    workspace = torch.empty(WORKSPACE_BYTES, dtype=torch.uint8, device=a.device)
    one, nothing = ctypes.c_float(1.0), ctypes.c_float(0.0)

    def way(of: _Found) -> Callable[[], torch.Tensor]:
        def multiply() -> torch.Tensor:
            c = torch.empty((M, N), dtype=a.dtype, device=a.device)
            place = ctypes.c_void_p(c.data_ptr())
            _ask(
                lt.cublasLtMatmul,
                _handle(),
                what,
                ctypes.byref(one),
                ctypes.c_void_p(b.data_ptr()),
                first,
                ctypes.c_void_p(a.data_ptr()),
                second,
                ctypes.byref(nothing),
                place,
                result,
                place,
                result,
                ctypes.byref(of),
                ctypes.c_void_p(workspace.data_ptr()),
                ctypes.c_size_t(WORKSPACE_BYTES),
                ctypes.c_void_p(torch.cuda.current_stream().cuda_stream),
            )
            return c

        return multiply

    return [way(of) for of in found[: count.value] if of.state == 0]


@functools.cache
def _library() -> Any:
    """Return the libcublasLt that torch has loaded: the one it calls itself."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    found = {line.split(maxsplit=5)[5] for line in maps.splitlines() if "libcublasLt.so" in line}
    if not found:
        raise RuntimeError("cuBLASLt: torch has not loaded libcublasLt; it comes with a torch for CUDA")
    return ctypes.CDLL(found.pop())


@functools.cache
def _handle() -> ctypes.c_void_p:
    return _made(_library().cublasLtCreate)


def _layout(lt: Any, kind: int, rows: int, columns: int) -> ctypes.c_void_p:
    """Return a matrix whose columns lie one behind the other."""
    return _made(
        lt.cublasLtMatrixLayoutCreate,
        kind,
        ctypes.c_uint64(rows),
        ctypes.c_uint64(columns),
        ctypes.c_int64(rows),
    )


def _made(create: Any, *args: Any) -> ctypes.c_void_p:
    made = ctypes.c_void_p()
    _ask(create, ctypes.byref(made), *args)
    return made


def _ask(function: Any, *args: Any) -> None:
    status = function(*args)
    if status:
        raise RuntimeError(f"{function.__name__}: cuBLASLt refused, status {status}")
