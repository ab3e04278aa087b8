// NVFP4 weights, kernel 2: a shift and a mask make bfloat16 numbers of them, in the lane that multiplies them.
//
// Contract  problem.py, M <= 32      Launcher  k02_fragments.py
// Idea      weights come as the fragments they will be, their bits where a bfloat16 has them or a shift away (layout.py),
//           0.5 as a subnormal number; one multiply gives two of them their scale, exactly, before the tensor cores
//           take them
// Against   skinny_gemm_w4/k02_fragments, whose ring and cut these are: there a number costs less, and one scale for 128
//           waits for a group's sum. Here sixteen have a scale and no sum of their own. There all warps meet after every
//           tile; here after two, and with 8 rows of x in two blocks of a multiprocessor that do not wait for each other
// Cost      a word, eight weights: four shifts, five masks, four multiplies, and what a scale for two words
//           costs, two or three; and one multiply of the tensor cores for each 8 rows of x, empty ones among them
// Limits    compute capability 8.0; 32 rows of x: more would not stay in registers
// Next      wgmma, which takes A from registers, and up to 128 rows of x from shared memory
// Source    Frantar et al. 2024, arXiv:2408.11743 (Marlin), and its FP4 form in vLLM; the ticket: CUDA samples,
//           threadFenceReduction
#include "asynchronous_copy.cuh"
#include "matrix_instructions.cuh"
#include "pairs.cuh"

// Of the launcher: EIGHTS (times 8 rows of x), WARPS (of a block), STAGES (tiles that a warp copies ahead), HELD, groups
// of 128 columns whose x a warp keeps: each takes 16 registers for 8 rows; BATCH, tiles after which warps meet; RESIDENT,
// blocks that a multiprocessor has room for.
constexpr int WARP = 32;
constexpr int THREADS = WARPS * WARP;
constexpr int SUMS = EIGHTS * 4 * WARP;  // 16 rows of weights times those of x
constexpr float LEFT = 128.0f;           // 2**7: of the weights' 2**-126 and the scales' 2**119

struct alignas(16) Stage {  // what a warp has of a tile
  uint4 words[HELD][2][WARP];   // of 64 columns each
  unsigned scales[HELD][WARP];  // of rows r and r + 8, of the first 64 columns and of the others
};

// Eight weights of a word to the four registers of a multiply: 2**-126 of each.
__device__ inline void unpack(unsigned (&registers)[4], unsigned word) {
  constexpr unsigned CODES = 0x81c081c0u;  // sign, exponent and mantissa, twice
  registers[0] = word << 6 & CODES;
  registers[1] = word << 2 & CODES;
  registers[2] = (word >> 4 | word << 28) & CODES;
  registers[3] = (word & 0x81808180u) | (word >> 8 & 0x00400040u);
}

// Byte `which` of four scales as 2**119 of it, twice.
__device__ inline unsigned scale_pair(unsigned scales, int which) {
  return (scales >> 8 * which & 0xff) * 0x00100010u + 0x70007000u;
}

// grid: (blocks, splits of K)      block: THREADS
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    skinny_gemm_fp4_fragments(const unsigned short *x,              // [M, 128 * groups]
                              const uint4 *__restrict__ words,      // [tiles, groups, 2, 32]
                              const unsigned *__restrict__ scales,  // [tiles, groups, 32]
                              const float *__restrict__ second,     // [1]
                              unsigned short *__restrict__ y,       // [M, 16 * tiles]
                              float *parts,                         // [tiles, splits, SUMS], for several splits
                              unsigned *tickets,                    // [tiles], all zero before and after
                              int M, int tiles, int groups) {
  extern __shared__ __align__(16) char room[];
  __shared__ int is_last[BATCH];
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, splits = gridDim.y;
  Stage *ring = reinterpret_cast<Stage *>(room) + warp * STAGES;
  float *sums_of_warps = reinterpret_cast<float *>(room + WARPS * STAGES * sizeof(Stage));  // [2, BATCH, WARPS, SUMS]

  // The groups of this warp, of all tiles of the block: at the end of K one may be missing, or both.
  const int first = (blockIdx.y * WARPS + warp) * HELD;
  const int mine = groups - first;

  const long long start = static_cast<long long>(blockIdx.x) * groups + first;
  const long long step = static_cast<long long>(gridDim.x) * groups;
  const uint4 *next_words = words + start * 64 + lane;
  const unsigned *next_scales = scales + start * 32 + lane;
  int tile_asked = blockIdx.x;
  Stage *asked = ring;
  auto ask = [&] {  // for the next tile; nothing past the last
    if (tile_asked < tiles) {
#pragma unroll
      for (int group = 0; group < HELD; group++) {
        if (group >= mine) break;
        copy_16_bytes(&asked->words[group][0][lane], next_words + group * 64);
        copy_16_bytes(&asked->words[group][1][lane], next_words + group * 64 + 32);
        copy_4_bytes(&asked->scales[group][lane], next_scales + group * 32);
      }
    }
    next_words += step * 64, next_scales += step * 32, tile_asked += gridDim.x;
    asked = asked + 1 == ring + STAGES ? ring : asked + 1;
    close_group();
  };
  // What is never asked for: zeros. So the product needs no branch, and its loads need not wait behind one.
#pragma unroll 1
  for (int i = 0; i < STAGES * HELD; i++) {
    const int group = i % HELD;
    if (group < mine) continue;
    ring[i / HELD].words[group][0][lane] = ring[i / HELD].words[group][1][lane] = {0, 0, 0, 0};
    ring[i / HELD].scales[group][lane] = 0;
  }
  let_the_next_grid_begin();
#pragma unroll
  for (int stage = 0; stage < STAGES; stage++) ask();

  // Weights were there before; x may be the work of the last grid.
  const float factor = *second * LEFT;
  wait_for_the_last_grid();
  unsigned held[HELD][2][EIGHTS][8];
#pragma unroll
  for (int part = 0; part < HELD * 4 * EIGHTS; part++) {
    const int half = part % 2, eight = part / 2 % EIGHTS, tile_k = part / 2 / EIGHTS % 2, group = part / 4 / EIGHTS;
    const int m = eight * 8 + lane / 4;
    const long long k = (first + group) * 128LL + tile_k * 64 + lane % 4 * 16 + half * 8;
    uint4 eight_numbers = {0, 0, 0, 0};  // rows that x has not
    if (m < M && group < mine) eight_numbers = of_the_last_grid(x + m * groups * 128LL + k);
    unsigned *to = &held[group][tile_k][eight][half * 4];
    to[0] = eight_numbers.x, to[1] = eight_numbers.y, to[2] = eight_numbers.z, to[3] = eight_numbers.w;
  }

  const Stage *stage = ring;
  int side = 0;
  for (int tile = blockIdx.x; tile < tiles; tile += BATCH * gridDim.x) {
    // Two sides in turn: who writes the next sums does not wait for who still adds these.
    float *sums = sums_of_warps + side * BATCH * WARPS * SUMS;
#pragma unroll 1
    for (int batch = 0; batch < BATCH; batch++) {
      if (tile + batch * gridDim.x >= tiles) break;
      wait_for_all_but<STAGES - 1>();
      float sum[2][EIGHTS][4] = {};  // rows r, r + 8 of the weights, two rows of x; in two chains that need not wait
#pragma unroll
      for (int group = 0; group < HELD; group++) {
        const unsigned four_scales = stage->scales[group][lane];
#pragma unroll
        for (int tile_k = 0; tile_k < 2; tile_k++) {
          const uint4 four = stage->words[group][tile_k][lane];
          const unsigned word[4] = {four.x, four.y, four.z, four.w};
          const unsigned scale[2] = {scale_pair(four_scales, 2 * tile_k), scale_pair(four_scales, 2 * tile_k + 1)};
#pragma unroll
          for (int j = 0; j < 4; j++) {
            unsigned a[4];
            unpack(a, word[j]);
#pragma unroll
            for (int i = 0; i < 4; i++) a[i] = bf16_product(a[i], scale[i % 2]);
#pragma unroll
            for (int eight = 0; eight < EIGHTS; eight++) {
              Bf16::multiply(sum[tile_k][eight], a, &held[group][tile_k][eight][2 * j]);
            }
          }
        }
      }
      ask();  // into the place that was just read
      stage = stage + 1 == ring + STAGES ? ring : stage + 1;
      float4 *own = reinterpret_cast<float4 *>(sums + (batch * WARPS + warp) * SUMS);
#pragma unroll
      for (int eight = 0; eight < EIGHTS; eight++) {
        const float *one = sum[0][eight], *other = sum[1][eight];
        own[eight * WARP + lane] =
            make_float4(one[0] + other[0], one[1] + other[1], one[2] + other[2], one[3] + other[3]);
      }
    }
    __syncthreads();  // the sums of all warps are there
    auto total_of = [&](int i) {  // number i % SUMS of a tile
      float total = 0.0f;
#pragma unroll
      for (int w = 0; w < WARPS; w++) total += sums[(i / SUMS * WARPS + w) * SUMS + i % SUMS];
      return total;
    };
    auto tile_of = [&](int i) { return tile + i / SUMS * static_cast<int>(gridDim.x); };
    auto is_there = [&](int i) { return i < BATCH * SUMS && tile_of(i) < tiles; };
    auto store = [&](int i, float total) {  // number i % 4 of lane i / 4 % 32
      const int of_tile = i % SUMS, m = of_tile / 128 * 8 + of_tile / 4 % 4 * 2 + i % 2;
      const int n = of_tile % 128 / 16 + i % 4 / 2 * 8;
      if (m < M) y[m * 16LL * tiles + tile_of(i) * 16LL + n] = static_cast<unsigned short>(Bf16::pair(total * factor, 0.0f));
    };
    if (splits == 1) {
      for (int i = threadIdx.x; is_there(i); i += THREADS) store(i, total_of(i));
    } else {
      auto part = [&](int i, int split) {
        return parts + (static_cast<long long>(tile_of(i)) * splits + split) * SUMS + i % SUMS;
      };
      for (int i = threadIdx.x; is_there(i); i += THREADS) *part(i, blockIdx.y) = total_of(i);
      written_for_all();
      __syncthreads();  // all have written before one takes the ticket
      if (threadIdx.x < BATCH && is_there(threadIdx.x * SUMS)) {
        is_last[threadIdx.x] = atomicInc(tickets + tile_of(threadIdx.x * SUMS), splits - 1) == splits - 1;
      }
      __syncthreads();  // everybody knows
      written_for_all();
      for (int i = threadIdx.x; is_there(i); i += THREADS) {
        if (!is_last[i / SUMS]) continue;
        float total = 0.0f;
        for (int split = 0; split < splits; split++) total += of_another_block(part(i, split));
        store(i, total);
      }
    }
    side ^= 1;
  }
}
