"""Vector add, kernel 3: the launcher of k03_vectorised.cu. Read that file first.

Contract  problem.py
"""

from pathlib import Path

import numpy as np
import torch

from course_kernels.arguments import check_tensor
from course_kernels.cuda.launch import launch, load_kernel

SOURCE = Path(__file__).with_suffix(".cu")
THREADS = 256  # of one block
ELEMENTS = THREADS * 2 * 4  # of one block: two vectors of four elements a thread


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the sum x + y, by 16-byte loads and stores.

    Args:
        x, y: (N,) float32, contiguous, at addresses divisible by 16 (as torch allocates).
    Returns:
        (N,) float32.
    Raises:
        TypeError: x or y is not float32.
        ValueError: x or y is not a contiguous (N,) on the current GPU, or starts between two 16-byte vectors.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "N", sizes, dtypes=(torch.float32,))
    check_tensor("y", y, "N", sizes, dtypes=(torch.float32,), device=x.device)
    for name, tensor in (("x", x), ("y", y)):
        past = tensor.data_ptr() % 16
        if past:
            raise ValueError(f"{name}: expected an address divisible by 16, got one {past} bytes past it")

    z = torch.empty_like(x)
    N = sizes["N"]
    blocks = -(-N // ELEMENTS)  # rounded up
    launch(load_kernel(SOURCE, "vector_add_vectorised"), blocks, THREADS, x, y, z, np.int64(N))
    return z
