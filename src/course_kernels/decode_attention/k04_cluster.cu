// Decode attention, kernel 4: the blocks that share a head are a cluster, and what is old of the cache is asked for early.
//
// Contract  problem.py, 16-bit numbers, at most 16 query heads for a head of the cache      Launcher  k04_cluster.py
// Idea      a step of decoding with one reader waits for latencies, not for bytes. Three of them go. Parts are added
//           through the shared memory of the cluster, and no fence and no ticket goes through L2. A warp copies the
//           tokens that it looks at for itself, so nobody waits at a barrier before the end. And EARLY it asks for
//           the first of them while the last grid still runs: of the cache that grid makes only the newest token
// Against   k03_early, which begins early and then has nothing to ask for, and adds parts through memory
// Cost      as k02_split, and no parts in memory
// Limits    Hopper; D = 64 or 128. EARLY: the lengths, and all tokens but the newest, are older than the last grid
// Source    Dao et al. 2023, Flash-Decoding; CUDA C++ Programming Guide, clusters and programmatic dependent launch
#include "asynchronous_copy.cuh"
#include "hopper/other_blocks.cuh"
#include "hopper/warpgroup.cuh"
#include "matrix_instructions.cuh"

// Of the launcher: FLOAT16, D, SHARE (query heads for a head of the cache), BLOCKS (of a cluster), STAGES, EARLY.
#if FLOAT16
using Number = Fp16;
#else
using Number = Bf16;
#endif
using Narrow = unsigned short;
constexpr int WARP = 32, WARPS = 4, THREADS = WARPS * WARP;
constexpr int TOKENS = 16;               // that a warp takes at a time
constexpr int CHUNKS = D / 8;            // pieces of 16 bytes of a row
constexpr int ROW_BYTES = 2 * D, TILE_BYTES = TOKENS * ROW_BYTES, STAGE_BYTES = 2 * TILE_BYTES;  // K and V
constexpr int NUMBERS = SHARE * D;       // that a head of the cache answers with
constexpr float NEVER = -1e30f;          // no score is so small; and its difference to itself is 0, not NaN

// Where a piece of a row lies in its tile: eight rows have a column's pieces in eight places.
__device__ inline int place(int row, int chunk) { return row * ROW_BYTES + (chunk ^ row & 7) * 16; }

// grid: (BLOCKS, KV, B), clusters of BLOCKS      block: THREADS      dynamic shared memory: see the launcher
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    decode_attention_cluster(const unsigned short *Q,  // [B, KV * SHARE, D]
                             const unsigned short *K,  // [B, KV, N, D]
                             const unsigned short *V, const int *lengths, unsigned short *O, int N, float scale) {
  extern __shared__ __align__(128) char memory[];
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, r = lane / 4, c = lane % 4;
  const long long head = static_cast<long long>(blockIdx.z) * gridDim.y + blockIdx.y;
  const Narrow *keys = K + head * N * D, *values = V + head * N * D;
  char *ring = memory + warp * STAGES * STAGE_BYTES;

  let_next_grid_begin();
  if (!EARLY) wait_for_last_grid();
  const int length = max(min(lengths[blockIdx.z], N), 0), newest = length - 1;
  const int tiles = (length + TOKENS - 1) / TOKENS, each = (tiles + BLOCKS * WARPS - 1) / (BLOCKS * WARPS);
  const int begin = (blockIdx.x * WARPS + warp) * each, mine = max(min(each, tiles - begin), 0);

  // Rows past the end come as zeros: a weight of zero times the NaN that may lie there is NaN.
  auto copy_row = [&](char *stage, int row, int token, int chunk) {
    const int take = token < length ? 16 : 0;
    const long long from = (take ? static_cast<long long>(token) : 0) * D + chunk * 8;
    copy_16_bytes(stage + place(row, chunk), keys + from, take);
    copy_16_bytes(stage + TILE_BYTES + place(row, chunk), values + from, take);
  };
  auto ask = [&](int tile, bool before) {
    if (tile < mine) {
      char *stage = ring + tile % STAGES * STAGE_BYTES;
#pragma unroll
      for (int i = 0; i < TOKENS * CHUNKS / WARP; i++) {
        const int row = (i * WARP + lane) / CHUNKS, token = (begin + tile) * TOKENS + row;
        if (!before || token != newest) copy_row(stage, row, token, lane % CHUNKS);
      }
    }
    close_group();
  };
#pragma unroll
  for (int tile = 0; tile < STAGES; tile++) ask(tile, EARLY);
  const int tile_of_newest = newest / TOKENS - begin;  // where it is none of this warp's, nobody comes to it
  if (EARLY) {
    wait_for_last_grid();
    if (length > 0 && tile_of_newest >= 0 && tile_of_newest < min(mine, STAGES) && lane < CHUNKS)
      copy_row(ring + tile_of_newest % STAGES * STAGE_BYTES, newest % TOKENS, newest, lane);
    close_group();
  }

  unsigned q[D / 16][4];
#pragma unroll
  for (int k = 0; k < D / 16; k++) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int row = r + i % 2 * 8, column = k * 16 + i / 2 * 8 + 2 * c;
      q[k][i] = row < SHARE ? __ldcg(reinterpret_cast<const unsigned *>(Q + (head * SHARE + row) * D + column)) : 0;
    }
  }

  float o[D / 8][4] = {}, most[2] = {NEVER, NEVER}, weight[2] = {};
  for (int tile = 0; tile < mine; tile++) {
    if (EARLY && tile == tile_of_newest) {
      wait_for_all_but<0>();  // the newest token came last
    } else {
      wait_for_all_but<STAGES - 1>();
    }
    __syncwarp();  // what the other lanes have copied
    const char *stage = ring + tile % STAGES * STAGE_BYTES;
    float s[2][4] = {};
#pragma unroll
    for (int k = 0; k < D / 16; k++) {
      unsigned b[4];  // tokens 0 to 7 and 8 to 15, 16 of their numbers
      load_matrices(b, stage + place(lane % 8 + lane / 16 * 8, 2 * k + lane / 8 % 2));
      Number::multiply(s[0], q[k], b);
      Number::multiply(s[1], q[k], b + 2);
    }
    unsigned p[4];
#pragma unroll
    for (int half = 0; half < 2; half++) {  // rows r and r + 8
      float now = most[half];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        float &x = s[i / 2][2 * half + i % 2];
        x = (begin + tile) * TOKENS + i / 2 * 8 + 2 * c + i % 2 < length ? x * scale : NEVER;
        now = fmaxf(now, x);
      }
      now = fmaxf(now, __shfl_xor_sync(0xffffffffu, now, 1));
      now = fmaxf(now, __shfl_xor_sync(0xffffffffu, now, 2));
      const float repair = power_of_2(most[half] - now);
      most[half] = now;
      weight[half] *= repair;
#pragma unroll
      for (int j = 0; j < 2; j++) {
        const float first = power_of_2(s[j][2 * half] - now), second = power_of_2(s[j][2 * half + 1] - now);
        weight[half] += first + second;  // of this lane's tokens; lanes are added at the end
        p[2 * j + half] = Number::pair(first, second);
      }
#pragma unroll
      for (int j = 0; j < D / 8; j++) o[j][2 * half] *= repair, o[j][2 * half + 1] *= repair;
    }
#pragma unroll
    for (int j = 0; j < D / 16; j++) {
      unsigned b[4];  // 16 tokens, eight of their numbers and the next eight
      load_matrices_transposed(b, stage + TILE_BYTES + place(lane % 8 + lane / 8 % 2 * 8, 2 * j + lane / 16));
      Number::multiply(o[2 * j], p, b);
      Number::multiply(o[2 * j + 1], p, b + 2);
    }
    __syncwarp();  // all have read what is written next
    ask(tile + STAGES, false);
  }

  // The warps of the block, then the blocks of the cluster, in their order.
  wait_for_all_but<0>();
  __syncthreads();  // the ring becomes sums
  float *sums = reinterpret_cast<float *>(memory);        // [WARPS, SHARE, D]
  float *scales = sums + WARPS * NUMBERS;                 // [WARPS, SHARE, 2]: maxima and weights
  float *of_block = scales + WARPS * SHARE * 2;           // [SHARE, D]
  float *scales_of_block = of_block + NUMBERS;            // [SHARE, 2]
#pragma unroll
  for (int half = 0; half < 2; half++) {
    weight[half] += __shfl_xor_sync(0xffffffffu, weight[half], 1);
    weight[half] += __shfl_xor_sync(0xffffffffu, weight[half], 2);
    const int row = r + half * 8;
    if (row < SHARE) {
      if (c == 0) scales[(warp * SHARE + row) * 2] = most[half], scales[(warp * SHARE + row) * 2 + 1] = weight[half];
#pragma unroll
      for (int j = 0; j < D / 8; j++) {
        float *to = sums + (warp * SHARE + row) * D + j * 8 + 2 * c;
        to[0] = o[j][2 * half], to[1] = o[j][2 * half + 1];
      }
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < NUMBERS; i += THREADS) {
    const int row = i / D;
    float top = NEVER, total = 0, sum = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++) top = fmaxf(top, scales[(w * SHARE + row) * 2]);
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
      const float repair = power_of_2(scales[(w * SHARE + row) * 2] - top);
      total += repair * scales[(w * SHARE + row) * 2 + 1];
      sum += repair * sums[w * NUMBERS + i];
    }
    if (BLOCKS == 1) {
      O[head * NUMBERS + i] = static_cast<Narrow>(Number::pair(total > 0 ? sum / total : 0, 0));
    } else {
      of_block[i] = sum;
      if (i % D == 0) scales_of_block[row * 2] = top, scales_of_block[row * 2 + 1] = total;
    }
  }
  if (BLOCKS > 1) {
    cluster_arrive();
    cluster_wait();
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < NUMBERS; i += BLOCKS * THREADS) {
      const int row = i / D;
      float tops[BLOCKS], top = NEVER, total = 0, sum = 0;
#pragma unroll
      for (int b = 0; b < BLOCKS; b++) top = fmaxf(top, tops[b] = float_of_block(scales_of_block + row * 2, b));
#pragma unroll
      for (int b = 0; b < BLOCKS; b++) {
        const float repair = power_of_2(tops[b] - top);
        total += repair * float_of_block(scales_of_block + row * 2 + 1, b);
        sum += repair * float_of_block(of_block + i, b);
      }
      O[head * NUMBERS + i] = static_cast<Narrow>(Number::pair(total > 0 ? sum / total : 0, 0));
    }
    cluster_arrive();  // nobody ends while another reads here
    cluster_wait();
  }
}
