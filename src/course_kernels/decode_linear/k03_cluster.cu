// A linear layer of a step of decoding, kernel 3: a cluster shares a tile, and nobody waits for memory but the copies.
//
// Contract  problem.py, M <= 32      Launcher  k03_cluster.py
// Idea      the blocks of a cluster cut K among them and add their sums through each other's shared memory: no parts in
//           memory, no fence, no ticket. In a block one warp asks the copy engine for boxes, as far ahead as there is
//           room, and for the first weights before the last grid has ended; one weighs the numbers of x for the norm
//           where they lie; two warpgroups multiply. While they finish a tile the boxes of the next ones come
// Against   k02_even, whose parts meet in memory: written, fenced, counted by a ticket and read again, one latency after
//           the other at the end of every kernel. Here whole tiles are shared out, so some blocks may have one less
// Cost      each weight crosses memory once; x comes from L2 once for each 128 rows of weights
// Limits    Hopper; 32 rows of x. The product takes 16 rows of x or 32, so fewer are zeros that are multiplied, too
// Source    CUDA C++ Programming Guide, clusters and programmatic dependent launch; CUTLASS, Efficient GEMM
#include "hopper/other_blocks.cuh"
#include "hopper/tma.cuh"
#include "hopper/warpgroup.cuh"
#include "boxes.cuh"

// Of the launcher, besides the macros of boxes.cuh: BLOCKS (of a cluster).
constexpr int SUMS = (2 * HALF + 1) * PITCH;         // a block's part of a tile, and the squares of x
constexpr int OWN = HALF / BLOCKS;                   // pairs of rows of weights that a block finishes
constexpr int ARRIVALS = BLOCKS * MULTIPLYING / 32;  // one of each warp that multiplies, in the whole cluster

// --- the kernel -------------------------------------------------------------

// grid: clusters * BLOCKS, in clusters of BLOCKS      block: THREADS      dynamic shared memory: see the launcher
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    decode_linear_cluster(const __grid_constant__ TensorMap x_map,   // [M, K], box ROWS x 64
                          const __grid_constant__ TensorMap first,   // [N, K], box BOX x 64: weights; of the gate; of queries
                          const __grid_constant__ TensorMap second,  // GATE: up; ROPE: of keys
                          const __grid_constant__ TensorMap third,   // ROPE: of values
                          const unsigned short *g,                   // NORM: [K]
                          const unsigned short *residual, const float *cos, const float *sin, const long long *position,
                          unsigned short *y, unsigned short *k_cache, unsigned short *v_cache, int M, int N, int tiles,
                          int pieces, float epsilon, int H, int KV, int room) {
  extern __shared__ __align__(1024) char memory[];
  float *sums = reinterpret_cast<float *>(memory + STAGES * STAGE_BYTES);  // [2, SUMS], by tiles in turn
  float *squares = sums + 2 * SUMS;                                        // [2, ROWS], likewise
  Barrier *full = reinterpret_cast<Barrier *>(squares + 2 * ROWS);         // [STAGES]: the boxes are there
  Barrier *weighed = full + STAGES, *empty = weighed + STAGES;             // [STAGES]
  Barrier *copied = empty + STAGES, *added = copied + 2, *read = added + 2;  // [2]: squares taken; sums there; sums read
  const int warp = same_in_warp(threadIdx.x / 32), lane = threadIdx.x % 32;
  const int rank = cluster_rank(), cluster = blockIdx.x / BLOCKS, clusters = gridDim.x / BLOCKS;
  const int begin = pieces * rank / BLOCKS, end = pieces * (rank + 1) / BLOCKS, each = end - begin;
  const int boxes = cluster < tiles ? ((tiles - 1 - cluster) / clusters + 1) * each : 0;
  if (threadIdx.x == FETCHING * 32) {
    for (int s = 0; s < STAGES; s++) {
      barrier_init(&full[s], 1);
      barrier_init(&weighed[s], 32);
      barrier_init(&empty[s], MULTIPLYING / 32);
    }
    for (int turn = 0; turn < 2; turn++) {
      barrier_init(&copied[turn], MULTIPLYING);
      barrier_init(&added[turn], ARRIVALS);
      barrier_init(&read[turn], ARRIVALS);
    }
    fence_barrier_init();
  }
  let_next_grid_begin();
  __syncwarp();
  cluster_arrive();

  if (warp == FETCHING) {
    const Weights from = {first, second, third, H, KV};
    const CachePolicy once = evict_first();
    auto column_of = [&](int box) { return (begin + box % each) * PIECE; };
    auto weights = [&](int box) {
      const int s = box % STAGES;
      bring_weights(memory + s * STAGE_BYTES, &full[s], from, once, cluster + box / each * clusters, column_of(box));
    };
    auto rows = [&](int box) {
      bring_x(memory + box % STAGES * STAGE_BYTES, &full[box % STAGES], x_map, column_of(box));
    };
    const int ahead = min(STAGES, boxes);
    if (lane == 0) {
      for (int box = 0; box < ahead; box++) weights(box);
      wait_for_last_grid();  // weights were there before; x may be its work
      for (int box = 0; box < ahead; box++) rows(box);
    }
    __syncwarp();
    cluster_wait();
    if (lane == 0) {
      for (int box = ahead; box < boxes; box++) {
        wait(&empty[box % STAGES], box / STAGES & 1 ^ 1);
        weights(box);
        rows(box);
      }
    }
  } else {
    cluster_wait();  // the barriers of all blocks are there
  }

  if (warp == WEIGHING && NORM) {
    float of_row[ROWS / 4] = {};
    for (int box = 0, turn = 0; box < boxes; box++) {
      const int s = box % STAGES, piece = begin + box % each;
      const uint4 by = __ldg(reinterpret_cast<const uint4 *>(g + piece * PIECE + lane % 8 * 8));
      wait(&full[s], box / STAGES & 1);
      weigh(memory + s * STAGE_BYTES, by, of_row);
      if (piece == end - 1) {
        wait(&copied[turn % 2], turn / 2 & 1 ^ 1);
        leave_squares(squares + turn % 2 * ROWS, of_row);
        turn++;
      }
      fence_async();  // the tensor cores will read what threads wrote
      arrive(&weighed[s]);
    }
  } else if (warp < MULTIPLYING / 32) {
    wait_for_last_grid();
    const int half = warp / 4, thread = threadIdx.x;
    const Behind behind = {residual, cos, sin, position, k_cache, v_cache, room, N, H, KV};
    const float K = static_cast<float>(pieces) * PIECE;
    float d[ROWS / 2];
    int box = 0;
    for (int tile = cluster, turn = 0; tile < tiles; tile += clusters, turn++) {
      for (int piece = 0; piece < each; piece++, box++) {
        const int s = box % STAGES, parity = box / STAGES & 1;
        wait(&full[s], parity);
        if (NORM) wait(&weighed[s], parity);
        multiply_box(d, memory + s * STAGE_BYTES, half, piece > 0);
        wgmma_wait<1>();  // the box before is done with
        if (piece > 0 && lane == 0) arrive(&empty[(box - 1) % STAGES]);
      }
      wgmma_wait<0>(d);
      if (lane == 0) arrive(&empty[(box - 1) % STAGES]);

      // Sums are there for the whole cluster, by two sides in turn.
      float *own = sums + turn % 2 * SUMS;
      wait_for_cluster(&read[turn % 2], turn / 2 & 1 ^ 1);
      leave_sums(own, d, half);
      if (NORM) {
        if (thread < ROWS) own[2 * HALF * PITCH + thread] = squares[turn % 2 * ROWS + thread];
        arrive(&copied[turn % 2]);
      }
      __syncwarp();
      if (lane < BLOCKS) arrive_remote(&added[turn % 2], lane);
      wait_for_cluster(&added[turn % 2], turn / 2 & 1);
      for (int i = thread; i < OWN * M; i += MULTIPLYING) {
        const int p = rank * OWN + i % OWN, m = i / OWN;
        float low = 0, high = 0, square = 0;
#pragma unroll
        for (int b = 0; b < BLOCKS; b++) {
          low += float_of_block(own + p * PITCH + m, b);
          high += float_of_block(own + (p + HALF) * PITCH + m, b);
          if (NORM) square += float_of_block(own + 2 * HALF * PITCH + m, b);
        }
        const float scale = NORM ? rsqrtf(square / K + epsilon) : 1;
        finish<HALF>(behind, y, tile, p, m, low * scale, high * scale);
      }
      __syncwarp();
      if (lane < BLOCKS) arrive_remote_after_reading(&read[turn % 2], lane);
    }
  }
  __syncwarp();
  cluster_arrive();  // nobody ends while another reads here
  cluster_wait();
}
