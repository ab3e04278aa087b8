// Matrix multiply, kernel 13: another tile for another size, in an order that turns back at its ends.
//
// Contract  problem.py      Launcher  k13_by_size.py, plans.py      Parts  by_size.cuh, add_parts.cu
// Idea      tile, cluster and order are macros and arguments, chosen by M, N and K. Groups of tiles are as high as
//           what runs together is wide, and every second group is walked back, so that it begins with columns that L2
//           still has. Where there are few tiles and K is long, several blocks share a tile: each sums a part of K
// Against   k12_stored, which cuts every size into 256 x 256 for two blocks, and walks all groups one way
// Cost      128 x 256 and 256 x 128 as k12_stored; smaller tiles read more for what they make. A tile in `splits`
//           parts writes and reads 4 * splits bytes more for each element of C
// Limits    Hopper (sm_90a) only; K and N are multiples of 8. B may lie as [K, N] or as [N, K]
// Next      k14_tuned: what is left
// Source    CUTLASS, Efficient GEMM: threadblock swizzle, split-K; Shankhdhar 2024, Outperforming cuBLAS on H100

#include "hopper/tma.cuh"
#include "hopper/warpgroup.cuh"
#include "by_size.cuh"

// grid: a multiple of CLUSTER      block: THREADS      dynamic shared memory: STAGES * (STAGE_BYTES + 16) + C_BYTES
extern "C" __global__ __launch_bounds__(THREADS, 1) void gemm_by_size(
    const __grid_constant__ TensorMap a_map,  // [M, K], box BM / CLUSTER_N x 64
    const __grid_constant__ TensorMap b_map,  // [K, N], box 64 x 64; TRANSPOSED: [N, K], box BN / CLUSTER_M x 64
    const __grid_constant__ TensorMap c_map,  // [M, N], box 64 x 64
    float *partial,                           // SPLIT: [splits, M, N]
    int M, int N, int K, int group, int splits) {
  extern __shared__ __align__(1024) char memory[];
  char *c_panels = memory + STAGES * STAGE_BYTES;
  Barrier *full = reinterpret_cast<Barrier *>(c_panels + C_BYTES), *empty = full + STAGES;
  const int warpgroup = same_in_warp(threadIdx.x / 128);
  const Turns turns = turns_of(M, N, splits);
  begin_ring(full, empty);

  unsigned at = 0;
  if (warpgroup == 0) {
    registers_down<40>();
    if (threadIdx.x == 0) {
      for (int turn = 0; turn < turns.all; turn++) {
        const Part part = part_at(turns.mine + turn * turns.hop, M, N, K, group, splits);
        for (int step = part.begin; step < part.end; step++, at++) {
          const int s = at % STAGES;
          wait(&empty[s], at / STAGES & 1 ^ 1);
          fetch(memory + s * STAGE_BYTES, &full[s], a_map, b_map, part.m, part.n, step * BK);
        }
      }
    }
    __syncwarp();  // the warp is whole again, as the barrier at the end wants it
  } else {
    registers_up<232>();
    const int consumer = warpgroup - 1, thread = threadIdx.x % 128;
    char *mine = c_panels + consumer * C_PANELS * PANEL_BYTES;
    float d[STRIPS][BN / 2];
    for (int turn = 0; turn < turns.all; turn++) {
      const Part part = part_at(turns.mine + turn * turns.hop, M, N, K, group, splits);
      for (int step = part.begin; step < part.end; step++, at++) {
        const int s = at % STAGES;
        wait(&full[s], at / STAGES & 1);
        multiply(d, memory + s * STAGE_BYTES, consumer, step > part.begin);
        wgmma_wait<1>();
        if (step > part.begin) give_back(&empty[(at - 1) % STAGES]);
      }
      finish(d);
      give_back(&empty[(at - 1) % STAGES]);

#pragma unroll
      for (int r = 0; r < STRIPS; r++) {
        const int m = part.m + (consumer * STRIPS + r) * 64;
        if (SPLIT) write_floats(d[r], partial + static_cast<long long>(part.split) * M * N, M, N, m, part.n);
#pragma unroll
        for (int p = 0; p < (SPLIT ? 0 : WIDE); p++) {
          char *place = mine + (r * WIDE + p) % C_PANELS * PANEL_BYTES;
          if (thread == 0) wait_until_read<C_PANELS - 1>();
          named_barrier_wait(warpgroup, 128);
          put_panel(place, [&](int j, unsigned (&four)[4]) { operand<Type>(four, d[r], p * 4 + j); });
          named_barrier_wait(warpgroup, 128);
          if (thread == 0) store_panel<0>(c_map, place, part, consumer, r * WIDE + p);
        }
      }
    }
    if (thread == 0) wait_until_read<0>();
  }
  if (CLUSTER > 1) {
    cluster_arrive();
    cluster_wait();
  }
}
