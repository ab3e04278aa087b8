"""Cases beside the announced sizes: rows that end anywhere, one number alone, the last block, scales of every kind."""

import random
from collections.abc import Callable
from typing import Any

from course_labs.further_cases import Further

ONE, ONES, PLAIN, NOT_A_NUMBER = (
    0x02,
    0x22,
    0x38,
    0x7F,
)  # codes of E2M1: 1, and two of it; of E4M3: 1, and NaN


def size(M: int, K: int) -> str:
    """A size of the lab's."""
    return f"dtype=float16,L=1,M={M},K={K}"


def further(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of the lab, from small ones up."""

    def rows() -> int:
        return draw.randint(2, 4) if slow else draw.randint(8, 20)

    def one_of_a(m: int, k: int) -> Callable[..., None]:
        def change(a: Any, scales_a: Any, b: Any, scales_b: Any) -> None:
            a[...], b[...] = 0, ONES
            a[0, m, k // 2] = ONE << 4 * (k % 2)
            all_plain(scales_a, scales_b)
            b[0, k // 2] = 0x42 if k % 2 else 0x24  # 2 for this number, and 1 for the other of its byte

        return change

    def all_plain(*several: Any) -> None:
        for scales in several:
            coded(scales)[...] = PLAIN

    def last_block(a: Any, scales_a: Any, b: Any, scales_b: Any) -> None:
        a[..., :-8] = 0
        all_plain(scales_a, scales_b)

    def ones(a: Any, scales_a: Any, b: Any, scales_b: Any) -> None:
        all_plain(scales_a, scales_b)

    def small_scales(a: Any, scales_a: Any, b: Any, scales_b: Any) -> None:
        coded(scales_a)[...] &= 7
        all_plain(scales_b)

    def lost(m: int, block: int) -> Callable[..., None]:
        def change(a: Any, scales_a: Any, b: Any, scales_b: Any) -> None:
            coded(scales_a)[0, m, block] = NOT_A_NUMBER

        return change

    K, few = 32 * draw.randint(3, 9), rows()
    m, k = draw.randrange(few), draw.randrange(K)
    told = "all of a 0 but for number {} of row {}"
    return [
        *(Further(size(rows(), 32 * n)) for n in sorted(draw.sample(range(1, 34), 2 if slow else 8))),
        *(
            Further(size(few, K), told.format(k ^ odd, m), change=one_of_a(m, k ^ odd), exact=True)
            for odd in (0, 1)
        ),
        *(
            Further(size(rows(), n), "all of a 0 but for the last block of each row", change=last_block)
            for n in (K, 32 * draw.randint(65, 80))
        ),
        Further(size(rows(), K), "scales of a below 2^-6", change=small_scales),
        Further(size(few, K), f"a scale of row {m} that is NaN", change=lost(m, k // 16)),
        Further(size(rows(), 32 * draw.randint(260, 300))),
        Further(size(17 if slow else draw.randint(1000, 1100), 32), "all scales 1", change=ones),
    ]


def coded(scales: Any) -> Any:
    """The codes of scales, in the same memory."""
    return scales if str(scales.dtype) == "uint8" else scales.view(_bytes(scales))


def _bytes(scales: Any) -> Any:
    import torch  # whoever has such scales has it

    return torch.uint8


def further_alone(door: str, draw: random.Random, slow: bool) -> list[Further]:
    """Cases of the last task: every kind of row, and one number that is not 0."""

    def of(M: int, K: int) -> str:
        return f"dtype=float32,M={M},K={K}"

    def one_of_w(m: int, k: int) -> Callable[..., None]:
        def change(packed: Any, scales: Any, second: Any, x: Any) -> None:
            packed[...] = 0
            packed[m, k // 2] = ONE << 4 * (k % 2)
            coded(scales)[...] = PLAIN
            second[...], x[...] = 4.0, 1.0
            x[k] = 3.0

        return change

    def rows() -> int:
        return draw.randint(2, 4) if slow else draw.randint(8, 20)

    K, few = 16 * draw.choice((3, 5, 7, 9)), rows()
    m, k = draw.randrange(few), draw.randrange(K)
    told = "all weights 0 but for number {} of row {}"
    return [
        *(Further(of(rows(), 16 * n)) for n in sorted(draw.sample(range(1, 68), 2 if slow else 8))),
        *(
            Further(of(few, K), told.format(k ^ odd, m), change=one_of_w(m, k ^ odd), exact=True)
            for odd in (0, 1)
        ),
        Further(of(rows(), 16 * draw.randint(130, 160))),
        Further(of(17 if slow else draw.randint(130, 150), 48)),
    ]
