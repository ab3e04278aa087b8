"""Two files that say the same in two languages, line beside line: found by the words that stand in both.

Lines are paired in order, so that the pairs have as many words in common as they can, once the words of the one
language are called what the other calls them. What has no partner stands alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

# What CUDA C++ says, as WGSL calls it.
CALLED = {
    "threadIdx": "thread", "blockIdx": "group", "__shared__": "workgroup", "__syncthreads": "workgroupBarrier",
    "float": "f32", "float4": "vec4", "uint4": "vec4", "constexpr": "const", "__shfl_xor_sync": "subgroupShuffleXor",
    "fmaf": "fma", "expf": "exp", "fmaxf": "max", "__global__": "compute", "void": "fn", "n_bytes": "N", "uint": "u32",
}  # fmt: skip
_NOISE = frozenset(
    {"int", "u32", "let", "var", "const", "auto", "long", "static_cast", "unsigned", "pragma", "unroll", "0u"}
)
_WORD = re.compile(r"//.*|[A-Za-z_]\w*|\d[\w.]*|[-+*/%<>=!&|^]+")
_LEAST = 0.34  # of their words that two lines share, to be partners

Pair = tuple[int | None, int | None]


def paired(left: Sequence[str], right: Sequence[str]) -> list[Pair]:
    """Return the numbers of lines that stand beside each other, from 0, in order; None where a line stands alone.

    >>> paired(["a = b + 1;", "", "return a;"], ["let a = b + 1;", "return a;"])
    [(0, 0), (1, None), (2, 1)]
    """
    ours, theirs = [_words(line) for line in left], [_words(line) for line in right]
    best = [[0.0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in reversed(range(len(left))):
        for j in reversed(range(len(right))):
            both = best[i + 1][j + 1] + _alike(ours[i], theirs[j]) - _LEAST
            best[i][j] = max(best[i + 1][j], best[i][j + 1], both)
    return list(_walk(best, len(left), len(right)))


def _walk(best: list[list[float]], rows: int, columns: int) -> Iterator[Pair]:
    i = j = 0
    while i < rows or j < columns:
        if i < rows and best[i][j] == best[i + 1][j]:
            yield i, None
            i += 1
        elif j < columns and best[i][j] == best[i][j + 1]:
            yield None, j
            j += 1
        else:
            yield i, j
            i, j = i + 1, j + 1


def parts(pairs: Sequence[Pair], left: Sequence[str], right: Sequence[str]) -> Iterator[list[Pair]]:
    """Yield the pairs in pieces, cut where a line that has nothing in it stands; such lines are left out."""
    piece: list[Pair] = []
    for pair in pairs:
        texts = [side[n] for side, n in zip((left, right), pair, strict=True) if n is not None]
        if all(not text.strip() for text in texts):
            if any(one is not None for one, _ in piece) and any(one is not None for _, one in piece):
                yield piece
                piece = []
            continue
        piece.append(pair)
    if piece:
        yield piece


def body(text: str) -> tuple[int, list[str]]:
    """Return what follows the head of a kernel: where it begins, and its lines."""
    lines = text.rstrip("\n").split("\n")
    first = next((n for n, line in enumerate(lines) if not line.startswith("//")), len(lines))
    while first < len(lines) and not lines[first].strip():
        first += 1
    return first, lines[first:]


def _words(line: str) -> Counter[str]:
    found: list[str] = [line.strip()] if set(line.strip()) <= set("{}") else []
    for word in _WORD.findall(line):
        found += re.findall(r"\w+", word) if word.startswith("//") else [CALLED.get(word, word)]
    return Counter(word for word in found if word not in _NOISE)


def _alike(one: Counter[str], other: Counter[str]) -> float:
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 0.0
