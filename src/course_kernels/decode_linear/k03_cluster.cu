// A linear layer of a step of decoding, kernel 2: a cluster shares a tile, and nobody waits for memory but the copies.
//
// Contract  problem.py, M <= 32      Launcher  k02_cluster.py
// Idea      the blocks of a cluster cut K among them and add their sums through each other's shared memory: no parts in
//           memory, no fence, no ticket. In a block one warp asks the copy engine for boxes, as far ahead as there is
//           room, and for the first weights before the last grid has ended; one weighs the numbers of x for the norm
//           where they lie; two warpgroups multiply. While they finish a tile the boxes of the next ones come
// Against   k01_stream: there a warp holds its columns of x in registers. 32 rows of x are too many for that, and so is
//           a long K: it is cut among blocks that meet in memory, and their warps wait for it at every tile
// Cost      each weight crosses memory once; x comes from L2 once for each 128 rows of weights
// Limits    Hopper; 32 rows of x. The product takes 16 rows of x or 32, so fewer are zeros that are multiplied, too
// Source    CUDA C++ Programming Guide, clusters and programmatic dependent launch; CUTLASS, Efficient GEMM
#include "hopper/other_blocks.cuh"
#include "hopper/tma.cuh"
#include "hopper/warpgroup.cuh"

// Of the launcher: FLOAT16, ROWS (of x that a product takes: 16 or 32), BLOCKS (of a cluster), STAGES, NORM (0 or 1),
// BEHIND, and HEAD, numbers of a head.
enum { NOTHING, ADD, GATE, ROPE };
#if FLOAT16
using Type = F16x16;
#else
using Type = Bf16x16;
#endif
using Narrow = unsigned short;
constexpr int PIECE = 64;  // columns of a box: 128 bytes, a row of the swizzle
constexpr int HALF = 64;   // rows of weights of a warpgroup: its row p and that of the other meet in what stands behind
constexpr int BOX = BEHIND == ROPE && HEAD == 64 ? 32 : HALF;  // rows of a box
constexpr unsigned ROW_BYTES = 128, HALF_BYTES = HALF * ROW_BYTES;
constexpr unsigned STAGE_BYTES = 2 * HALF_BYTES + ROWS * ROW_BYTES;
constexpr int PITCH = ROWS + 1;                 // floats of a row of sums: rows begin in different banks
constexpr int SUMS = (2 * HALF + 1) * PITCH;    // a block's part of a tile, and the squares of x
constexpr int MULTIPLYING = 256, FETCHING = 8, WEIGHING = 9;  // threads; numbers of the two warps
constexpr int THREADS = MULTIPLYING + 128;      // two more warps stand idle: a block is made of warpgroups
constexpr int OWN = HALF / BLOCKS;              // pairs of rows of weights that a block finishes
constexpr int ARRIVALS = BLOCKS * MULTIPLYING / 32;  // one of each warp that multiplies, in the whole cluster

__device__ inline Narrow narrow(float x) { return static_cast<Narrow>(rounded_pair<Type>(x, 0.0f)); }
__device__ inline float wide(Narrow x) { return unpacked<Type>(x, false); }

// --- what stands behind -----------------------------------------------------

struct Behind {
  const Narrow *residual;     // ADD: [M, N], may be y
  const float *cos, *sin;     // ROPE: [M, HEAD / 2]
  const long long *position;  // ROPE: [M]
  Narrow *k_cache, *v_cache;  // ROPE: [M, KV, room, HEAD]
  int room, N, H, KV;         // N: columns of y; ROPE: of queries
};

// Two sums of a tile, its rows p and p + 64, and one row of x.
__device__ inline void finish(const Behind &to, Narrow *y, int tile, int p, int m, float low, float high) {
  if (BEHIND == GATE) {
    const int n = tile * HALF + p;
    if (n < to.N) y[static_cast<long long>(m) * to.N + n] = narrow(low / (1.0f + power_of_2(-1.44269504f * low)) * high);
    return;
  }
  if (BEHIND == ROPE) {
    const int pairs = HEAD / 2, head = tile * (HALF / pairs) + p / pairs, pair = p % pairs;
    if (head >= to.H + 2 * to.KV) return;
    const bool is_value = head >= to.H + to.KV;
    const float c = is_value ? 1 : to.cos[m * pairs + pair], s = is_value ? 0 : to.sin[m * pairs + pair];
    Narrow *place = y + (static_cast<long long>(m) * to.H + head) * HEAD;
    if (head >= to.H) {
      const long long position = to.position[m];
      if (position < 0 || position >= to.room) return;  // the host does not look at it
      Narrow *cache = is_value ? to.v_cache : to.k_cache;
      place = cache + ((static_cast<long long>(m) * to.KV + (head - to.H) % to.KV) * to.room + position) * HEAD;
    }
    place[pair] = narrow(low * c - high * s);
    place[pair + pairs] = narrow(high * c + low * s);
    return;
  }
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const int n = tile * 2 * HALF + half * HALF + p;
    if (n >= to.N) return;
    const long long at = static_cast<long long>(m) * to.N + n;
    const float sum = half ? high : low;
    y[at] = narrow(BEHIND == ADD ? sum + wide(to.residual[at]) : sum);
  }
}

// --- the kernel -------------------------------------------------------------

// grid: clusters * BLOCKS, in clusters of BLOCKS      block: THREADS      dynamic shared memory: see the launcher
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    decode_linear_cluster(const __grid_constant__ TensorMap x_map,   // [M, K], box ROWS x 64
                          const __grid_constant__ TensorMap first,   // [N, K], box BOX x 64: weights; of the gate; queries
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
    const CachePolicy once = evict_first();
    auto weights = [&](int box) {
      const int s = box % STAGES, tile = cluster + box / each * clusters, column = (begin + box % each) * PIECE;
      arrive_and_expect_bytes(&full[s], STAGE_BYTES);
#pragma unroll
      for (int i = 0; i < 2 * HALF / BOX; i++) {
        const int half = i / (HALF / BOX);
        char *to = memory + s * STAGE_BYTES + i * BOX * ROW_BYTES;
        if (BEHIND == GATE) {
          load_tile(to, half ? second : first, &full[s], once, column, tile * HALF);
        } else if (BEHIND == ROPE) {
          const int head = tile * (2 * HALF / HEAD) + i % (HALF / BOX);
          const int own = head < H ? head : head < H + KV ? head - H : head - H - KV;  // past the last one: zeros
          load_tile(to, head < H ? first : head < H + KV ? second : third, &full[s], once, column,
                    own * HEAD + half * (HEAD / 2));
        } else {
          load_tile(to, first, &full[s], once, column, tile * 2 * HALF + half * HALF);
        }
      }
    };
    auto rows = [&](int box) {
      load_tile(memory + box % STAGES * STAGE_BYTES + 2 * HALF_BYTES, x_map, &full[box % STAGES],
                (begin + box % each) * PIECE, 0);
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
    float of_row[ROWS / 4] = {};  // squares of x, of row lane / 8 + 4 * i
    const int c = lane % 8;
    for (int box = 0, turn = 0; box < boxes; box++) {
      const int s = box % STAGES, piece = begin + box % each;
      const uint4 by = __ldg(reinterpret_cast<const uint4 *>(g + piece * PIECE + c * 8));
      const unsigned weight[4] = {by.x, by.y, by.z, by.w};
      wait(&full[s], box / STAGES & 1);
      char *rows = memory + s * STAGE_BYTES + 2 * HALF_BYTES;
#pragma unroll
      for (int i = 0; i < ROWS / 4; i++) {
        uint4 *place = reinterpret_cast<uint4 *>(rows + swizzled((lane / 8 + 4 * i) * ROW_BYTES + c * 16));
        const uint4 numbers = *place;
        unsigned both[4] = {numbers.x, numbers.y, numbers.z, numbers.w};
#pragma unroll
        for (int j = 0; j < 4; j++) {
          const float a = unpacked<Type>(both[j], false), b = unpacked<Type>(both[j], true);
          of_row[i] += a * a + b * b;
          both[j] = rounded_pair<Type>(a * unpacked<Type>(weight[j], false), b * unpacked<Type>(weight[j], true));
        }
        *place = {both[0], both[1], both[2], both[3]};
      }
      if (piece == end - 1) {
        wait(&copied[turn % 2], turn / 2 & 1 ^ 1);
#pragma unroll
        for (int i = 0; i < ROWS / 4; i++) {
          for (int step = 1; step < 8; step *= 2) of_row[i] += __shfl_xor_sync(0xffffffffu, of_row[i], step);
          if (c == 0) squares[turn % 2 * ROWS + lane / 8 + 4 * i] = of_row[i];
          of_row[i] = 0;
        }
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
        const char *stage = memory + s * STAGE_BYTES;
        const Descriptor a = k_major(address_in_shared(stage + half * HALF_BYTES));
        const Descriptor b = k_major(address_in_shared(stage + 2 * HALF_BYTES));
        wgmma_fence(d);
#pragma unroll
        for (int k = 0; k < PIECE / 16; k++)
          products<ROWS, Type>(d, advance(a, k * 32), advance(b, k * 32), piece > 0 || k > 0);
        wgmma_commit();
        wgmma_wait<1>();  // the box before is done with
        if (piece > 0 && lane == 0) arrive(&empty[(box - 1) % STAGES]);
      }
      wgmma_wait<0>(d);
      if (lane == 0) arrive(&empty[(box - 1) % STAGES]);

      // Sums are there for the whole cluster, by two sides in turn.
      float *own = sums + turn % 2 * SUMS;
      wait_for_cluster(&read[turn % 2], turn / 2 & 1 ^ 1);
      const int row = half * HALF + warp % 4 * 16 + lane / 4, column = lane % 4 * 2;
#pragma unroll
      for (int i = 0; i < ROWS / 2; i++) own[(row + i % 4 / 2 * 8) * PITCH + i / 4 * 8 + column + i % 2] = d[i];
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
        finish(behind, y, tile, p, m, low * scale, high * scale);
      }
      __syncwarp();
      if (lane < BLOCKS) arrive_remote_after_reading(&read[turn % 2], lane);
    }
  }
  __syncwarp();
  cluster_arrive();  // nobody ends while another reads here
  cluster_wait();
}
