#!/usr/bin/env bash
# tl.cumsum of fp16 stands still in Triton's interpreter: of 4,096 ones the last sum is 2048. tl.sum of the same is 4096,
# and so is the last sum that a card gives.
#
# Seen with Triton 3.7.1, torch 2.13.0 (CPU) and NumPy 2.4.6, TRITON_INTERPRET=1; on an H100 with Triton 3.6.0 it is 4096.
# `cumsum` in triton/runtime/interpreter.py is NumPy's, which adds float16 one after the other and rounds each time: past
# 2048 an added 1 is lost. The compiler's scan adds in pairs; bf16 is widened to fp32 first.
# It matters to whoever tries a running sum in fp16 without a card: a right kernel looks wrong. Write .to(tl.float32).
#
# Exits with 0 while this is so, with 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 triton==3.7.1 numpy==2.4.6
cat >"$folder/sums.py" <<'PYTHON'
import sys

import torch
import triton
import triton.language as tl


@triton.jit
def sums(x_ptr, y_ptr, N: tl.constexpr, WIDE: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    if WIDE:
        x = x.to(tl.float32)
    tl.store(y_ptr + i, tl.cumsum(x, 0))
    tl.store(y_ptr + N, tl.sum(x, 0))


def last_and_sum(n, wide=False):
    """Return the last running sum of n ones in fp16, and their sum."""
    x, y = torch.ones(n, dtype=torch.float16), torch.zeros(n + 1, dtype=torch.float16)
    sums[(1,)](x, y, N=n, WIDE=wide)
    return y[n - 1].item(), y[n].item()


found = last_and_sum(1024), last_and_sum(4096), last_and_sum(4096, wide=True)
print(f"Triton {triton.__version__}, its interpreter: the last running sum, and the sum")
for what, (last, whole) in zip(("1,024 ones", "4,096 ones", "4,096 ones, widened"), found, strict=True):
    print(f"{what}: {last:.0f} {whole:.0f}")
is_so = found == ((1024, 1024), (2048, 4096), (4096, 4096))
print("as described" if is_so else "this has changed")
sys.exit(not is_so)
PYTHON
TRITON_INTERPRET=1 "$folder/venv/bin/python" "$folder/sums.py"
