"""Checks shared by the launchers of this folder: describe a call in one form, and refuse what no kernel takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.cuda.alignment import check_address
from course_kernels.cuda.hopper_card import is_hopper
from course_kernels.problem import Workload

DTYPES = (torch.bfloat16, torch.float16)
MOST_ROWS = 32
MAX_SIZE = 2**30  # rows and columns are 32-bit numbers in the kernels
TILE_N, PIECE = 16, 64  # rows and columns that weights are multiples of
HEAD_SIZES = (64, 128)
NOTHING, ADD, GATE, ROPE = range(4)  # what stands behind
MATRICES = {NOTHING: 1, ADD: 1, GATE: 2, ROPE: 3}  # of weights


class Sizes(NamedTuple):
    """M rows of x, N columns of y, K numbers in a row of x."""

    M: int
    N: int
    K: int


class Turned(NamedTuple):
    """Places of the angles of queries and keys, and of the cache that keys and values go to.

    Attributes:
        cos, sin: (M, D/2) float32, of each sequence's own position.
        position: (M,) int64: the place in the cache. Where it is none of 0 to N - 1 nothing is written.
        k_cache, v_cache: (M, KV, N, D), the type of x, contiguous; D = 64 or 128.
    """

    cos: torch.Tensor
    sin: torch.Tensor
    position: torch.Tensor
    k_cache: torch.Tensor
    v_cache: torch.Tensor


class Call(NamedTuple):
    """A call that was looked at.

    Attributes:
        device: its GPU.
        M, N, K: see `Sizes`; ROPE: N of the queries.
        columns: rows of all weights.
        float16: or bfloat16.
        behind: NOTHING, ADD, GATE or ROPE.
        head: numbers of a head, for ROPE.
        g, r, turned: see `looked_at`.
        y: where the answer goes.
    """

    device: int
    M: int
    N: int
    K: int
    columns: int
    float16: bool
    behind: int
    head: int
    g: torch.Tensor | None
    r: torch.Tensor | None
    y: torch.Tensor
    turned: Turned | None

    def arguments(self, x: Any, weights: Sequence[Any], tiles: int, eps: float) -> tuple[Any, ...]:
        """Return what kernels of 16-bit weights take, in their order.

        `x` and weights as one wants them, tensors or maps.
        """
        return (x, *weights, *[weights[0]] * (3 - len(weights)), *self.around(tiles, eps))

    def around(self, tiles: int, eps: float) -> tuple[Any, ...]:
        """Return what every kernel takes behind x and weights, in their order."""
        t = self.turned
        heads, kv_heads, room = (self.N // self.head, *t.k_cache.shape[1:3]) if t else (0, 0, 0)
        return (
            *(self.g, self.r),
            *(t[:3] if t else (None, None, None)),
            self.y,
            *(t[3:] if t else (None, None)),
            *(self.M, self.N, tiles, self.K // PIECE, eps, heads, kv_heads, room),
        )


def operands(
    w: torch.Tensor, rest: tuple[torch.Tensor, ...], *, norm: bool, add: bool, gated: bool
) -> dict[str, Any]:
    """Return a call of `decode_linear` in the words of `start`: weights, behind, g and r.

    Raises:
        ValueError: add and gated at once, more or fewer tensors than those ask for, or an odd number of rows to gate.
    """
    if add and gated:
        raise ValueError("add, gated: expected at most one of them")
    if len(rest) != norm + add:
        raise ValueError(f"rest: expected {norm + add} tensors, got {len(rest)}")
    of_gate = isinstance(w, torch.Tensor) and w.dim() == 2 and gated
    if of_gate and w.shape[0] % 2:
        raise ValueError(f"w: expected (2 N, K), gate and up, got {tuple(w.shape)}")
    return {
        "weights": (w[: len(w) // 2], w[len(w) // 2 :]) if of_gate else (w,),
        "behind": GATE if gated else ADD if add else NOTHING,
        "g": rest[0] if norm else None,
        "r": rest[-1] if add else None,
    }


def looked_at(
    x: torch.Tensor,
    weights: tuple[torch.Tensor, ...],
    behind: int,
    g: torch.Tensor | None,
    r: torch.Tensor | None,
    y: torch.Tensor | None,
    turned: Turned | None,
) -> Call:
    """Refuse what no kernel takes.

    Args:
        x: (M, K) bfloat16 or float16, contiguous, M <= 32, K a multiple of 64.
        weights: of what stands behind, (N, K) each; the same type, contiguous, N a multiple of 16. ROPE: whole heads of
            queries, of keys and of values.
        behind: NOTHING, ADD, GATE or ROPE.
        g: (K,), the same type: x is normalised before it is multiplied, with `eps` added to the mean of squares.
        r: ADD: (M, N), the same type.
        y: (M, N), the same type, where the answer goes, r if you like; without it, a new tensor. ROPE: none.
        turned: ROPE: see `Turned`; the answer is (M, H, D), the queries, turned.
    Raises:
        TypeError, ValueError: see `sizes_of`; other tensors than those behind asks for, or of another shape, type or
            device.
        RuntimeError: a GPU that is no Hopper.
    """
    _check_there(len(weights), behind, r, turned)
    for some in [(w,) for w in weights] if behind == ROPE else [weights]:
        sizes_of(x, some)
    return call_of(x, tuple(len(w) for w in weights), behind, g, r, y, turned)


def rows_of(columns: int, behind: int, turned: Turned | None) -> tuple[int, ...]:
    """Return rows of each matrix of weights, where so many of all of them lie together.

    Whether they fit, `call_of` looks.
    """
    if behind == GATE:
        return (columns // 2,) * 2
    cache = turned.k_cache if turned is not None else None
    if behind == ROPE and isinstance(cache, torch.Tensor) and cache.dim() == 4:
        of_keys = cache.shape[1] * cache.shape[3]
        return columns - 2 * of_keys, of_keys, of_keys
    return (columns,) * MATRICES[behind]


def call_of(
    x: torch.Tensor,
    rows: tuple[int, ...],
    behind: int,
    g: torch.Tensor | None,
    r: torch.Tensor | None,
    y: torch.Tensor | None,
    turned: Turned | None,
) -> Call:
    """Refuse what does not fit weights that fit x.

    Args:
        x: as it was looked at with the weights.
        rows: of each matrix of weights.
        behind, g, r, y, turned: see `looked_at`.
    Raises:
        TypeError, ValueError, RuntimeError: see `looked_at`.
    """
    _check_there(len(rows), behind, r, turned)
    (M, K), N = x.shape, rows[0]
    device = x.get_device()
    if device >= 0 and not is_hopper(x.device):
        raise RuntimeError(f"decode_linear: expected a GPU of compute capability 9.0, got {x.device}")
    for name, tensor, letters in (("g", g, "K"), ("r", r, "MN"), ("y", y, "MN")):
        if tensor is not None:
            bound = {"M": M, "N": N, "K": K}
            check_tensor(name, tensor, letters, bound, dtypes=(x.dtype,), device=x.device)
            check_address(name, tensor)
    head = _head_of(x, rows, turned) if turned else HEAD_SIZES[-1]
    if y is None:
        y = torch.empty((M, N // head, head) if turned else (M, N), dtype=x.dtype, device=x.device)
    return Call(device, M, N, K, sum(rows), x.dtype is torch.float16, behind, head, g, r, y, turned)


def _check_there(matrices: int, behind: int, r: torch.Tensor | None, turned: Turned | None) -> None:
    wanted = MATRICES[behind], behind == ADD, behind == ROPE
    if (matrices, r is not None, turned is not None) != wanted:
        raise ValueError("weights, r, turned: expected those of what stands behind")


def _head_of(x: torch.Tensor, rows: tuple[int, ...], turned: Turned) -> int:
    """Return numbers of a head, where caches, angles and weights fit each other."""
    sizes = {"M": len(x)}
    for name in ("k_cache", "v_cache"):
        letters: Any = ("M", "KV", "N", "D")  # a name of two letters: a string would give it two dimensions
        check_tensor(name, getattr(turned, name), letters, sizes, dtypes=(x.dtype,), device=x.device)
    D, KV = sizes["D"], sizes["KV"]
    if D not in HEAD_SIZES:
        raise ValueError(f"k_cache: expected D = 64 or 128, got D={D}")
    sizes["D/2"] = D // 2
    for name in ("cos", "sin"):
        letters = ("M", "D/2")
        check_tensor(name, getattr(turned, name), letters, sizes, dtypes=(torch.float32,), device=x.device)
    check_tensor("position", turned.position, "M", sizes, dtypes=(torch.int64,), device=x.device)
    for name, own, due in zip(("query", "key", "value"), rows, (None, KV * D, KV * D), strict=True):
        if own <= 0 or own % D or (due and own != due):
            raise ValueError(f"{name}: expected whole heads of D={D}, KV={KV}, got {own} rows")
    return D


def sizes_of(x: torch.Tensor, weights: tuple[torch.Tensor, ...]) -> Sizes:
    """Return the sizes of a call.

    Args:
        x: (M, K) bfloat16 or float16, contiguous, M <= 32, K a multiple of 64.
        weights: (N, K) each, the same type, contiguous, N a multiple of 16.
    Raises:
        TypeError: another type, or two different ones.
        ValueError: shapes that do not fit each other, a size out of range or no such multiple, not contiguous, not on
            the current GPU, or an address between two 16-byte vectors.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "MK", sizes, dtypes=DTYPES)
    for w in weights:
        check_tensor("w", w, "NK", sizes, dtypes=(x.dtype,), device=x.device)
        check_address("w", w)
    check_address("x", x)
    check_size("x", "M", sizes["M"], MOST_ROWS)
    for name, letter, multiple in (("w", "N", TILE_N), ("x", "K", PIECE)):
        check_size(name, letter, sizes[letter], MAX_SIZE)
        if sizes[letter] % multiple:
            raise ValueError(
                f"{name}: expected {letter} a multiple of {multiple}, got {letter}={sizes[letter]}"
            )
    return Sizes(sizes["M"], sizes["N"], sizes["K"])


def tickets_of(tickets: torch.Tensor | None, least: int, device: torch.device) -> torch.Tensor:
    """Return the tickets of a call that takes so many: the caller's, or zeros that a kernel before it fills.

    Raises:
        TypeError, ValueError: they are no int32, or too few.
    """
    if tickets is None:
        return torch.zeros(least, dtype=torch.int32, device=device)
    check_tensor("tickets", tickets, "T", {}, dtypes=(torch.int32,), device=device)
    if tickets.numel() < least:
        raise ValueError(f"tickets: expected (T,) with T >= {least}, got {tuple(tickets.shape)}")
    return tickets


def supports(w: Workload) -> bool:
    """Return whether the kernels of this folder take a workload."""
    return w.dtype in ("bfloat16", "float16") and w.M <= MOST_ROWS and not (w.N % TILE_N or w.K % PIECE)
