// Matrix multiply, kernel 14's other body: where there is a multiprocessor for every tile, a block makes one and ends.
//
// Contract  problem.py      Launcher  one_wave.py      Parts  by_size.cuh
// Idea      with one tile there is no tile before it to store and none after it to fetch, and what is left beside the
//           products are the way to the first and the way behind the last. Both are made short. The thread that makes
//           the barriers asks for the first tiles before anybody has met it; a cluster meets without waiting for its
//           memory, and parts without meeting. Each warp carries its own 16 rows of C, through the place of A that it
//           has just read, and waits for no other warp
// Against   k14_tuned, whose first fetch stands behind a barrier for everybody, and whose panels of C want two each
// Cost      a grid of as many blocks as tiles; the ring is not used again
// Limits    Hopper (sm_90a) only; K and N are multiples of 8. B may lie as [K, N] or as [N, K]
// Source    PTX ISA, mbarrier, barrier.cluster, griddepcontrol and cp.async.bulk.tensor

#include "hopper/tma.cuh"
#include "hopper/warpgroup.cuh"
#include "hopper/cluster_start.cuh"
#include "by_size.cuh"

#ifndef HINTS
#define HINTS 1  // C leaves L2 first
#endif
#ifndef LAG
#define LAG 1  // steps that the second consumer begins behind the first, where there are 2 * STAGES steps or more
#endif
#ifndef EARLY
#define EARLY 1  // the first tiles are asked for before all threads have met
#endif
constexpr int BEHIND = 3;  // the named barrier of LAG: the consumers' own are 1 and 2
constexpr int ROWS = 16;   // of C, that a warp carries
static_assert(LAG < STAGES, "the first consumer gets no further than the ring without the second");
static_assert(WIDE <= STAGES && !SPLIT, "every panel of a consumer finds a place of A");

// A consumer's panel p goes out by way of stage `s`: each warp its rows of it.
template <int R>
__device__ inline void carry(const float (&d)[R], const TensorMap &c_map, char *stage, const Part &part, int consumer,
                             int p) {
  const int warp = threadIdx.x / 32 % 4;
  char *place = stage + (consumer * STRIPS + p / WIDE) * PANEL_BYTES;
  put_panel(place, [&](int j, unsigned (&four)[4]) { operand<Type>(four, d, p % WIDE * 4 + j); });
  __syncwarp();
  if (threadIdx.x % 32 == 0) {
    const int n = part.n + p % WIDE * 64, m = part.m + (consumer * STRIPS + p / WIDE) * 64 + warp * ROWS;
    const char *from = place + warp * ROWS * ROW_BYTES;
    if (HINTS) {
      store_tile(c_map, from, evict_first(), n, m);
    } else {
      store_tile(c_map, from, n, m);
    }
    close_bulk_group();
  }
}

// The block's tile, without a division: the grid has the tiles' own two axes, and a cluster lies along the first.
__device__ inline Part own_part(int steps) {
  const int rank = blockIdx.x % CLUSTER;
  return {(static_cast<int>(blockIdx.x) / CLUSTER * CLUSTER_M + rank % CLUSTER_M) * BM,
          (static_cast<int>(blockIdx.y) * CLUSTER_N + rank / CLUSTER_M) * BN, 0, steps, 0};
}

// grid: (CLUSTER * rows of clusters, columns of clusters)      block: THREADS
// dynamic shared memory: STAGES * (STAGE_BYTES + 16)
extern "C" __global__ __launch_bounds__(THREADS, 1) void gemm_one_tile(
    const __grid_constant__ TensorMap a_map,  // [M, K], box BM / CLUSTER_N x 64
    const __grid_constant__ TensorMap b_map,  // [K, N], box 64 x 64; TRANSPOSED: [N, K], box BN / CLUSTER_M x 64
    const __grid_constant__ TensorMap c_map,  // [M, N], box 16 x 64
    int K) {
  extern __shared__ __align__(1024) char memory[];
  Barrier *full = reinterpret_cast<Barrier *>(memory + STAGES * STAGE_BYTES), *empty = full + STAGES;
  const int warpgroup = same_in_warp(threadIdx.x / 128), steps = ceil_div(K, BK);
  if (threadIdx.x == 0) {
    prefetch(a_map);
    prefetch(b_map);
    for (int s = 0; s < STAGES; s++) {
      barrier_init(&full[s], 1);
      barrier_init(&empty[s], PEERS * CONSUMERS);
    }
    fence_barrier_init();
    fence_async();
  }
  const Part part = own_part(steps);
  auto ask = [&](int step) {
    const int s = step % STAGES;
    fetch(memory + s * STAGE_BYTES, &full[s], a_map, b_map, part.m, part.n, step * BK);
  };
  auto ask_first = [&] {
    wait_for_last_grid();  // it may have written A or B, or still read C; who waits for these tiles waits for that, too
    for (int step = 0; step < min(STAGES, steps); step++) ask(step);
    prefetch(c_map);
  };
  let_next_grid_begin();  // it finds room when blocks of this one end

  if (CLUSTER > 1) {  // the barriers of the other blocks are there, too
    __syncwarp();
    cluster_arrive_relaxed();
    cluster_wait();
  }
  if ((EARLY || CLUSTER > 1) && threadIdx.x == 0) ask_first();
  if (CLUSTER == 1) __syncthreads();

  if (warpgroup == 0) {
    if (threadIdx.x == 0) {
      if (!EARLY && CLUSTER == 1) ask_first();
      for (int step = STAGES; step < steps; step++) {
        wait(&empty[step % STAGES], step / STAGES & 1 ^ 1);
        ask(step);
      }
    }
  } else {
    const int consumer = warpgroup - 1;
    const bool lags = LAG && CONSUMERS == 2 && steps >= 2 * STAGES;
    float d[STRIPS][BN / 2];
    if (consumer == 1 && lags) named_barrier_wait(BEHIND, 256);
    for (int step = 0; step < steps; step++) {
      wait(&full[step % STAGES], step / STAGES & 1);
      multiply(d, memory + step % STAGES * STAGE_BYTES, consumer, step > 0);
      if (consumer == 0 && step == LAG - 1 && lags) named_barrier_arrive(BEHIND, 256);
      wgmma_wait<1>();  // the step before is done; this one goes on
      // Nobody fetches to the last places again. So no arrival is under way when a block of a cluster ends.
      if (step > 0 && step - 1 + STAGES < steps) give_back(&empty[(step - 1) % STAGES]);
    }

    finish(d);
    named_barrier_wait(warpgroup, 128);  // the other warps are as far, and A is read
#pragma unroll
    for (int p = 0; p < WIDE; p++) {
#pragma unroll
      for (int r = 0; r < STRIPS; r++) carry(d[r], c_map, memory + p * STAGE_BYTES, part, consumer, r * WIDE + p);
    }
    if (threadIdx.x % 32 == 0) wait_until_read<0>();
  }
}
