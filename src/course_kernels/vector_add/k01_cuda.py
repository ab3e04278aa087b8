"""Vector add in CUDA C++: the launcher of k01_cuda.cu.

Contract  problem.py
"""

from pathlib import Path

import numpy as np
import torch

from course_kernels.arguments import check_tensor
from course_kernels.cuda.launch import launch, load_kernel

SOURCE = Path(__file__).with_suffix(".cu")
THREADS = 256  # of one block


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the sum x + y: two (N,) float32 vectors on the GPU in, one out; anything else is refused."""
    sizes: dict[str, int] = {}
    check_tensor("x", x, "N", sizes, dtypes=(torch.float32,))
    check_tensor("y", y, "N", sizes, dtypes=(torch.float32,), device=x.device)

    z = torch.empty_like(x)
    N = sizes["N"]
    blocks = -(-N // THREADS)  # rounded up
    launch(load_kernel(SOURCE, "vector_add"), blocks, THREADS, x, y, z, np.int64(N))
    return z
