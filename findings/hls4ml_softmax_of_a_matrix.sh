#!/usr/bin/env bash
# hls4ml takes torch.nn.Softmax(dim=-1) of a matrix, and what it builds is one softmax of the whole matrix: no row sums to
# 1, all rows together do. No warning, no error.
#
# Seen with hls4ml 1.3.0 and torch 2.13.0, config_from_pytorch_model and convert_from_pytorch_model, back end Vitis,
# io_parallel, an input of 4 x 8 zeros. Each row ought to be eight times 1/8 and sum to 1. Seen: rows that sum to 1/4. In
# the header that it writes, n_slice, the numbers of one softmax, is 32 and not 8: the reader of PyTorch modules sets
# n_outer and n_inner for no softmax, as the reader of Keras does. A row alone, an input of 8, is right. Beside the cause
# above, the default tables of 1024 entries are coarse; here they are not to blame, as 32 and 1/32 are among their
# numbers.
# It matters to whoever builds an attention from PyTorch: its weights are too small by as much as there are queries.
#
# Exits with 0 while this is so, with 1 when it has changed. Needs g++.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check hls4ml==1.3.0 torch==2.13.0 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
import contextlib
import io
import pathlib
import re

import hls4ml
import numpy as np
import torch


class Weights(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.softmax = torch.nn.Softmax(dim=-1)

    def forward(self, x):
        return self.softmax(x)


def built(shape):
    """The sums of rows, and over how many numbers the softmax goes, of a circuit for zeros of a shape."""
    module, folder = Weights(), "circuit_" + "_".join(map(str, shape))
    with contextlib.redirect_stdout(io.StringIO()):
        config = hls4ml.utils.config_from_pytorch_model(
            module, shape, granularity="name", backend="Vitis", channels_last_conversion="off"
        )
        model = hls4ml.converters.convert_from_pytorch_model(
            module, hls_config=config, output_dir=folder, backend="Vitis", io_type="io_parallel"
        )
        model.compile()
        answer = model.predict(np.zeros((1, *shape), np.float32)).reshape(shape)
    header = pathlib.Path(folder, "firmware", "parameters.h").read_text()
    return np.unique(answer.sum(-1)).tolist(), int(re.search(r"n_slice = (\d+);", header)[1])


print("hls4ml", hls4ml.__version__, "torch", torch.__version__)
matrix, row = built((4, 8)), built((8,))
print(f"4 x 8: rows sum to {matrix[0]}, a softmax over {matrix[1]}")
print(f"8: the row sums to {row[0]}, a softmax over {row[1]}")
is_so = matrix == ([0.25], 32) and row == ([1.0], 8)
print("as described" if is_so else "this has changed")
raise SystemExit(not is_so)
PY
