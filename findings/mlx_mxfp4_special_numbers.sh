#!/usr/bin/env bash
# MLX's mxfp4, on its CPU back end, hides a NaN and makes infinities of numbers that are nearly zero.
#
# Seen with mlx 0.32.4 and mlx-cpu 0.32.4, mx.quantize and mx.dequantize, mode "mxfp4", one group of 32:
# 1. One NaN, or one infinity, among ones: all 32 come back as 0. The MX format has a code for this, a scale of NaN, which
#    makes the whole group NaN; here a finite scale is written, and whoever looks at the answers sees nothing.
# 2. 32 times 6e-39, a number of float32: all come back as infinity. Its scale would be below 2^-127, and 254, 2^127, is
#    written in its place.
# 3. A scale of 255, NaN in the MX format, makes ones infinity and not NaN.
# In mode "nvfp4" without a global_scale, which is the default, normal numbers of spread 0.002 come back as 0 nineteen times
# in twenty: the scale of 16 numbers is an E4M3, and has no code that small. With global_scale they come back.
# It matters to whoever looks for a broken weight in the answers of a quantised model: it is gone before.
#
# Exits with 0 while this is so, with 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "mlx[cpu]==0.32.4" mlx-cpu==0.32.4 numpy==2.4.6
"$folder/venv/bin/python" - <<'PY'
from importlib.metadata import version

import mlx.core as mx
import numpy as np


def back(x, mode="mxfp4", **options):
    """What an array is after it was quantised."""
    made = mx.quantize(mx.array(x), mode=mode, **options)
    return np.array(mx.dequantize(*made, mode=mode, **options).astype(mx.float32))


def with_one(number):
    """A group of ones with a number among them."""
    x = np.ones((1, 32), np.float32)
    x[0, 5] = number
    return back(x)


codes = mx.full((1, 4), 0x22222222, dtype=mx.uint32)  # 32 times 1.0 in four bits
scaled = mx.dequantize(codes, mx.full((1, 1), 255, dtype=mx.uint8), mode="mxfp4").astype(mx.float32)
small = (np.random.default_rng(0).standard_normal((256, 256)) * 0.002).astype(np.float32)
seen = {
    "a NaN: zeros of 32": int((with_one(np.nan) == 0).sum()),
    "an infinity: zeros of 32": int((with_one(np.inf) == 0).sum()),
    "6e-39: infinities of 32": int(np.isinf(back(np.full((1, 32), 6e-39, np.float32))).sum()),
    "a scale of 255: infinities of 32": int(np.isinf(np.array(scaled)).sum()),
}
print("mlx", version("mlx"), "on", mx.default_device())
for name, number in seen.items():
    print(f"{name}: {number}")
alone = (back(small, "nvfp4") == 0).mean()
whole = (back(small, "nvfp4", global_scale=mx.array(float(abs(small).max()))) == 0).mean()
print(f"nvfp4, spread 0.002: zeros {alone:.0%}, with a global scale {whole:.0%}")
is_so = set(seen.values()) == {32} and alone > 0.9 and whole < 0.1
print("as described" if is_so else "this has changed")
raise SystemExit(not is_so)
PY
