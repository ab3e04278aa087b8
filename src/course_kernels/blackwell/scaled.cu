// Matrix multiply for Blackwell, block-scaled: NVFP4, numbers of four bits with a scale for every 16; or MXFP8.
//
//     C[m, n] = scale * sum over k of A[m, k] * a_scales[m, k / SHARE] * B[n, k] * b_scales[n, k / SHARE]
//
// Contract  scaled.py, which is the launcher too      Instructions  tcgen05.cuh
// Idea      the tensor core takes codes as they are and scales them itself. The scales of a step are copied next to the
//           sums, into tensor memory; the copy is one more order of the thread that multiplies
// Against   one_block.cu in bf16; on Hopper, decoding in software in front of a multiply of wider numbers
// Cost      a block reads 128 rows of A and 128 of B, each number with its share of a scale, for 128 x 128 of C
// Limits    compute capability 10.0 and 10.3; K is a multiple of DEEP, N of 8; A and B lie along k. One tile a block.
//           COMPILED, NOT RUN: no such card was there
// Source    PTX ISA, tcgen05.mma with .block_scale, .kind::mxf4nvf4 and .kind::mxf8f6f4, tcgen05.cp; OCP Microscaling

#include "tcgen05.cuh"
#include "tiles.cuh"

#ifndef EIGHT_BITS
#define EIGHT_BITS 0
#endif
#if EIGHT_BITS
constexpr int BITS = 8, SHARE = 32;  // MXFP8: E4M3, and a scale in E8M0 for 32 numbers
#else
constexpr int BITS = 4, SHARE = 16;  // NVFP4: E2M1, and a scale in E4M3 for 16 numbers
#endif

constexpr int BM = 128, BN = 128, BK = ROW_BYTES * 8 / BITS;  // one row of the swizzle
constexpr int DEEP = 32 * 8 / BITS;                           // k of one product, 32 bytes: four of them a step
constexpr int IN_BLOCK = 4 * SHARE;                           // k that a block of scales is for: 64 or 128
constexpr int BLOCKS_A_STEP = BK / IN_BLOCK;                  // of scales: a product takes one, or a fourth of one
constexpr int STAGES = 4;
constexpr int THREADS = 128;
constexpr unsigned A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES, SCALES = BLOCKS_A_STEP * SCALES_BYTES;
constexpr unsigned STAGE_BYTES = A_BYTES + B_BYTES + 2 * SCALES;
// TMEM: the sums, then of each stage four columns for every block of scales, of A and of B. A stage's columns are
// written again when its products are done, as its shared memory is.
constexpr int SCALE_COLUMNS = BLOCKS_A_STEP * 4;
constexpr int COLUMNS = 256;
static_assert(BN + STAGES * 2 * SCALE_COLUMNS <= COLUMNS, "sums and scales fit into the columns asked for");

// grid: ceil(M / BM) * ceil(N / BN)      block: THREADS      dynamic shared memory: STAGES * (STAGE_BYTES + 16) + 16
extern "C" __global__ __launch_bounds__(THREADS, 1) void gemm_scaled(
    const __grid_constant__ TensorMap a_map,  // [M, K * BITS / 8] bytes, box 128 x 128
    const __grid_constant__ TensorMap b_map,  // [N, K * BITS / 8] bytes, box 128 x 128
    const unsigned char *a_scales,            // [ceil(M / 128), ceil(K / IN_BLOCK), 512]
    const unsigned char *b_scales,            // [ceil(N / 128), ceil(K / IN_BLOCK), 512]
    Half *C,                                  // [M, N] bfloat16
    float scale, int M, int N, int K) {
  extern __shared__ __align__(1024) char memory[];
  Barrier *full = reinterpret_cast<Barrier *>(memory + STAGES * STAGE_BYTES), *empty = full + STAGES;
  Barrier *done = empty + STAGES;
  unsigned *where = reinterpret_cast<unsigned *>(done + 1);
  const Tile tile = tile_at(blockIdx.x, ceil_div(M, BM), ceil_div(N, BN), BM, BN);
  const int steps = ceil_div(K, BK), blocks = ceil_div(K, IN_BLOCK), warp = same_in_warp(threadIdx.x / 32);

  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; s++) {
      barrier_init(&full[s], 1);
      barrier_init(&empty[s], 1);
    }
    barrier_init(done, 1);
    fence_barrier_init();
  }
  if (warp == 2) {
    tmem_allocate<1>(where, COLUMNS);
    tmem_no_more<1>();
  }
  tcgen05_before_barrier();
  __syncthreads();
  tcgen05_after_barrier();
  const unsigned sums = *where;

  // region roles
  if (warp == 0 && elect_one()) {
    for (int step = 0; step < steps; step++) {
      const int s = step % STAGES, first = step * BLOCKS_A_STEP;
      const unsigned scale_bytes = min(BLOCKS_A_STEP, blocks - first) * SCALES_BYTES;
      char *a = memory + s * STAGE_BYTES, *b = a + A_BYTES, *of_a = b + B_BYTES, *of_b = of_a + SCALES;
      wait(&empty[s], step / STAGES & 1 ^ 1);
      arrive_and_expect_bytes(&full[s], A_BYTES + B_BYTES + 2 * scale_bytes);
      load_tile(a, a_map, &full[s], step * static_cast<int>(ROW_BYTES), tile.m);
      load_tile(b, b_map, &full[s], step * static_cast<int>(ROW_BYTES), tile.n);
      const long long a_block = static_cast<long long>(tile.m / BM) * blocks + first;
      const long long b_block = static_cast<long long>(tile.n / BN) * blocks + first;
      load_bytes(of_a, a_scales + a_block * SCALES_BYTES, scale_bytes, &full[s]);
      load_bytes(of_b, b_scales + b_block * SCALES_BYTES, scale_bytes, &full[s]);
    }
  } else if (warp == 1 && elect_one()) {
    for (int step = 0; step < steps; step++) {
      const int s = step % STAGES;
      const unsigned a = address_in_shared(memory + s * STAGE_BYTES), b = a + A_BYTES, of_a = b + B_BYTES;
      const unsigned scales_a = sums + BN + s * 2 * SCALE_COLUMNS, scales_b = scales_a + SCALE_COLUMNS;
      wait(&full[s], step / STAGES & 1);
      tcgen05_after_barrier();
#pragma unroll
      for (int i = 0; i < BLOCKS_A_STEP; i++) {
        if (step * BLOCKS_A_STEP + i >= blocks) break;  // past K nothing was brought
        copy_scales(scales_a + 4 * i, scales_in_shared(of_a + i * SCALES_BYTES));
        copy_scales(scales_b + 4 * i, scales_in_shared(of_a + SCALES + i * SCALES_BYTES));
      }
#pragma unroll
      for (int k = 0; k < BK / DEEP; k++) {
        if (step * BK + k * DEEP >= K) break;
        const Descriptor rows = in_shared(advance(k_major(a), k * 32)), columns = in_shared(advance(k_major(b), k * 32));
#if EIGHT_BITS
        multiply_mxfp8(sums, rows, columns, mxfp8_instruction<BM, BN>(k), scales_a, scales_b, step + k > 0);
#else
        constexpr unsigned how = nvfp4_instruction<BM, BN>();
        multiply_nvfp4(sums, rows, columns, how, scales_a + 4 * k, scales_b + 4 * k, step + k > 0);
#endif
      }
      tcgen05_commit<1>(&empty[s]);
    }
    tcgen05_commit<1>(done);
  }
  __syncwarp();
  // endregion

  wait(done, 0);
  tcgen05_after_barrier();
  write_sums<BN>(sums, C, M, N, tile.m, tile.n, scale);

  tcgen05_before_barrier();
  __syncthreads();
  tcgen05_after_barrier();
  if (warp == 2) tmem_give_back<1>(sums, COLUMNS);
}
