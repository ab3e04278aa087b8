#!/usr/bin/env bash
# Two warps that hand a number to each other through shared memory have no wording with named barriers of 64 threads that
# compute-sanitizer is content with, though the answer is right and PTX allows both. With `bar.arrive` by the warp that
# wrote and `bar.sync` by the one that reads, racecheck reports races. With `bar.sync` by both, which stand at two places of
# the program, racecheck is content, and synccheck reports "Divergent thread(s) in block". With a barrier in shared memory
# (mbarrier) on which all 32 lanes arrive, neither reports anything; where one lane arrives for all, behind a __syncwarp,
# racecheck reports races again.
#
# Seen with compute-sanitizer 2025.3.1 (13.0.85), nvcc 13.0.88, on an H200 (compute capability 9.0), driver 580.159.
# It matters to whoever lets warps take turns: a report of such a pair says that the tool does not see the order, and
# counting lane by lane on an mbarrier tells whether there is one.
#
# Needs an NVIDIA card. Exits with 0 while this is so, with 1 when it has changed, with 2 where there is no card.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$folder/wheels" \
  nvidia-cuda-sanitizer-api==13.0.85 nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 \
  nvidia-cuda-cccl==13.0.85 nvidia-cuda-runtime==13.0.96
cat >"$folder/exchange.cu" <<'CUDA'
#include <cstdio>

constexpr int BOTH_SYNC = 1, EACH_LANE = 2, ONE_LANE = 3;  // 0: one warp arrives, and the other one waits

__device__ unsigned in_shared(const void *p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

__device__ void told(unsigned long long *barrier, int named) {
  if (WAY == BOTH_SYNC) {
    asm volatile("bar.sync %0, 64;" ::"r"(named) : "memory");
  } else if (WAY == 0) {
    asm volatile("bar.arrive %0, 64;" ::"r"(named) : "memory");
  } else {
    if (WAY == ONE_LANE) __syncwarp();
    if (WAY == EACH_LANE || threadIdx.x % 32 == 0)
      asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" ::"r"(in_shared(barrier)) : "memory");
  }
}

__device__ void heard(unsigned long long *barrier, int named, unsigned parity) {
  if (WAY == 0 || WAY == BOTH_SYNC) {
    asm volatile("bar.sync %0, 64;" ::"r"(named) : "memory");
    return;
  }
  unsigned done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(in_shared(barrier)), "r"(parity) : "memory");
}

__global__ void exchange(int rounds, int *sums) {
  __shared__ int number[32];
  __shared__ unsigned long long there, back;
  const int lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    const int lanes = WAY == ONE_LANE ? 1 : 32;
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(in_shared(&there)), "r"(lanes));
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(in_shared(&back)), "r"(lanes));
  }
  __syncthreads();
  int sum = 0;
  for (int i = 0; i < rounds; i++) {
    if (threadIdx.x < 32) {
      number[lane] = i + lane;
      told(&there, 1);
      heard(&back, 2, i & 1);
      sum += number[lane];
    } else {
      heard(&there, 1, i & 1);
      number[lane] *= 2;
      told(&back, 2);
    }
  }
  if (threadIdx.x < 32) sums[lane] = sum;
}

int main() {
  int *sums, host[32], off = 0;
  if (cudaMalloc(&sums, sizeof host) != cudaSuccess) return 2;
  exchange<<<1, 64>>>(4, sums);
  if (cudaMemcpy(host, sums, sizeof host, cudaMemcpyDeviceToHost) != cudaSuccess) return 3;
  for (int lane = 0; lane < 32; lane++) off += host[lane] != 2 * (4 * lane + 6);
  return off ? 3 : 0;
}
CUDA
cuda=$folder/wheels/nvidia/cu13
chmod +x "$cuda"/bin/* "$cuda"/nvvm/bin/* 2>/dev/null || true
as_described=0
for way in 0 1 2 3; do
  "$cuda/bin/nvcc" -arch=sm_90 -DWAY=$way -I "$cuda/include" -L "$cuda/lib" -cudart none -l:libcudart.so.13 \
    -Xlinker -rpath="$cuda/lib" -o "$folder/exchange" "$folder/exchange.cu"
  code=0
  "$folder/exchange" || code=$?
  if [ $code = 2 ]; then
    echo "this needs an NVIDIA card, and there is none here"
    exit 2
  fi
  [ $code = 0 ] || { echo "way $way: a wrong answer, or a card of before compute capability 9.0"; exit 1; }
  for tool in racecheck synccheck; do
    said=$("$cuda/bin/compute-sanitizer" --tool $tool "$folder/exchange" 2>&1 || true)
    races=$(grep -c "Race reported" <<<"$said" || true)
    divergent=$(grep -c "Divergent thread(s) in block" <<<"$said" || true)
    echo "way $way, $tool: $races races, $divergent divergent threads"
    due="0 0"
    case "$way $tool" in "0 racecheck" | "3 racecheck") due="some 0" ;; "1 synccheck") due="0 some" ;; esac
    found="$([ "$races" = 0 ] && echo 0 || echo some) $([ "$divergent" = 0 ] && echo 0 || echo some)"
    [ "$found" = "$due" ] || as_described=1
  done
done
[ $as_described = 0 ] && echo "as described" || echo "this has changed"
exit $as_described
