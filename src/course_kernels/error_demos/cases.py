"""Host code around each wrong kernel, as a student would have written it.

A few lines that launch it and look at the answer.

A case is a function of one argument, `mended`: False runs the wrong kernel, True the right one. It prints what
happened, the same words on every run. Every case ends in a process of its own (`run.py`): a GPU error is kept
by the process that made it until that process ends.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from course_kernels.cuda.launch import launch
from course_kernels.error_demos.lines import load_with_lines

HERE = Path(__file__).parent
BEGUN = "COURSE_MISHAP_BEGUN"  # environment: the file whose appearance starts the clock of the time limit


def begun() -> None:
    """Mark the end of loading: a time limit counts from here."""
    if os.environ.get(BEGUN):
        Path(os.environ[BEGUN]).touch()


def kernel_of(name: str, mended: bool = False) -> Any:
    """Return the kernel of `name`.cu: the wrong one, or the mended one beside it."""
    return load_with_lines(HERE / f"{name}.cu", f"{name}_mended" if mended else name)


def step(what: str, call: Callable[[], Any], whole: bool = False) -> None:
    """Do one thing and print how it went: "fine", or the first line of the error (all lines with `whole`)."""
    try:
        call()
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        message = "\n    ".join(lines if whole else lines[:1])
        print(f"{what}: {type(error).__name__}: {message}", flush=True)
    else:
        print(f"{what}: fine", flush=True)


def changed(x: torch.Tensor, value: float) -> int:
    """Return how many numbers of x are not `value`; counted on the CPU, where nothing else can go wrong."""
    return int((x.cpu() != value).sum())


# region out_of_bounds
def out_of_bounds(mended: bool) -> None:
    """1025 numbers, 5 blocks of 256: 255 threads too many."""
    x = torch.empty(1025, device="cuda")
    neighbour = torch.ones(1024).cuda()
    step("launch", lambda: launch(kernel_of("out_of_bounds", mended), 5, 256, x, np.int32(1025)))
    step("synchronize", torch.cuda.synchronize)
    print("numbers of x that are not 7:", changed(x, 7))
    print("numbers of its neighbour that changed:", changed(neighbour, 1))


# endregion


# region illegal_address
def illegal_address(mended: bool) -> None:
    """1000 numbers are fetched by their index; index 500 was never set."""
    x, y = torch.ones(1000).cuda(), torch.zeros(1000).cuda()
    index = torch.arange(1000)
    index[500] = 10**12
    index = index.cuda()
    kernel = kernel_of("illegal_address", mended)
    step("launch", lambda: launch(kernel, 4, 256, x, index, y, np.int32(1000)))
    step("synchronize", torch.cuda.synchronize, whole=True)
    step("x.cpu(), which has nothing to do with it", x.cpu)
    step("a fresh torch.zeros(1)", lambda: torch.zeros(1, device="cuda"))
    if mended:
        print("not a number in y, first at:", y.cpu().isnan().nonzero()[0].item())


# endregion


# region too_many_threads
def too_many_threads(mended: bool) -> None:
    """4096 numbers, in blocks of 2048 threads; a block has room for 1024."""
    threads = 1024 if mended else 2048
    x, y = torch.ones(4096).cuda(), torch.full((4096,), torch.nan).cuda()
    kernel = load_with_lines(HERE / "wrong_grid.cu", "twice")
    step("launch", lambda: launch(kernel, 4096 // threads, threads, x, y, np.int32(4096)), whole=True)
    step("synchronize", torch.cuda.synchronize)
    print("numbers written:", int((~y.cpu().isnan()).sum()), "of 4096")


# endregion


# region too_few_blocks
def too_few_blocks(mended: bool) -> None:
    """1000 numbers in blocks of 256: rounded down that is 3 blocks."""
    blocks = -(-1000 // 256) if mended else 1000 // 256
    kernel = load_with_lines(HERE / "wrong_grid.cu", "twice")
    x = torch.ones(1000).cuda()

    yesterday = torch.full((1000,), 2.0).cuda()  # a right answer, from an earlier call
    del yesterday
    y = torch.empty(1000, device="cuda")  # the same memory, handed out again
    launch(kernel, blocks, 256, x, y, np.int32(1000))
    print("fresh output:    wrong numbers:", changed(y, 2))

    y = torch.full((1000,), torch.nan).cuda()  # poisoned
    launch(kernel, blocks, 256, x, y, np.int32(1000))
    holes = y.cpu().isnan().nonzero().flatten()
    where = f", the first at {holes[0].item()}" if len(holes) else ""
    print(f"poisoned output: wrong numbers: {changed(y, 2)}{where}")


# endregion


# region lost_updates
def lost_updates(mended: bool) -> None:
    """8192 blocks of 256 threads count to 2097152 together, five times over."""
    kernel = kernel_of("lost_updates", mended)
    counts = []
    for _ in range(5):
        total = torch.zeros(1, dtype=torch.int32).cuda()
        launch(kernel, 8192, 256, total)
        counts.append(total.item())
    print("five counts:", *counts)
    print("right:", counts.count(8192 * 256), "of 5")


# endregion


# region missing_barrier
def missing_barrier(mended: bool) -> None:
    """528 blocks each turn 1024 numbers round."""
    x = torch.arange(528 * 1024, dtype=torch.float32)
    truth = x.view(528, 1024).flip(1).flatten()
    there, y = x.cuda(), torch.full((528 * 1024,), torch.nan).cuda()
    launch(kernel_of("missing_barrier", mended), 528, 1024, there, y)
    wrong = int((y.cpu() != truth).sum())
    print("wrong numbers:", wrong if wrong == 0 else "some", "of", truth.numel())


# endregion


# region split_barrier
def split_barrier(mended: bool) -> None:
    """One block of 256 threads turns two rows of 100 numbers round."""
    x = torch.arange(200, dtype=torch.float32)
    truth = x.view(2, 100).flip(1).flatten()
    there, y = x.cuda(), torch.full((200,), torch.nan).cuda()
    kernel = kernel_of("split_barrier", mended)
    step("launch", lambda: launch(kernel, 1, 256, there, y, np.int32(100)))
    begun()
    step("synchronize", torch.cuda.synchronize)
    print("wrong numbers:", int((y.cpu() != truth).sum()), "of 200")


# endregion


# region wrong_mask
def wrong_mask(mended: bool) -> None:
    """One warp turns 32 numbers round."""
    x = torch.arange(32, dtype=torch.float32)
    there, y = x.cuda(), torch.full((32,), torch.nan).cuda()
    launch(kernel_of("wrong_mask", mended), 1, 32, there, y)
    print("wrong numbers:", int((y.cpu() != x.flip(0)).sum()), "of 32")


# endregion


# region uninitialised
def uninitialised(mended: bool) -> None:
    """100 numbers are added to an output that was only asked for, never set to 0."""
    kernel = kernel_of("uninitialised", mended)
    x = torch.ones(100).cuda()
    for call in ("first", "second"):
        y = torch.empty(100, device="cuda")
        launch(kernel, 1, 128, x, y, np.int32(100))
        print(f"{call} call: wrong numbers:", changed(y, 1), "of 100")
        del y  # its memory goes back to PyTorch, and comes out again at the next call


# endregion


# region not_a_number
def not_a_number(mended: bool) -> None:
    """Softmax of 8 rows of 4 numbers; row 5 holds one that is large."""
    x = torch.tensor([1.0, 2.0, 3.0, 4.0]).repeat(8, 1)
    x[5, 2] = 100.0
    there, y = x.cuda(), torch.empty(8, 4, device="cuda")
    launch(kernel_of("not_a_number", mended), 1, 32, there, y, np.int32(8), np.int32(4))
    y = y.cpu()
    print("row 5:", *(f"{value:g}" for value in y[5].tolist()))
    print(f"mean of all: {y.mean():g}")
    found = y.isnan().nonzero()
    print("first not a number: [row, column] =", found[0].tolist() if len(found) else "there is none")
    print("wrong by more than 1e-6:", int((~((y - x.softmax(1)).abs() <= 1e-6)).sum()))
    if not mended:
        kernel = load_with_lines(HERE / "not_a_number.cu", "not_a_number_printing")
        launch(kernel, 1, 32, there, torch.empty_like(there), np.int32(8), np.int32(4))
        torch.cuda.synchronize()


# endregion


# region rules_of_nan
def rules_of_nan(mended: bool) -> None:
    """Six sums that a GPU does without complaint."""
    y = torch.zeros(6).cuda()
    launch(load_with_lines(HERE / "not_a_number.cu", "rules_of_nan"), 1, 1, np.float32(0), y)
    what = ("0 / 0", "inf - inf", "0 * inf", "nan == nan", "nan > 0 ? nan : 0", "fmaxf(nan, 0)")
    for name, value in zip(what, y.tolist(), strict=True):
        print(f"{name:18} = {value:g}")


# endregion


# region endless_loop
def endless_loop(mended: bool) -> None:
    """1000 numbers, one block; the stride is 256 // 1000."""
    x, y = torch.ones(1000).cuda(), torch.zeros(1000).cuda()
    stride = () if mended else (np.int32(256 // 1000),)
    kernel = kernel_of("endless_loop", mended)
    step("launch", lambda: launch(kernel, 1, 256, x, y, np.int32(1000), *stride))
    begun()
    step("synchronize", torch.cuda.synchronize)
    print("numbers copied:", int(y.cpu().sum()), "of 1000")


# endregion


# region device_printf
def device_printf(mended: bool) -> None:
    """1000 numbers, 4 blocks of 256; the threads around the end speak."""
    x = torch.arange(1000, dtype=torch.float32).cuda()
    launch(kernel_of("device_printf"), 4, 256, x, np.int32(1000))
    print("Python is already here", flush=True)
    torch.cuda.synchronize()


# endregion


# region device_assert
def device_assert(mended: bool) -> None:
    """Run the fetch of `illegal_address`, with an assert before it."""
    x, y = torch.ones(1000).cuda(), torch.zeros(1000).cuda()
    index = torch.arange(1000)
    if not mended:
        index[500] = 10**12
    index = index.cuda()
    step("launch", lambda: launch(kernel_of("device_assert"), 4, 256, x, index, y, np.int32(1000)))
    step("synchronize", torch.cuda.synchronize)


# endregion


CASES: dict[str, Callable[[bool], None]] = {
    case.__name__: case
    for case in (
        out_of_bounds,
        illegal_address,
        too_many_threads,
        too_few_blocks,
        lost_updates,
        missing_barrier,
        split_barrier,
        wrong_mask,
        uninitialised,
        not_a_number,
        rules_of_nan,
        endless_loop,
        device_printf,
        device_assert,
    )
}
