// A linear layer of a step of decoding, kernel 2: every block reads the same number of weights, and a warp each for what
// is not multiplying.
//
// Contract  problem.py, M <= 32      Launcher  k02_even.py
// Idea      the weights of all tiles lie in one row of boxes, cut into as many equal parts as there are blocks: nobody
//           ends early. Where a cut goes through a tile, its parts are added by whoever comes last, in their order. One
//           warp asks the copy engine for boxes, far ahead, and for the first weights before the last grid has ended; one
//           weighs the numbers of x for the norm where they lie; two warpgroups multiply, and hold up nobody while they
//           finish a tile
// Against   k01_stream: there a warp holds its columns of x in registers, and with 32 rows of x that is too much: K is
//           cut in two, and for every tile warps wait for memory while their block waits for them
// Cost      each weight crosses memory once; x comes from L2 once for each 128 rows of weights
// Limits    Hopper; 32 rows of x. The product takes 16 rows of x or 32, so fewer are zeros that are multiplied, too
// Source    Osama et al. 2023, arXiv:2301.03598 (the even cut: stream-K); CUDA C++ Programming Guide, programmatic
//           dependent launch; the ticket: CUDA samples, threadFenceReduction
#include "hopper/tma.cuh"
#include "hopper/warpgroup.cuh"

// Of the launcher: FLOAT16, ROWS (rows of x that a product takes: 16 or 32), STAGES, RESIDENT (blocks that a
// multiprocessor has room for), NORM (0 or 1), BEHIND, and HEAD, numbers of a head.
enum { NOTHING, ADD, GATE, ROPE };
#if FLOAT16
using Type = F16x16;
#else
using Type = Bf16x16;
#endif
using Narrow = unsigned short;
constexpr int PIECE = 64;  // columns of a box: 128 bytes, a row of the swizzle
constexpr int HALF = 64;   // rows of weights of a warpgroup; its number p and that of the other meet in what stands behind
constexpr int BOX = BEHIND == ROPE && HEAD == 64 ? 32 : HALF;  // rows of a box
constexpr unsigned ROW_BYTES = 128, HALF_BYTES = HALF * ROW_BYTES;
constexpr unsigned STAGE_BYTES = 2 * HALF_BYTES + ROWS * ROW_BYTES;
constexpr int PITCH = ROWS + 1;             // floats of a row of sums: rows begin in different banks
constexpr int PART = (2 * HALF + 1) * ROWS;  // what a block leaves of a tile: sums, and the squares of x
constexpr int MULTIPLYING = 256, FETCHING = 8, WEIGHING = 9;  // threads; numbers of the two warps
constexpr int THREADS = MULTIPLYING + 128;  // two more warps stand idle: a block is made of warpgroups
constexpr int FINISHING = 1;  // the named barrier of those who multiply
constexpr int EACH = ROWS * HALF / MULTIPLYING;  // rows of x of which a thread finishes a number

// Rows of all tiles, in boxes of 64 columns; of these a block takes the ones from `begin` on.
struct Cut {
  int tiles, pieces, blocks;  // pieces: boxes of a row of weights
  __device__ int begin(int block) const { return static_cast<int>(static_cast<long long>(block) * tiles * pieces / blocks); }
  __device__ int block_of(int box) const {
    return static_cast<int>(((box + 1LL) * blocks - 1) / (static_cast<long long>(tiles) * pieces));
  }
};

// A tile, and those of its boxes that are this block's.
struct Part {
  int tile, begin, end;
};

__device__ inline Part part_at(const Cut &cut, int box, int last) {
  const int tile = box / cut.pieces, begin = box - tile * cut.pieces;
  return {tile, begin, min(cut.pieces, begin + last - box)};
}

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

// grid: blocks      block: THREADS      dynamic shared memory: see the launcher
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    decode_linear_even(const __grid_constant__ TensorMap x_map,   // [M, K], box ROWS x 64
                       const __grid_constant__ TensorMap first,   // [N, K], box BOX x 64: weights; of the gate; of queries
                       const __grid_constant__ TensorMap second,  // GATE: up; ROPE: of keys
                       const __grid_constant__ TensorMap third,   // ROPE: of values
                       const unsigned short *g,                   // NORM: [K]
                       const unsigned short *residual, const float *cos, const float *sin, const long long *position,
                       unsigned short *y, unsigned short *k_cache, unsigned short *v_cache,
                       float *parts,       // [2 * blocks, PART]
                       unsigned *tickets,  // [tiles], all zero before and after
                       int M, int N, int tiles, int pieces, float epsilon, int H, int KV, int room) {
  extern __shared__ __align__(1024) char memory[];
  float *sums = reinterpret_cast<float *>(memory + STAGES * STAGE_BYTES);   // [2 * HALF, PITCH]
  float *squares = sums + 2 * HALF * PITCH;                        // [2, ROWS], by parts in turn
  Barrier *full = reinterpret_cast<Barrier *>(squares + 2 * ROWS);  // the boxes are there
  Barrier *weighed = full + STAGES, *empty = weighed + STAGES, *seen = empty + STAGES;  // seen: the squares
  __shared__ unsigned before;
  const int warp = same_in_warp(threadIdx.x / 32), lane = threadIdx.x % 32;
  const Cut cut = {tiles, pieces, static_cast<int>(gridDim.x)};
  const int mine = cut.begin(blockIdx.x), last = cut.begin(blockIdx.x + 1);
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; s++) {
      barrier_init(&full[s], 1);
      barrier_init(&weighed[s], 32);
      barrier_init(&empty[s], MULTIPLYING / 32);
    }
    barrier_init(&seen[0], MULTIPLYING);
    barrier_init(&seen[1], MULTIPLYING);
    fence_barrier_init();
  }
  let_next_grid_begin();
  __syncthreads();

  if (warp == FETCHING) {
    if (lane == 0) {
      const CachePolicy once = evict_first();
      auto weights = [&](int box) {
        const int s = (box - mine) % STAGES, tile = box / pieces, column = (box - tile * pieces) * PIECE;
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
        const int s = (box - mine) % STAGES;
        load_tile(memory + s * STAGE_BYTES + 2 * HALF_BYTES, x_map, &full[s], box % pieces * PIECE, 0);
      };
      const int ahead = min(mine + STAGES, last);
      for (int box = mine; box < ahead; box++) weights(box);
      wait_for_last_grid();  // weights were there before; x may be its work
      for (int box = mine; box < ahead; box++) rows(box);
      for (int box = ahead; box < last; box++) {
        wait(&empty[(box - mine) % STAGES], (box - mine) / STAGES & 1 ^ 1);
        weights(box);
        rows(box);
      }
    }
  } else if (warp == WEIGHING) {
    if (NORM) {
      float of_row[ROWS / 4] = {};  // squares of x, of row lane / 8 + 4 * i
      const int c = lane % 8;
      int turn = 0;
      for (int box = mine; box < last; box++) {
        const int s = (box - mine) % STAGES, piece = box % pieces;
        const uint4 by = __ldg(reinterpret_cast<const uint4 *>(g + piece * PIECE + c * 8));
        const unsigned weight[4] = {by.x, by.y, by.z, by.w};
        wait(&full[s], (box - mine) / STAGES & 1);
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
        if (piece == pieces - 1 || box == last - 1) {
          wait(&seen[turn % 2], turn / 2 & 1 ^ 1);
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
    }
  } else if (warp < MULTIPLYING / 32) {
    wait_for_last_grid();
    const int half = warp / 4, thread = threadIdx.x, p = thread % HALF, first_row = thread / HALF;
    const Behind behind = {residual, cos, sin, position, k_cache, v_cache, room, N, H, KV};
    const long long K = static_cast<long long>(pieces) * PIECE;
    float d[ROWS / 2];
    int box = mine;
    for (int turn = 0; box < last; turn++) {
      const Part part = part_at(cut, box, last);
      for (int piece = part.begin; piece < part.end; piece++, box++) {
        const int s = (box - mine) % STAGES, parity = (box - mine) / STAGES & 1;
        wait(&full[s], parity);
        if (NORM) wait(&weighed[s], parity);
        const char *stage = memory + s * STAGE_BYTES;
        const Descriptor a = k_major(address_in_shared(stage + half * HALF_BYTES));
        const Descriptor b = k_major(address_in_shared(stage + 2 * HALF_BYTES));
        wgmma_fence(d);
#pragma unroll
        for (int k = 0; k < PIECE / 16; k++) products<ROWS, Type>(d, advance(a, k * 32), advance(b, k * 32), piece > part.begin || k > 0);
        wgmma_commit();
        wgmma_wait<1>();  // the box before is done with
        if (piece > part.begin && lane == 0) arrive(&empty[(box - 1 - mine) % STAGES]);
      }
      wgmma_wait<0>(d);
      if (lane == 0) arrive(&empty[(box - 1 - mine) % STAGES]);
      float square[EACH] = {};
      if (NORM) {
#pragma unroll
        for (int i = 0; i < EACH; i++) square[i] = squares[turn % 2 * ROWS + first_row + 4 * i];
        arrive(&seen[turn % 2]);
      }

      const int row = half * HALF + warp % 4 * 16 + lane / 4, column = lane % 4 * 2;
#pragma unroll
      for (int i = 0; i < ROWS / 2; i++)
        sums[(row + i % 4 / 2 * 8) * PITCH + i / 4 * 8 + column + i % 2] = d[i];
      named_barrier_wait(FINISHING, MULTIPLYING);
      float low[EACH], high[EACH];
#pragma unroll
      for (int i = 0; i < EACH; i++) {
        low[i] = sums[p * PITCH + first_row + 4 * i];
        high[i] = sums[(p + HALF) * PITCH + first_row + 4 * i];
      }
      bool is_mine = true;
      if (part.end - part.begin < pieces) {
        // Several blocks share this tile: each leaves its part, and the last one to come adds them.
        float *own = parts + (2LL * blockIdx.x + (turn > 0)) * PART;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
          const int m = first_row + 4 * i;
          own[m * 2 * HALF + p] = low[i];
          own[m * 2 * HALF + HALF + p] = high[i];
          if (NORM && p == 0) own[2 * HALF * ROWS + m] = square[i];
        }
        const int from = cut.block_of(part.tile * pieces), to = cut.block_of(part.tile * pieces + pieces - 1);
        __threadfence();
        named_barrier_wait(FINISHING, MULTIPLYING);
        if (thread == 0) before = atomicInc(tickets + part.tile, to - from);
        named_barrier_wait(FINISHING, MULTIPLYING);
        is_mine = before == to - from;
        if (is_mine) {
          __threadfence();
#pragma unroll
          for (int i = 0; i < EACH; i++) low[i] = high[i] = square[i] = 0;
#pragma unroll 4
          for (int block = from; block <= to; block++) {
            const float *of = parts + (2LL * block + (cut.begin(block) < part.tile * pieces)) * PART;
#pragma unroll
            for (int i = 0; i < EACH; i++) {
              const int m = first_row + 4 * i;
              low[i] += __ldcg(of + m * 2 * HALF + p);
              high[i] += __ldcg(of + m * 2 * HALF + HALF + p);
              if (NORM) square[i] += __ldcg(of + 2 * HALF * ROWS + m);
            }
          }
        }
      }
      if (is_mine) {
#pragma unroll
        for (int i = 0; i < EACH; i++) {
          const int m = first_row + 4 * i;
          const float scale = NORM ? rsqrtf(square[i] / K + epsilon) : 1;
          if (m < M) finish(behind, y, part.tile, p, m, low[i] * scale, high[i] * scale);
        }
      }
      named_barrier_wait(FINISHING, MULTIPLYING);  // sums, and `before`, may be written again
    }
  }
}
