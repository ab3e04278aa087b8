// A linear layer of a step of decoding, kernel 1: a stream of weights that never stops, and what stands around the layer.
//
// Contract  problem.py, M <= 32      Launcher  k01_stream.py
// Idea      a lane copies ahead, for itself alone, the very 16 bytes that it will hand to its tensor core: no barrier, no
//           exchange. Weights are the rows of a product, 16 of them at a time, and x, which has few rows, its columns. The
//           first weights are asked for before the last grid has ended: no weight is its work. So memory has something to
//           do while one layer ends and the next begins
// Around    before it the norm of x: a row's 1 / rms is one number, and is multiplied in at the end. Behind it the residual,
//           or the gate, or the rotation of queries and keys, which then go into the cache. Whatever two rows of weights
//           must meet there are rows r and r + 8 of one tile, whose sums the same lane holds
// Cost      each weight crosses memory once. x comes from L2, once for each block
// Limits    Hopper; 32 rows of x. A warp keeps its columns of x in registers for good, so where K is too long for a block
//           several share it, and the last to come adds their parts, in their order
// Source    Frantar et al. 2024, arXiv:2408.11743 (who copies for whom); CUDA C++ Programming Guide, programmatic dependent
//           launch; the ticket: CUDA samples, threadFenceReduction
#include "asynchronous_copy.cuh"
#include "hopper/warpgroup.cuh"
#include "matrix_instructions.cuh"
#include "epilogue.cuh"

// Of the launcher, besides the macros of epilogue.cuh: EIGHTS (times 8 rows of x), WARPS (of a block), STAGES (pieces of 64
// columns that a warp copies ahead), HELD (pieces whose x a warp keeps), RESIDENT (blocks that a multiprocessor has room
// for), and NORM (0 or 1).
#if FLOAT16
using Number = Fp16;
#else
using Number = Bf16;
#endif
constexpr int WARP = 32;
constexpr int THREADS = WARPS * WARP;
constexpr int OF_EIGHT = 4 * WARP;       // sums: 16 rows of weights times 8 of x
constexpr int PART = OF_EIGHT + 8;       // and the squares of those rows of x
constexpr int HALF = 8;                  // rows of weights between two that a lane holds

struct alignas(16) Stage {
  uint4 numbers[2][2][WARP];  // of each half of a piece: rows r and r + 8
};

struct Weights {
  const Narrow *first, *second, *third;  // GATE: gate and up; ROPE: of queries, keys and values
  int H, KV;
};

// Where the rows of a lane begin.
struct Rows {
  const Narrow *low, *high;
};

__device__ inline Rows rows_of(const Weights &w, int tile, int r, long long K) {
  if (BEHIND == GATE) {
    const long long row = (tile * 8LL + r) * K;
    return {w.first + row, w.second + row};
  }
  if (BEHIND == ROPE) {
    const int head = tile / (HEAD / 16), pair = tile % (HEAD / 16) * 8 + r;
    const Narrow *of = head < w.H ? w.first : head < w.H + w.KV ? w.second : w.third;
    const int own = head < w.H ? head : (head - w.H) % w.KV;
    const Narrow *low = of + (static_cast<long long>(own) * HEAD + pair) * K;
    return {low, low + HEAD / 2 * K};
  }
  const Narrow *low = w.first + (tile * 16LL + r) * K;
  return {low, low + 8 * K};
}

// --- the kernel -------------------------------------------------------------

// grid: (blocks, splits of K)      block: THREADS
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    decode_linear_stream(const unsigned short *x,       // [M, 64 * pieces]
                         const unsigned short *first,   // [16 * tiles, 64 * pieces]; see Weights
                         const unsigned short *second,  // GATE, ROPE: the same; else nothing
                         const unsigned short *third,   // ROPE
                         const unsigned short *g,       // NORM: [64 * pieces]
                         const unsigned short *residual, const float *cos, const float *sin, const long long *position,
                         unsigned short *y, unsigned short *k_cache, unsigned short *v_cache, int M, int N, int tiles,
                         int pieces, float epsilon, int H, int KV, int room,
                         float *parts,         // [tiles, splits, EIGHTS, PART], for several splits
                         unsigned *tickets) {  // [tiles, EIGHTS], all zero before and after
  extern __shared__ __align__(16) char shared[];
  __shared__ float squares_of_warps[WARPS][EIGHTS * 8];
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, r = lane / 4, c = lane % 4, splits = gridDim.y;
  const long long K = 64LL * pieces;
  const Weights weights = {first, second, third, H, KV};
  Stage *ring = reinterpret_cast<Stage *>(shared) + warp * STAGES;
  float4 *sums_of_warps = reinterpret_cast<float4 *>(shared + WARPS * STAGES * sizeof(Stage));  // [2, WARPS, EIGHTS, WARP]

  // The pieces of this warp, the same ones of every tile: at the end of K some may be missing, or all.
  const int begin = (blockIdx.y * WARPS + warp) * HELD, mine = max(min(HELD, pieces - begin), 0);
  const long long column = begin * 64LL + c * 8;

  int tile_asked = mine ? blockIdx.x : tiles, piece_asked = 0;
  Rows from = rows_of(weights, min(tile_asked, tiles - 1), r, K);
  Stage *asked = ring;
  auto ask = [&] {  // for the next piece; nothing past the last
    if (tile_asked < tiles) {
      const long long at = column + piece_asked * 64;
#pragma unroll
      for (int half = 0; half < 2; half++) {
        copy_16_bytes(&asked->numbers[half][0][lane], from.low + at + half * 32);
        copy_16_bytes(&asked->numbers[half][1][lane], from.high + at + half * 32);
      }
      if (++piece_asked == mine) {
        piece_asked = 0, tile_asked += gridDim.x;
        if (tile_asked < tiles) from = rows_of(weights, tile_asked, r, K);
      }
    }
    asked = asked + 1 == ring + STAGES ? ring : asked + 1;
    close_group();
  };
  let_next_grid_begin();
#pragma unroll
  for (int stage = 0; stage < STAGES; stage++) ask();
  uint4 of_g[NORM ? HELD : 1][2];  // a weight, too
  if (NORM) {
#pragma unroll
    for (int i = 0; i < 2 * HELD; i++) {
      of_g[i / 2][i % 2] = {0, 0, 0, 0};
      if (i / 2 < mine) of_g[i / 2][i % 2] = __ldg(reinterpret_cast<const uint4 *>(g + column + i / 2 * 64 + i % 2 * 32));
    }
  }

  // Weights were there before; x may be the work of the last grid.
  wait_for_last_grid();
  unsigned held[HELD][2][EIGHTS][4];
#pragma unroll
  for (int eight = 0; eight < EIGHTS; eight++) {
    const int m = eight * 8 + r;
    float squares = 0;
#pragma unroll
    for (int i = 0; i < 2 * HELD; i++) {
      uint4 numbers = {0, 0, 0, 0};  // rows that x has not
      if (m < M && i / 2 < mine) numbers = __ldcg(reinterpret_cast<const uint4 *>(x + m * K + column + i / 2 * 64 + i % 2 * 32));
      const unsigned both[4] = {numbers.x, numbers.y, numbers.z, numbers.w};
      const unsigned by[4] = {of_g[NORM * i / 2][i % 2].x, of_g[NORM * i / 2][i % 2].y, of_g[NORM * i / 2][i % 2].z,
                              of_g[NORM * i / 2][i % 2].w};
#pragma unroll
      for (int j = 0; j < 4; j++) {
        held[i / 2][i % 2][eight][j] = both[j];
        if (NORM) {
          const float a = unpacked<Type>(both[j], false), b = unpacked<Type>(both[j], true);
          squares += a * a + b * b;
          held[i / 2][i % 2][eight][j] =
              Number::pair(a * unpacked<Type>(by[j], false), b * unpacked<Type>(by[j], true));
        }
      }
    }
    if (NORM) {
      squares += __shfl_xor_sync(0xffffffffu, squares, 1);
      squares += __shfl_xor_sync(0xffffffffu, squares, 2);
      if (c == 0) squares_of_warps[warp][m] = squares;
    }
  }

  const Stage *stage = ring;
  int side = 0, turn = 0;
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    float sum[EIGHTS][4] = {};  // rows r and r + 8 of the weights, two rows of x each
#pragma unroll
    for (int piece = 0; piece < HELD; piece++) {
      if (piece >= mine) break;
      wait_for_all_but<STAGES - 1>();
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const uint4 low = stage->numbers[half][0][lane], high = stage->numbers[half][1][lane];
        const unsigned a[2][4] = {{low.x, high.x, low.y, high.y}, {low.z, high.z, low.w, high.w}};
#pragma unroll
        for (int j = 0; j < 2; j++) {
#pragma unroll
          for (int eight = 0; eight < EIGHTS; eight++)
            Number::multiply(sum[eight], a[j], &held[piece][half][eight][2 * j]);
        }
      }
      ask();  // into the place that was just read
      stage = stage + 1 == ring + STAGES ? ring : stage + 1;
    }

    // Two sides in turn: who writes the next sums does not wait for who still adds these.
    float4 *all = sums_of_warps + side * WARPS * EIGHTS * WARP;
#pragma unroll
    for (int eight = 0; eight < EIGHTS; eight++)
      all[(warp * EIGHTS + eight) * WARP + lane] = make_float4(sum[eight][0], sum[eight][1], sum[eight][2], sum[eight][3]);
    __syncthreads();  // the sums of all warps are there
    // Another warp adds each time, one for each eight rows of x.
    const int eight = (warp - turn + WARPS) % WARPS;
    turn = (turn + EIGHTS) % WARPS;
    side ^= 1;
    for (int e = eight; e < EIGHTS; e += WARPS) {
      float total[4] = {}, squares[2] = {};
#pragma unroll
      for (int w = 0; w < WARPS; w++) {
        const float4 of_warp = all[(w * EIGHTS + e) * WARP + lane];
        total[0] += of_warp.x, total[1] += of_warp.y, total[2] += of_warp.z, total[3] += of_warp.w;
        if (NORM) squares[0] += squares_of_warps[w][e * 8 + 2 * c], squares[1] += squares_of_warps[w][e * 8 + 2 * c + 1];
      }
      if (splits > 1) {
        float *of_tile = parts + (static_cast<long long>(tile) * splits * EIGHTS + e) * PART;
        float *own = of_tile + blockIdx.y * EIGHTS * PART;
        reinterpret_cast<float4 *>(own)[lane] = make_float4(total[0], total[1], total[2], total[3]);
        if (r == 0) own[OF_EIGHT + 2 * c] = squares[0], own[OF_EIGHT + 2 * c + 1] = squares[1];
        __threadfence();
        __syncwarp();  // all 32 have written before one takes the ticket
        const int before = lane == 0 ? atomicInc(tickets + tile * EIGHTS + e, splits - 1) : 0;
        if (__shfl_sync(0xffffffffu, before, 0) != splits - 1) continue;
        __threadfence();
#pragma unroll
        for (int i = 0; i < 4; i++) total[i] = 0;
        squares[0] = squares[1] = 0;
#pragma unroll 4
        for (int split = 0; split < splits; split++) {
          const float *part = of_tile + split * EIGHTS * PART;
          const float4 others = __ldcg(reinterpret_cast<const float4 *>(part) + lane);
          total[0] += others.x, total[1] += others.y, total[2] += others.z, total[3] += others.w;
          if (NORM) squares[0] += __ldcg(part + OF_EIGHT + 2 * c), squares[1] += __ldcg(part + OF_EIGHT + 2 * c + 1);
        }
      }
      const Behind behind = {residual, cos, sin, position, k_cache, v_cache, room, N, H, KV};
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const int m = e * 8 + 2 * c + i;
        const float scale = NORM ? rsqrtf(squares[i] / K + epsilon) : 1;
        if (m < M) finish<HALF>(behind, y, tile, r, m, total[i] * scale, total[2 + i] * scale);
      }
    }
  }
}
