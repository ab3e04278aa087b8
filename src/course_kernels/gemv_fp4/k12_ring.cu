// FP4 matrix times vector, kernel 12: what is under way waits in shared memory.
//
// Contract  problem.py, K a multiple of 256
// Idea      asynchronous copies put the vectors of the next eight rows into shared memory, a place of its own for each
//           lane, and the scales of four rows beside them, 16 bytes by each of 16 lanes: no register waits for memory
// Against   k11_resident, whose loads hold five registers each: two rows are under way, the next asked for when one is
//           done; and two scales are a load of two bytes
// Cost      two loads from shared memory for 16 bytes; 72 KB for a block
// Limits    more than 16384 numbers in a row are taken in several walks over the block's rows; scales of a row begin at a
//           multiple of 16 bytes
// Source    PTX ISA, cp.async; the ring is that of skinny_gemm_w4/k02_fragments
#include "asynchronous_copy.cuh"
#include "fp4_instructions.cuh"
#include "values.cuh"
#include "bytes.cuh"

#ifndef WARPS
#define WARPS 16  // along a row; the launcher names as many as a row fills
#endif
#ifndef GROUPS
#define GROUPS 1  // of warps, each with a row of its own
#endif

constexpr int THREADS = 32 * WARPS * GROUPS;
constexpr int ROWS = 4;         // whose sums are folded into each other
constexpr int HALVES = 2;       // of the ring, each with ROWS rows: one is under way while the other is in use
constexpr int MOST_ROWS = 256;  // of a block

// Two numbers of a lane become one: its own half of the lanes keeps `mine`, and gets the partner's part of it.
__device__ inline float folded(float first, float second, int step) {
  const bool upper = threadIdx.x & step;
  const float gone = upper ? first : second, mine = upper ? second : first;
  return mine + __shfl_xor_sync(~0u, gone, step);
}

// grid: blocks, L      block: THREADS
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    gemv_ring(const uint4 *a,                  // [L, M, K/32], 32 numbers in each
              const uint4 *scales_a,           // [L, M, K/256], 16 in each
              const uint4 *b,                  // [L, K/32]
              const unsigned short *scales_b,  // [L, K/32], two in each
              unsigned short *c,               // [L, M], float16
              int M, int K) {
  extern __shared__ uint4 ring[];  // [HALVES, ROWS, THREADS]; behind it scales, [HALVES, THREADS / 32, ROWS, 4]
  __shared__ float parts[MOST_ROWS][WARPS];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % WARPS, group = threadIdx.x / 32 / WARPS;
  const int vectors = K / 32;
  const unsigned low = LOW | threadIdx.y;  // always 0, but the compiler cannot know: it stays in a register
  const long long batch = blockIdx.y;
  const int block = blockIdx.x, blocks = gridDim.x, more = M % blocks;  // the first `more` blocks have one row more
  const int first = M / blocks * block + min(block, more), rows = M / blocks + (block < more);
  const long long place = (batch * M + first + group) * vectors;
  for (int start = 0; start < vectors; start += 32 * WARPS) {
    // What to ask for next. A lane past the end of K has no rows. Of scales lane i asks for part i % 4 of row i / 4.
    const int v = start + 32 * warp + lane, part_v = start + 32 * warp + lane % 4 * 8;
    const int mine = v < vectors ? rows : 0, step = GROUPS * vectors;
    const int its_rows = lane < 4 * ROWS && part_v < vectors ? rows - lane / 4 * GROUPS : 0;
    const uint4 *from = a + place + v, *scales_from = scales_a + (place + lane / 4 * step + part_v) / 8;
    auto ask = [&](uint4 *words, uint4 *scales, int row) {
#pragma unroll
      for (int r = 0; r < ROWS; r++, from += step) {
        copy_16_bytes(words + r * THREADS, from, row + r * GROUPS < mine ? 16 : 0);
      }
      if (lane < 4 * ROWS) copy_16_bytes(scales + lane, scales_from, row < its_rows ? 16 : 0);
      scales_from += ROWS * step / 8;
      close_group();
    };
    uint4 *words = ring + threadIdx.x, *next_words = words + ROWS * THREADS;
    uint4 *scales = ring + HALVES * ROWS * THREADS + threadIdx.x / 32 * (4 * ROWS);
    uint4 *next_scales = scales + THREADS / 32 * (4 * ROWS);
    ask(words, scales, group);
    ask(next_words, next_scales, group + ROWS * GROUPS);

    // Where there is nothing, zeros: 0 * 0 adds nothing.
    const uint4 of_b = v < vectors ? b[batch * vectors + v] : uint4{0, 0, 0, 0};
    const float2 two_b = e4m3_pair(v < vectors ? scales_b[batch * vectors + v] : 0);
    const Bytes x = with_signs(of_b.x), y = with_signs(of_b.y), z = with_signs(of_b.z), w = with_signs(of_b.w);
    const uint4 low_b = {x.low, x.high, y.low, y.high}, high_b = {z.low, z.high, w.low, w.high};

    float *part = &parts[group + lane / 8 * GROUPS][warp];
#pragma unroll 1
    for (int row = group; row < rows; row += ROWS * GROUPS, part += ROWS * GROUPS * WARPS) {
      float sums[ROWS];
      wait_for_all_but<HALVES - 1>();
      __syncwarp();  // scales are copied by other lanes
      const unsigned short *two = reinterpret_cast<const unsigned short *>(scales) + lane;
#pragma unroll
      for (int r = 0; r < ROWS; r++) {
        const uint4 of_a = words[r * THREADS];
        const float2 two_a = e4m3_pair(two[32 * r]);
        sums[r] = block_sum(of_a.x, of_a.y, low_b, low) * two_a.x * two_b.x;
        sums[r] += block_sum(of_a.z, of_a.w, high_b, low) * two_a.y * two_b.y;
      }
      __syncwarp();  // and read by them
      ask(words, scales, row + HALVES * ROWS * GROUPS);
      uint4 *const used = words, *const used_scales = scales;
      words = next_words, next_words = used, scales = next_scales, next_scales = used_scales;
      // Lanes 0 to 7 end with row 0, 8 to 15 with row 1, and so on.
      float sum = folded(folded(sums[0], sums[2], 16), folded(sums[1], sums[3], 16), 8);
#pragma unroll
      for (int other = 4; other; other /= 2) sum += __shfl_xor_sync(~0u, sum, other);
      if (lane % 8 == 0 && row + lane / 8 * GROUPS < rows) *part = start ? *part + sum : sum;
    }
    wait_for_all_but<0>();  // what was asked for past the last row: its places are needed anew
    __syncwarp();
  }
  __syncthreads();
  for (int row = threadIdx.x; row < rows; row += THREADS) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < WARPS; i++) sum += parts[row][i];
    c[batch * M + first + row] = half_of(sum * 0.25f);
  }
}
