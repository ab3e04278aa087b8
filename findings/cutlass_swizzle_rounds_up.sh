#!/usr/bin/env bash
# CUTLASS's persistent scheduler may give half of its turns to tiles that do not exist: with max_swizzle_size it rounds
# the tiles of a product up, along m and n, to (1 << log_swizzle) clusters. A block that draws one of these does nothing.
#
# Seen with the headers of nvidia-cutlass 4.2.0.0; only the host's code is asked, and no card is needed. The product is
# 1024 x 4096, in tiles of 128 x 256, so 8 x 16 tiles; the cluster is 2 x 1. With max_swizzle_size = 8 the 8 rows of
# tiles become 16, and the grid walks over 256 tiles instead of 128. With 4, 2 or 1 nothing is added. Where both numbers
# of tiles are multiples already, as for 4096 or 8192 each way, 8 adds nothing either.
# It matters to whoever sets max_swizzle_size for a large product, to keep L2 warm, and launches a small one with it.
# The answers are right all the same. Source: cutlass/gemm/kernel/tile_scheduler_params.h, get_log_swizzle_size.
#
# Exits with 0 while this is so, with 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$folder/wheels" \
  nvidia-cutlass==4.2.0.0 nvidia-cuda-cccl==13.0.85 nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88
cat >"$folder/grid.cpp" <<'CPP'
#include <cuda_runtime.h>
#include <cutlass/gemm/kernel/tile_scheduler_params.h>

#include <cstdio>
#include <cstdlib>

int main(int, char **arguments) {  // M, N, max_swizzle_size
  using Scheduler = cutlass::gemm::kernel::detail::PersistentTileSchedulerSm90Params;
  int M = atoi(arguments[1]), N = atoi(arguments[2]), swizzle = atoi(arguments[3]);
  cutlass::gemm::GemmCoord tile(128, 256, 64), cluster(2, 1, 1);
  cutlass::gemm::BatchedGemmCoord problem(M, N, 4096, 1);
  cutlass::KernelHardwareInfo card{0, 132};
  Scheduler made;
  made.initialize(problem, tile, cluster, card, swizzle, Scheduler::RasterOrderOptions::Heuristic);
  dim3 tiles = Scheduler::get_tiled_cta_shape_mnl(problem, tile, cluster);
  printf("%dx%d swizzle %d: %u x %u tiles, %llu walked over\n", M, N, swizzle, tiles.x, tiles.y,
         static_cast<unsigned long long>(made.blocks_per_problem_));
}
CPP
g++ --version | head -1
# Sections that nobody calls are dropped: they call the runtime, which is not linked.
g++ -std=c++17 -w -O1 -ffunction-sections -Wl,--gc-sections -I"$folder/wheels/cutlass_library/source/include" \
  -I"$folder/wheels/nvidia/cu13/include" -I"$folder/wheels/nvidia/cu13/include/cccl" "$folder/grid.cpp" -o "$folder/grid"
for words in "1024 4096 8" "1024 4096 4" "1024 4096 2" "1024 4096 1" "4096 4096 8" "8192 8192 8"; do
  # shellcheck disable=SC2086  # three arguments
  "$folder/grid" $words
done | tee "$folder/found"
diff - "$folder/found" <<'DUE' || { echo "this has changed"; exit 1; }
1024x4096 swizzle 8: 8 x 16 tiles, 256 walked over
1024x4096 swizzle 4: 8 x 16 tiles, 128 walked over
1024x4096 swizzle 2: 8 x 16 tiles, 128 walked over
1024x4096 swizzle 1: 8 x 16 tiles, 128 walked over
4096x4096 swizzle 8: 32 x 16 tiles, 512 walked over
8192x8192 swizzle 8: 64 x 32 tiles, 2048 walked over
DUE
echo "as described"
