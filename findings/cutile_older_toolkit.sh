#!/usr/bin/env bash
# cuTile does not compile where CUDA_HOME names an older toolkit, or a folder that is not there, and does not say why:
# "Return code 5, failed to compile Tile IR program, Unknown location".
#
# Seen with cuda-tile 1.7.0, tileiras 13.4.92 found on the PATH, and CUDA_HOME or CUDA_PATH naming nvidia-cuda-nvcc
# 13.0.88; no card is needed. Without the variable, or with one that names the compiler's own toolkit, the same kernel
# compiles. `_compile.py` takes the variable away from a compiler that pip has installed beside it, and leaves it to one
# that it finds on the PATH or below CUDA_HOME: so it is also what happens where the wheels of nvcc, nvvm and tileiras
# are of different versions, and the compiler of a toolkit is taken instead.
# It matters on a machine with two toolkits: a right kernel looks wrong. Unset CUDA_HOME, or install cuda-tile[tileiras].
#
# Exits with 0 while this is so, with 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
pip=("$folder/venv/bin/pip" install --quiet --disable-pip-version-check)
"${pip[@]}" cuda-tile==1.7.0
"${pip[@]}" --no-deps --target "$folder/new" nvidia-cuda-tileiras==13.4.92 nvidia-cuda-nvcc==13.4.92 nvidia-nvvm==13.4.92
"${pip[@]}" --no-deps --target "$folder/old" nvidia-cuda-nvcc==13.0.88
cat >"$folder/compile.py" <<'PYTHON'
import io
import warnings

import cuda.tile as ct
from cuda.tile import compilation

warnings.simplefilter("ignore")


@ct.kernel
def add_one(x, N: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(x, (i,), ct.load(x, (i,), (N,)) + 1.0)


vector = compilation.ArrayConstraint(
    ct.float32, 1, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=(), may_alias_internally=False
)
convention = compilation.CallingConvention.cutile_python_v1()
signature = compilation.KernelSignature((vector, 1024), convention)
try:
    compilation.export_kernel(add_one, [signature], io.BytesIO(), gpu_code="sm_90", output_format="cubin")
    print("compiles")
except Exception as error:
    print(*str(error).splitlines(), sep=", ")
PYTHON
new=$folder/new/nvidia/cu13 old=$folder/old/nvidia/cu13
unset CUDA_HOME CUDA_PATH
PATH=$new/bin:$PATH
silent="Return code 5, failed to compile Tile IR program, Unknown location"
is_so=true
found() { # what is expected, a label, and a command
  local due=$1 label=$2 said
  shift 2
  said=$(env "$@" "$folder/venv/bin/python" "$folder/compile.py")
  echo "$label: $said"
  [[ $said == "$due" ]] || is_so=false
}
tileiras --version | grep release
found compiles "on the PATH, no CUDA_HOME" -u CUDA_HOME
found compiles "on the PATH, CUDA_HOME its own toolkit" CUDA_HOME="$new"
found "$silent" "on the PATH, CUDA_HOME 13.0" CUDA_HOME="$old"
found "$silent" "on the PATH, CUDA_PATH 13.0" CUDA_PATH="$old"
found "$silent" "on the PATH, CUDA_HOME no folder" CUDA_HOME="$folder/nowhere"
found compiles "a package of the same Python, CUDA_HOME 13.0" CUDA_HOME="$old" PYTHONPATH="$folder/new"
if $is_so; then echo "as described"; else echo "this has changed"; exit 1; fi
