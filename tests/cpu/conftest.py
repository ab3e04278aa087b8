"""What must be said before triton and torch are imported: kernels are interpreted, and how many threads there are.

Triton decides when a kernel is defined whether it is interpreted.
"""

import os

os.environ["TRITON_INTERPRET"] = "1"
if "PYTEST_XDIST_WORKER" in os.environ:  # every core has a process of its own already
    os.environ.setdefault("OMP_NUM_THREADS", "1")
