#!/usr/bin/env bash
# `torch.nn.functional.rms_norm` answers other numbers on a card than on a CPU for a row that holds one infinity. The mean
# of its squares is infinite, so by the formula every finite number of the row becomes 0 and the infinity itself NaN. The
# CPU answers so. The kernel on the card answers NaN for all of the row, also for those that are finite.
#
# Seen with PyTorch 2.11.0, CUDA 13.0, on an H200 (compute capability 9.0), in float32 with a weight and
# without one, and in bfloat16 with one: rows of 31 numbers, one of them infinite; on the card 31 NaN, on the CPU one, and zeros.
# It matters to whoever tests a kernel of their own against it with hard values: the right one is the one that differs.
#
# Needs an NVIDIA card. Exits with 0 while this is so, with 1 when it has changed, with 2 where there is no card.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.11.0 numpy
cat >"$folder/row.py" <<'PYTHON'
import sys

import torch
from torch.nn.functional import rms_norm

if not torch.cuda.is_available():
    print("this needs an NVIDIA card, and torch finds none here")
    sys.exit(2)
print(torch.__version__, torch.cuda.get_device_name())
N, as_described = 31, True
for dtype, weighed in ((torch.float32, False), (torch.float32, True), (torch.bfloat16, True)):
    weight = torch.ones(N, dtype=dtype) if weighed else None
    row = torch.ones(1, N, dtype=dtype)
    row[0, 3] = torch.inf
    there = rms_norm(row.cuda(), (N,), weight.cuda() if weighed else None, 1e-5).isnan().sum().item()
    here = rms_norm(row, (N,), weight, 1e-5).isnan().sum().item()
    print(f"{dtype}, {'with' if weighed else 'without'} a weight: {there} NaN on the card, {here} on the CPU")
    as_described &= (there, here) == (N, 1)
print("as described" if as_described else "this has changed")
sys.exit(not as_described)
PYTHON
"$folder/venv/bin/python" -W ignore "$folder/row.py"
