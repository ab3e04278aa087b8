#!/usr/bin/env bash
# In Triton's interpreter what a loop counts by is an int of Python: `k.to(tl.int64)` has no attribute 'to'.
#
# Seen with Triton 3.7.1, torch 2.13.0 (CPU) and NumPy 2.4.6. The same kernel compiles for a Hopper, where k is a number
# with a type, as `tl.program_id` is. The interpreter wraps what is assigned and what is passed in; the target of a `for`
# stays what Python's `range` yields. So a product of it with a size has no limit either: 32 bits do not wrap around.
# It matters to whoever tries a persistent kernel without a card: a program takes every tile from its own number on, and
# widens the number before it is multiplied, as it must. Write tl.cast(k, tl.int64), which both take.
#
# Exits with 0 while this is so, with 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 triton==3.7.1 numpy==2.4.6
cat >"$folder/loops.py" <<'PYTHON'
import os
import sys

import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def by_method(y_ptr, N):
    for k in range(tl.program_id(0), N, tl.num_programs(0)):
        place = k.to(tl.int64)
        tl.store(y_ptr + place, k)


@triton.jit
def by_function(y_ptr, N):
    for k in range(tl.program_id(0), N, tl.num_programs(0)):
        place = tl.cast(k, tl.int64)
        tl.store(y_ptr + place, k)


def outcome(kernel):
    if os.environ.get("TRITON_INTERPRET") == "1":
        y = torch.full((5,), -1, dtype=torch.int32)
        try:
            kernel[(2,)](y, 5)
        except Exception as error:
            return str(error.__cause__ or error)
        return y.tolist()
    source = ASTSource(fn=kernel, signature={"y_ptr": "*i32", "N": "i32"})
    triton.compile(source, target=GPUTarget("cuda", 90, 32))
    return "compiles"


where = "its interpreter" if os.environ.get("TRITON_INTERPRET") == "1" else "its compiler, for sm_90"
found = outcome(by_method), outcome(by_function)
print(f"Triton {triton.__version__}, {where}: k.to(tl.int64): {found[0]}; tl.cast(k, tl.int64): {found[1]}")
due = {
    "its interpreter": ("'int' object has no attribute 'to'", [0, 1, 2, 3, 4]),
    "its compiler, for sm_90": ("compiles", "compiles"),
}
print("as described" if found == due[where] else "this has changed")
sys.exit(found != due[where])
PYTHON
TRITON_INTERPRET=1 "$folder/venv/bin/python" "$folder/loops.py"
TRITON_CACHE_DIR="$folder/cache" "$folder/venv/bin/python" "$folder/loops.py"
