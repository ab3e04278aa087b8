#!/usr/bin/env bash
# CUTLASS's asserts make every wgmma wait for the one before it, unless NDEBUG is defined: ptxas warns of it (C7510), and
# the code has a wait, WARPGROUP.DEPBAR, for each HGMMA.
#
# Seen with the headers of nvidia-cutlass 4.2.0.0 and nvcc 13.0.88, for sm_90a; no card is needed. The product is one of
# the two builders: bf16, 128 x 256 x 64, cooperative. With asserts it has 8 HGMMA and 8 waits, with -DNDEBUG 8 and 2. An
# assert calls a function when it fails: "wgmma.mma_async instructions are serialized due to wgmma pipeline crossing
# function boundary at a function call". The answers do not change, so only the warning tells.
# It matters to whoever compiles CUTLASS by hand: a build without -DNDEBUG is not the one whose speed is known.
#
# Exits with 0 while this is so, with 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$folder/wheels" \
  nvidia-cutlass==4.2.0.0 nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 \
  nvidia-cuda-cccl==13.0.85 nvidia-cuda-runtime==13.0.96 nvidia-cuda-nvdisasm==13.4.92
cat >"$folder/product.cu" <<'CUDA'
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <cutlass/device_kernel.h>

using T = cutlass::bfloat16_t;
using Row = cutlass::layout::RowMajor;
using Sm90 = cutlass::arch::Sm90;
using TensorOp = cutlass::arch::OpClassTensorOp;
using Block = cute::Shape<cute::_128, cute::_256, cute::_64>;
using Cluster = cute::Shape<cute::_2, cute::_1, cute::_1>;

using Store = cutlass::epilogue::collective::CollectiveBuilder<
    Sm90, TensorOp, Block, Cluster, cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, Row, 8, T, Row, 8,
    cutlass::epilogue::TmaWarpSpecializedCooperative>::CollectiveOp;
using Multiply = cutlass::gemm::collective::CollectiveBuilder<
    Sm90, TensorOp, T, Row, 8, T, Row, 8, float, Block, Cluster,
    cutlass::gemm::collective::StageCountAutoCarveout<sizeof(typename Store::SharedStorage)>,
    cutlass::gemm::KernelTmaWarpSpecializedCooperative>::CollectiveOp;
using Kernel = cutlass::gemm::kernel::GemmUniversal<
    cute::Shape<int, int, int, int>, Multiply, Store, cutlass::gemm::PersistentScheduler>;

template __global__ void cutlass::device_kernel<Kernel>(CUTLASS_GRID_CONSTANT typename Kernel::Params const);
CUDA
cuda=$folder/wheels/nvidia/cu13
is_so=true
compiled() { # a label, whether ptxas warns, and options of nvcc
  local label=$1 due=$2 warns=no products waits
  shift 2
  "$cuda/bin/nvcc" -std=c++17 -O3 --expt-relaxed-constexpr -arch=sm_90a -cubin "$@" -o "$folder/made.cubin" \
    -I"$folder/wheels/cutlass_library/source/include" "$folder/product.cu" 2>"$folder/log" || {
    cat "$folder/log"
    return 1
  }
  ! grep -q C7510 "$folder/log" || warns=yes
  "$cuda/bin/nvdisasm" -c "$folder/made.cubin" >"$folder/code"
  products=$(grep -c HGMMA "$folder/code")
  waits=$(grep -c WARPGROUP.DEPBAR "$folder/code" || true)
  echo "$label: $products HGMMA, $waits WARPGROUP.DEPBAR, ptxas warns: $warns"
  grep -m 1 -o "wgmma.mma_async instructions are serialized due to .* function call" "$folder/log" || true
  [[ $warns == "$due" ]] && ((products > 0)) || is_so=false
  if [[ $due == yes ]]; then ((waits >= products)) || is_so=false; else ((2 * waits < products)) || is_so=false; fi
}
"$cuda/bin/nvcc" --version | grep release
compiled "with asserts" yes
compiled "with -DNDEBUG" no -DNDEBUG
if $is_so; then echo "as described"; else echo "this has changed"; exit 1; fi
