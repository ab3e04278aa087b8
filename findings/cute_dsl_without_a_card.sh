#!/usr/bin/env bash
# CuTe-DSL compiles for sm_100a, a B200, where it finds no card and is told of none, and says nothing about that.
#
# Seen with nvidia-cutlass-dsl 4.8.1; CUDA_VISIBLE_DEVICES hides a card that is there. `detect_gpu_arch` in
# base_dsl/env_manager.py takes 10.0 where the driver names no capability, which only its docstring tells. With
# --gpu-arch, or with CUTE_DSL_ARCH set before the import, the card is the one that was named.
# It matters to whoever compiles on a machine without a card, or in a worker process that sees none: the code is for a
# B200, and elsewhere it fails when it is loaded: meta-pytorch/attention-gym#330 met cudaErrorNoKernelImageForDevice on a
# GB300, for code that its own workers had compiled.
#
# Exits with 0 while this is so, with 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check nvidia-cutlass-dsl==4.8.1
cat >"$folder/compile.py" <<'PYTHON'
import re
import sys
import tempfile

from cutlass import cute


@cute.kernel
def nothing_kernel():
    pass


@cute.jit
def nothing():
    nothing_kernel().launch(grid=(1, 1, 1), block=(32, 1, 1))


with tempfile.TemporaryDirectory() as folder:
    made = cute.compile(nothing, options=" ".join([f"--keep-ptx --dump-dir {folder}", *sys.argv[1:]]))
    print(*re.findall(r"^\.target (\w+)", made.__ptx__, re.MULTILINE))
PYTHON
export CUDA_VISIBLE_DEVICES=
unset CUTE_DSL_ARCH
is_so=true
found() { # what is expected, a label, an assignment, and options
  local due=$1 label=$2 set=$3 said
  shift 3
  said=$(env "$set" "$folder/venv/bin/python" "$folder/compile.py" "$@" 2>&1) # whatever it prints, warnings too
  echo "$label: $said"
  [[ $said == "$due" ]] || is_so=false
}
found sm_100a "nothing said" NOTHING=
found sm_80 "--gpu-arch sm_80" NOTHING= --gpu-arch sm_80
found sm_80 "CUTE_DSL_ARCH=sm_80" CUTE_DSL_ARCH=sm_80
if $is_so; then echo "as described"; else echo "this has changed"; exit 1; fi
