"""What must be said before triton and torch are imported: kernels are interpreted, and how many threads there are.

Triton decides when a kernel is defined whether it is interpreted.
"""

import os

os.environ["TRITON_INTERPRET"] = "1"
if "PYTEST_XDIST_WORKER" in os.environ:  # every core has a process of its own already
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# A file stays on one core, so the longest begin first: the last one would keep a core busy while the others rest.
LONGEST = (
    "test_build",
    "test_labs",
    "test_docs_command",
    "test_labs_cuda",
    "test_judge",
    "test_compile_triton",
    "test_kernels_sgemm",
    "test_execute",
    "test_wheelhouse",
    "test_kernels_hard_values",
    "test_kernels_gemm",
)


def pytest_collection_modifyitems(items):
    turn = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: turn.get(item.path.stem, len(LONGEST)))
