#!/usr/bin/env bash
# torch.softmax in float32 on a CPU loses digits as its rows grow longer; dividing exp(x - max) by its sum, with the same
# library and the same type, does not.
#
# Seen with torch 2.13.0 (CPU) and NumPy 2.4.6, four rows of normal numbers, largest relative error against float64:
# at 4,096 both ways are near 4e-7, and at 1,048,576 softmax is past 1.5e-6 where the two steps stay below 9e-7. The
# row that softmax gives then sums to 1 only within 1e-6, the other one within 1e-7 or so.
# It matters to whoever takes torch.softmax on the CPU for the truth: past some ten thousand numbers a bound made for
# float32 may refuse it. Take the truth in float64.
#
# Exits with 0 while this is so, with 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import sys

import torch


def errors(n):
    """Return the largest relative errors of softmax and of its two steps."""
    x = torch.randn(4, n, generator=torch.Generator().manual_seed(0))
    truth = torch.softmax(x.double(), 1)
    e = torch.exp(x - x.amax(1, keepdim=True))
    answers = torch.softmax(x, 1), e / e.sum(1, keepdim=True)
    return [((answer.double() - truth).abs() / truth).max().item() for answer in answers]


short, long = errors(4096), errors(2**20)
print(f"torch {torch.__version__}: softmax, and exp divided by its sum")
for n, (whole, steps) in ((4096, short), (2**20, long)):
    print(f"rows of {n:9,}: {whole:.1e} {steps:.1e}")
is_so = max(short) < 7e-7 and long[0] > 1.5e-6 and long[1] < 9e-7
print("as described" if is_so else "this has changed")
sys.exit(not is_so)
PYTHON
