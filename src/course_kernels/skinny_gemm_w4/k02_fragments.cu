// 4-bit weights, kernel 2: weights come as the fragments they will be, and x stays where it is multiplied.
//
// Contract  problem.py, M <= 32      Launcher  k02_fragments.py
// Idea      a lane's load of 16 bytes holds the very weights that its tensor core wants of it (four_bits.py), so each lane
//           copies ahead for itself alone: no barrier, no exchange. Weights take the place of A, 16 rows of them; x,
//           which has few rows, that of B, and a warp keeps its columns of x in registers for good
// Against   k01_triton, which sorts nibbles into a tile, by way of shared memory
// Cost      a block holds 16 rows of weights at a time, its warps share K; their sums meet once in 16 rows. A group's
//           scale multiplies the group's sum: 4 numbers instead of 64 weights for each lane. A word, eight weights,
//           costs 11 instructions to unpack, and one multiply for each 8 rows of x, empty ones among them
// Limits    compute capability 8.0; 32 rows of x: more would not stay in registers. Where K is too long for a block,
//           several share it, and the last to come adds their parts, in their order
// Next      wgmma, which takes A from registers, and up to 128 rows of x from shared memory
// Source    Frantar et al. 2024, arXiv:2408.11743 (Marlin); the ticket: CUDA samples, threadFenceReduction
#include "asynchronous_copy.cuh"
#include "matrix_instructions.cuh"
#include "pairs.cuh"
#include "four_bits.cuh"

// Of the launcher: WEIGHTS, EIGHTS (times 8 rows of x), WARPS (of a block), STAGES (tiles that a warp copies ahead) and
// HELD, groups of 128 columns whose x a warp keeps: each takes 16 registers for 8 rows.
using Of = WEIGHTS;
constexpr int WARP = 32;
constexpr int THREADS = WARPS * WARP;
constexpr int SUMS = EIGHTS * 4 * WARP;  // 16 rows of weights times those of x

struct alignas(16) Stage {  // what a warp has of a tile
  uint4 words[HELD][2][WARP];   // of 64 columns each
  unsigned scales[HELD][WARP];  // of rows r and r + 8, for each lane its own copy
};

// grid: (blocks, splits of K)      block: THREADS
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    skinny_gemm_w4_fragments(const unsigned short *x,               // [M, 128 * groups]
                             const uint4 *__restrict__ words,       // [tiles, groups, 2, 32]
                             const unsigned *__restrict__ scales,   // [tiles, groups, 8]
                             unsigned short *__restrict__ y,        // [M, 16 * tiles]
                             float *parts,                          // [tiles, splits, SUMS], for several splits
                             unsigned *tickets,                     // [tiles], all zero before and after
                             int M, int tiles, int groups) {
  extern __shared__ __align__(16) char room[];
  __shared__ int is_last;
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, splits = gridDim.y;
  Stage *ring = reinterpret_cast<Stage *>(room) + warp * STAGES;
  float *sums_of_warps = reinterpret_cast<float *>(room + WARPS * STAGES * sizeof(Stage));  // [2, WARPS, SUMS]

  // The groups of this warp, of all tiles of the block: at the end of K one may be missing, or both.
  const int first = (blockIdx.y * WARPS + warp) * HELD;
  const int mine = groups - first;

  const long long start = static_cast<long long>(blockIdx.x) * groups + first;
  const long long step = static_cast<long long>(gridDim.x) * groups;
  const uint4 *next_words = words + start * 64 + lane;
  const unsigned *next_scales = scales + start * 8 + lane / 4;
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
  let_the_next_grid_begin();
#pragma unroll
  for (int stage = 0; stage < STAGES; stage++) ask();

  // Weights were there before; x may be the work of the last grid.
  wait_for_the_last_grid();
  unsigned held[HELD][2][EIGHTS][8];
#pragma unroll
  for (int part = 0; part < HELD * 4 * EIGHTS; part++) {
    const int half = part % 2, eight = part / 2 % EIGHTS, tile_k = part / 2 / EIGHTS % 2, group = part / 4 / EIGHTS;
    const int m = eight * 8 + lane / 4;
    const long long k = (first + group) * 128LL + tile_k * 64 + half * 32 + lane % 4 * 8;
    uint4 eight_numbers = {0, 0, 0, 0};  // rows that x has not
    if (m < M && group < mine) eight_numbers = of_the_last_grid(x + m * groups * 128LL + k);
    unsigned *to = &held[group][tile_k][eight][half * 4];
    to[0] = eight_numbers.x, to[1] = eight_numbers.y, to[2] = eight_numbers.z, to[3] = eight_numbers.w;
  }

  // threadIdx.y is always 0, but the compiler cannot know: the constant stays in a register.
  const unsigned nibbles = NIBBLES | threadIdx.y;
  const Stage *stage = ring;
  int side = 0;
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    wait_for_all_but<STAGES - 1>();
    float sum[EIGHTS][4] = {};  // rows r, r + 8 of the weights, two rows of x
#pragma unroll
    for (int group = 0; group < HELD; group++) {
      if (group >= mine) break;
      float of_group[EIGHTS][4] = {};
#pragma unroll
      for (int tile_k = 0; tile_k < 2; tile_k++) {
        const uint4 four = stage->words[group][tile_k][lane];
        const unsigned word[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int j = 0; j < 4; j++) {
          unsigned a[4];
          unpack<Of>(a, word[j], nibbles);
#pragma unroll
          for (int eight = 0; eight < EIGHTS; eight++) {
            Of::Number::multiply(of_group[eight], a, &held[group][tile_k][eight][2 * j]);
          }
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
    float4 *own = reinterpret_cast<float4 *>(sums_of_warps + (side * WARPS + warp) * SUMS);
#pragma unroll
    for (int eight = 0; eight < EIGHTS; eight++) {
      own[eight * WARP + lane] = make_float4(sum[eight][0], sum[eight][1], sum[eight][2], sum[eight][3]);
    }
    __syncthreads();  // the sums of all warps are there
    auto total_of = [&](int i) {
      float total = 0.0f;
#pragma unroll
      for (int w = 0; w < WARPS; w++) total += sums_of_warps[(side * WARPS + w) * SUMS + i];
      return total;
    };
    auto store = [&](int i, float total) {  // number i % 4 of lane i / 4 % 32
      const int m = i / 128 * 8 + i / 4 % 4 * 2 + i % 2, n = i % 128 / 16 + i % 4 / 2 * 8;
      if (m < M) y[m * 16LL * tiles + tile * 16LL + n] = static_cast<unsigned short>(Of::Number::pair(total, 0.0f));
    };
    if (splits == 1) {
      for (int i = threadIdx.x; i < SUMS; i += THREADS) store(i, total_of(i));
    } else {
      float *of_tile = parts + static_cast<long long>(tile) * splits * SUMS;
      for (int i = threadIdx.x; i < SUMS; i += THREADS) of_tile[blockIdx.y * SUMS + i] = total_of(i);
      written_for_all();
      __syncthreads();  // all have written before one takes the ticket
      if (threadIdx.x == 0) is_last = atomicInc(tickets + tile, splits - 1) == splits - 1;
      __syncthreads();  // everybody knows
      written_for_all();
      for (int i = threadIdx.x; is_last && i < SUMS; i += THREADS) {
        float total = 0.0f;
        for (int split = 0; split < splits; split++) total += of_another_block(of_tile + split * SUMS + i);
        store(i, total);
      }
    }
    side ^= 1;
  }
}
