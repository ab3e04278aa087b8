#!/usr/bin/env bash
# A whole number converted to bf16 becomes another one in Triton's interpreter: 3 in int8, `.to(tl.bfloat16)`, is 2.76e-40.
#
# Seen with Triton 3.7.1, torch 2.13.0 (CPU) and NumPy 2.4.6, TRITON_INTERPRET=1; on an H200 with Triton 3.6.0 it is 3.
# NumPy has no bf16, so the interpreter keeps one in 16 bits of a whole number. Its cast from a whole number only changes
# the width, and the number is taken for the bits from then on. By way of fp32, or to fp16, the conversion is right.
# It matters to whoever tries a kernel with weights of four or eight bits without a card: a right one looks wrong. Write
# .to(tl.float32).to(tl.bfloat16).
#
# Exits with 0 while this is so, with 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 triton==3.7.1 numpy==2.4.6
cat >"$folder/casts.py" <<'PYTHON'
import sys

import torch
import triton
import triton.language as tl


@triton.jit
def cast(x_ptr, y_ptr, N: tl.constexpr, WIDE: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    if WIDE:
        x = x.to(tl.float32)
    tl.store(y_ptr + i, x.to(y_ptr.dtype.element_ty))


def converted(kind, wide=False):
    """Return 3 and 100 in int8, converted."""
    x, y = torch.tensor([3, 100], dtype=torch.int8), torch.zeros(2, dtype=kind)
    cast[(1,)](x, y, N=2, WIDE=wide)
    return [float(f"{value:.3g}") for value in y.tolist()]


found = converted(torch.bfloat16), converted(torch.bfloat16, wide=True), converted(torch.float16)
print(f"Triton {triton.__version__}, its interpreter: 3 and 100 in int8")
for what, values in zip(("to bf16", "to bf16 by way of fp32", "to fp16"), found, strict=True):
    print(f"{what}: {values}")
is_so = found == ([2.76e-40, 9.18e-39], [3.0, 100.0], [3.0, 100.0])
print("as described" if is_so else "this has changed")
sys.exit(not is_so)
PYTHON
TRITON_INTERPRET=1 "$folder/venv/bin/python" "$folder/casts.py"
