// A linear layer of a step of decoding with 4-bit weights: k01_stream, with a quarter of its bytes.
//
// Contract  that of k01_stream, M <= 32, K a multiple of 128      Launcher  stream_w4.py
// Idea      weights lie as the fragments they will be (cuda/four_bits.py), so a lane copies ahead, for itself alone, the
//           words that its tensor core wants of it, and their scales. Rows that meet behind the product are rows r and
//           r + 8 of one tile: they were packed in that order, so the kernel reads tile after tile, whatever stands behind
// Against   k01_stream, which reads 16 bits of each weight and unpacks none
// Cost      half a byte of each weight, and a hundred-and-twenty-eighth of a scale, cross memory once. A group's scale
//           multiplies the group's sum: 4 numbers instead of 64 weights for each lane. A word, eight weights, costs 11
//           instructions to unpack, and one multiply for each 8 rows of x, empty ones among them: with one row of x
//           that is not far from the time that memory takes, so nothing else may stand in the loop
// Limits    Hopper; 32 rows of x. A warp keeps its columns of x in registers for good, so where K is too long for a block
//           several share it, and the last to come adds their parts, in their order
// Source    Frantar et al. 2024, arXiv:2408.11743 (Marlin); CUDA C++ Programming Guide, programmatic dependent launch;
//           the ticket: CUDA samples, threadFenceReduction
#include "asynchronous_copy.cuh"
#include "hopper/warpgroup.cuh"
#include "matrix_instructions.cuh"
#include "pairs.cuh"
#include "four_bits.cuh"
#include "epilogue.cuh"

// Of the launcher, besides the macros of epilogue.cuh: EIGHTS (times 8 rows of x), WARPS (of a block), STAGES (tiles that a
// warp copies ahead), HELD (groups of 128 columns whose x a warp keeps), RESIDENT (blocks that a multiprocessor has room
// for), and NORM (0 or 1).
#if FLOAT16
using Of = Fp16Weights;
#else
using Of = Bf16Weights;
#endif
constexpr int WARP = 32;
constexpr int THREADS = WARPS * WARP;
constexpr int OF_EIGHT = 4 * WARP;       // sums: 16 rows of weights times 8 of x
constexpr int PART = OF_EIGHT + 8;       // and the squares of those rows of x
constexpr int HALF = 8;                  // rows of weights between two that a lane holds
constexpr int VECTORS = HELD * 2 * 2;    // of 16 bytes, that a lane keeps of a row of x

struct alignas(16) Stage {  // what a warp has of a tile
  uint4 words[HELD][2][WARP];   // of 64 columns each
  unsigned scales[HELD][WARP];  // of rows r and r + 8, for each lane its own copy
};

// grid: (blocks, splits of K)      block: THREADS
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    decode_linear_w4(const unsigned short *x,    // [M, 64 * pieces]
                     const uint4 *words,         // [tiles, pieces, 32]
                     const unsigned *scales,     // [tiles, pieces / 2, 8]
                     const unsigned short *g,    // NORM: [64 * pieces]
                     const unsigned short *residual, const float *cos, const float *sin, const long long *position,
                     unsigned short *y, unsigned short *k_cache, unsigned short *v_cache, int M, int N, int tiles,
                     int pieces, float epsilon, int H, int KV, int room,
                     float *parts,         // [tiles, splits, EIGHTS, PART], for several splits
                     unsigned *tickets) {  // [tiles, EIGHTS], all zero before and after
  extern __shared__ __align__(16) char shared[];
  __shared__ float squares_of_warps[WARPS][EIGHTS * 8];
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, r = lane / 4, c = lane % 4, splits = gridDim.y;
  const int groups = pieces / 2;
  const long long K = 64LL * pieces;
  Stage *ring = reinterpret_cast<Stage *>(shared) + warp * STAGES;
  float4 *sums_of_warps = reinterpret_cast<float4 *>(shared + WARPS * STAGES * sizeof(Stage));  // [2, WARPS, EIGHTS, WARP]

  // The groups of this warp, the same ones of every tile: at the end of K some may be missing, or all.
  const int begin = (blockIdx.y * WARPS + warp) * HELD, mine = groups - begin;
  const long long column = begin * 128LL + c * 8;

  const long long at_first = static_cast<long long>(blockIdx.x) * groups + begin;
  const long long step = static_cast<long long>(gridDim.x) * groups;
  const uint4 *next_words = words + at_first * 64 + lane;
  const unsigned *next_scales = scales + at_first * 8 + r;
  int tile_asked = blockIdx.x;
  Stage *asked = ring;
  auto ask = [&] {  // for the next tile; nothing past the last
    if (tile_asked < tiles) {
#pragma unroll
      for (int group = 0; group < HELD; group++) {
        if (group >= mine) break;
        copy_16_bytes(&asked->words[group][0][lane], next_words + group * 64);
        copy_16_bytes(&asked->words[group][1][lane], next_words + group * 64 + 32);
        copy_4_bytes(&asked->scales[group][lane], next_scales + group * 8);
      }
    }
    next_words += step * 64, next_scales += step * 8, tile_asked += gridDim.x;
    asked = asked + 1 == ring + STAGES ? ring : asked + 1;
    close_group();
  };
  let_next_grid_begin();
#pragma unroll
  for (int stage = 0; stage < STAGES; stage++) ask();
  uint4 of_g[NORM ? VECTORS : 1];  // a weight, too
  if (NORM) {
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
      of_g[i] = {0, 0, 0, 0};
      if (i / 4 < mine) of_g[i] = __ldg(reinterpret_cast<const uint4 *>(g + column + i * 32));
    }
  }

  // Weights were there before; x may be the work of the last grid.
  wait_for_last_grid();
  unsigned held[VECTORS][EIGHTS][4];
  float squares[EIGHTS] = {};
#pragma unroll
  for (int i = 0; i < VECTORS; i++) {
#pragma unroll
    for (int eight = 0; eight < EIGHTS; eight++) {
      const int m = eight * 8 + r;
      uint4 numbers = {0, 0, 0, 0};  // rows that x has not
      if (m < M && i / 4 < mine) numbers = __ldcg(reinterpret_cast<const uint4 *>(x + m * K + column + i * 32));
      const unsigned both[4] = {numbers.x, numbers.y, numbers.z, numbers.w};
      const unsigned by[4] = {of_g[NORM * i].x, of_g[NORM * i].y, of_g[NORM * i].z, of_g[NORM * i].w};
#pragma unroll
      for (int j = 0; j < 4; j++) {
        held[i][eight][j] = both[j];
        if (NORM) {
          const float a = Of::first(both[j]), b = Of::second(both[j]);
          squares[eight] += a * a + b * b;
          held[i][eight][j] = Of::times(both[j], by[j]);
        }
      }
    }
  }
#pragma unroll
  for (int eight = 0; NORM && eight < EIGHTS; eight++) {
    squares[eight] += __shfl_xor_sync(0xffffffffu, squares[eight], 1);
    squares[eight] += __shfl_xor_sync(0xffffffffu, squares[eight], 2);
    if (c == 0) squares_of_warps[warp][eight * 8 + r] = squares[eight];
  }

  // threadIdx.y is always 0, but the compiler cannot know: the constant stays in a register.
  const unsigned nibbles = NIBBLES | threadIdx.y;
  const Stage *stage = ring;
  int side = 0, turn = 0;
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    wait_for_all_but<STAGES - 1>();
    float sum[EIGHTS][4] = {};  // rows r and r + 8 of the weights, two rows of x each
#pragma unroll
    for (int group = 0; group < HELD; group++) {
      if (group >= mine) break;
      float of_group[EIGHTS][4] = {};
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const uint4 four = stage->words[group][half][lane];
        const unsigned word[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int j = 0; j < 4; j++) {
          unsigned a[4];
          unpack<Of>(a, word[j], nibbles);
#pragma unroll
          for (int eight = 0; eight < EIGHTS; eight++)
            Of::Number::multiply(of_group[eight], a, &held[group * 4 + half * 2 + j / 2][eight][j % 2 * 2]);
        }
      }
      const unsigned pair = stage->scales[group][lane];
      const float scale[2] = {Of::first(pair), Of::second(pair)};
#pragma unroll
      for (int i = 0; i < EIGHTS * 4; i++) sum[i / 4][i % 4] += scale[i % 4 / 2] * of_group[i / 4][i % 4];
    }
    ask();  // into the place that was just read
    stage = stage + 1 == ring + STAGES ? ring : stage + 1;

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
