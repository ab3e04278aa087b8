#!/usr/bin/env bash
# XLA's own count of operations, `cost_analysis()` of a compiled function, has the body of a loop once, however often it
# runs. So what has a loop over tiles is told to cost a fraction of what it does, and one that was unrolled its whole cost.
#
# Seen with jax and jaxlib 0.10.2 on a CPU, 256 x 256 in float32: a multiply is 33554432 operations; ten of them in a
# `fori_loop` or in a `scan` are said to be as many; the same ten written out are ten times as many. The number of trips
# is a constant of the program in each. The same was seen with programs for TPU v5e, compiled ahead of time.
# It matters to whoever divides by that count: a share of peak comes out too small by the number of trips.
#
# Exits with 0 while this is so, with 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check jax==0.10.2 jaxlib==0.10.2
cat >"$folder/count.py" <<'PYTHON'
import jax
import jax.numpy as jnp

N, TRIPS = 256, 10


def once(x):
    return x @ x


def in_a_loop(x):
    return jax.lax.fori_loop(0, TRIPS, lambda i, y: y @ x, x)


def in_a_scan(x):
    return jax.lax.scan(lambda y, _: (y @ x, None), x, length=TRIPS)[0]


def written_out(x):
    y = x
    for _ in range(TRIPS):
        y = y @ x
    return y


counted = {}
for function in (once, in_a_loop, in_a_scan, written_out):
    cost = jax.jit(function).lower(jnp.zeros((N, N), jnp.float32)).compile().cost_analysis()
    counted[function.__name__] = cost["flops"] / (2 * N**3)
    print(f"{function.__name__}: {cost['flops']:.0f}")
assert counted["once"] == 1 and round(counted["written_out"]) == TRIPS
as_described = all(abs(counted[name] - 1) < 0.01 for name in ("in_a_loop", "in_a_scan"))
print("as described" if as_described else "this has changed")
raise SystemExit(not as_described)
PYTHON
JAX_PLATFORMS=cpu "$folder/venv/bin/python" -W ignore "$folder/count.py"
