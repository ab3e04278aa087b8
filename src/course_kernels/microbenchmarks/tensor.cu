// Tensor cores with nothing to carry: the same matrix instruction again and again, on operands that stay where they are.
//
// Contract  tensor.py
// Idea      every number is 1, so each instruction adds K to every sum, whatever order its operands lie in: the
//           answer is exact, and easy to check. All blocks begin together; each multiprocessor's own clock counts
// Limits    operands never change, so nothing is loaded. What a real kernel adds to this, it adds at its own cost
// Source    PTX ISA 9.2, sections 9.7.14 (mma) and 9.7.15 (wgmma)

#include "whole_grid.cuh"

// Of the types: the numbers that one instruction multiplies along k, and 1 written four bytes wide.
#if defined(BF16)
constexpr int K = 16;
constexpr unsigned ONES = 0x3f803f80;
#define MMA_SHAPE "m16n8k16.row.col.f32.bf16.bf16.f32"
#define WGMMA_TYPES "k16.f32.bf16.bf16"
#define MAJOR_AB ", 0, 0"  // 16-bit operands may lie either way round: 0, k runs along a row
#define MAJOR_B ", 0"
#elif defined(TF32)
constexpr int K = 8;
constexpr unsigned ONES = 0x3f800000;
#define MMA_SHAPE "m16n8k8.row.col.f32.tf32.tf32.f32"
#define WGMMA_TYPES "k8.f32.tf32.tf32"
#define MAJOR_AB ""
#define MAJOR_B ""
#else
constexpr int K = 32;
constexpr unsigned ONES = 0x38383838;  // e4m3
#define MMA_SHAPE "m16n8k32.row.col.f32.e4m3.e4m3.f32"
#define WGMMA_TYPES "k32.f32.e4m3.e4m3"
#define MAJOR_AB ""
#define MAJOR_B ""
#endif

constexpr int UNROLL = 16;  // instructions between two looks at the loop's counter

#if defined(MMA)
// A warp keeps CHAINS sums of 16 x 8 numbers, so that one multiply need not wait for another.
constexpr int CHAINS = 8;

extern "C" __global__ void multiply(const unsigned *operands,  // [6]
                                    int passes,
                                    long long *cycles,  // [gridDim.x]
                                    float *worst,       // [gridDim.x, blockDim.x]
                                    unsigned *arrived) {  // [1], 0 when the launch begins
  unsigned a[4], b[2];
  for (int i = 0; i < 4; i++) a[i] = operands[i];
  for (int i = 0; i < 2; i++) b[i] = operands[4 + i];
  float d[CHAINS][4] = {};
  all_blocks_meet(arrived);
  const long long start = clock_now();
#pragma unroll 1
  for (int p = 0; p < passes; p++) {
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
      float *c = d[u % CHAINS];
      asm volatile("mma.sync.aligned." MMA_SHAPE " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                   : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
  }
  float error = 0;
  for (int chain = 0; chain < CHAINS; chain++)
    for (int i = 0; i < 4; i++) error = fmaxf(error, fabsf(d[chain][i] - float(K) * passes * (UNROLL / CHAINS)));
  __syncthreads_or(error > 0);  // nobody passes before all sums are known
  const long long end = clock_now();
  if (threadIdx.x == 0) cycles[blockIdx.x] = end - start;
  worst[blockIdx.x * blockDim.x + threadIdx.x] = error;
}

#else
// A warpgroup keeps one sum of 64 x N numbers: N / 2 registers in each of its 128 threads.
#define TEN(t) "%" #t "0, %" #t "1, %" #t "2, %" #t "3, %" #t "4, %" #t "5, %" #t "6, %" #t "7, %" #t "8, %" #t "9, "
#define R4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define R16(i) R4(i), R4(i + 4), R4(i + 8), R4(i + 12)
#define R64(i) R16(i), R16(i + 16), R16(i + 32), R16(i + 48)
#if N == 8
#define SUMS R4(0)
#define TEXT "m64n8" WGMMA_TYPES " {%0, %1, %2, %3}, "
#define BOTH_SHARED "%4, %5"
#define A_HELD "{%4, %5, %6, %7}, %8"
#elif N == 16
#define SUMS R4(0), R4(4)
#define TEXT "m64n16" WGMMA_TYPES " {%0, %1, %2, %3, %4, %5, %6, %7}, "
#define BOTH_SHARED "%8, %9"
#define A_HELD "{%8, %9, %10, %11}, %12"
#elif N == 32
#define SUMS R16(0)
#define TEXT "m64n32" WGMMA_TYPES " {" TEN() "%10, %11, %12, %13, %14, %15}, "
#define BOTH_SHARED "%16, %17"
#define A_HELD "{%16, %17, %18, %19}, %20"
#elif N == 64
#define SUMS R16(0), R16(16)
#define TEXT "m64n64" WGMMA_TYPES " {" TEN() TEN(1) TEN(2) "%30, %31}, "
#define BOTH_SHARED "%32, %33"
#define A_HELD "{%32, %33, %34, %35}, %36"
#elif N == 128
#define SUMS R64(0)
#define TEXT "m64n128" WGMMA_TYPES " {" TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) "%60, %61, %62, %63}, "
#define BOTH_SHARED "%64, %65"
#define A_HELD "{%64, %65, %66, %67}, %68"
#else
#define SUMS R64(0), R64(64)
#define TEXT                                                                                                      \
  "m64n256" WGMMA_TYPES " {" TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9) TEN(10) TEN(11) \
  "%120, %121, %122, %123, %124, %125, %126, %127}, "
#define BOTH_SHARED "%128, %129"
#define A_HELD "{%128, %129, %130, %131}, %132"
#endif

// Where a tile lies in shared memory: rows of 32 bytes, in pieces of 8 rows by 16 bytes. One piece after the other along
// k (128 bytes on), then the next eight rows (256 bytes on). Addresses are counted in 16 bytes.
__device__ inline unsigned long long described(const void *tile) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(tile));
  return (unsigned long long)(address >> 4) | (128ull >> 4) << 16 | (256ull >> 4) << 32;
}

extern "C" __global__ void multiply(const unsigned *operands,  // [6]
                                    int passes,
                                    long long *cycles,  // [gridDim.x]
                                    float *worst,       // [gridDim.x, blockDim.x]
                                    unsigned *arrived) {  // [1], 0 when the launch begins
  __shared__ alignas(128) unsigned a_tile[64 * 8], b_tile[N * 8];
  for (int i = threadIdx.x; i < 64 * 8; i += blockDim.x) a_tile[i] = operands[0];
  for (int i = threadIdx.x; i < N * 8; i += blockDim.x) b_tile[i] = operands[4];
  float d[N / 2] = {};
  const unsigned long long b = described(b_tile);
#if defined(A_IN_REGISTERS)
  unsigned a[4];
  for (int i = 0; i < 4; i++) a[i] = operands[i];
#else
  const unsigned long long a = described(a_tile);
#endif
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // what threads stored, the tensor cores may read
  all_blocks_meet(arrived);
  const long long start = clock_now();
#pragma unroll 1
  for (int p = 0; p < passes; p++) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
#if defined(A_IN_REGISTERS)
      asm volatile("wgmma.mma_async.sync.aligned." TEXT A_HELD ", 1, 1, 1" MAJOR_B ";"
                   : SUMS
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
#else
      asm volatile("wgmma.mma_async.sync.aligned." TEXT BOTH_SHARED ", 1, 1, 1" MAJOR_AB ";" : SUMS : "l"(a), "l"(b));
#endif
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  float error = 0;
  for (int i = 0; i < N / 2; i++) error = fmaxf(error, fabsf(d[i] - float(K) * passes * UNROLL));
  __syncthreads_or(error > 0);  // nobody passes before all sums are known
  const long long end = clock_now();
  if (threadIdx.x == 0) cycles[blockIdx.x] = end - start;
  worst[blockIdx.x * blockDim.x + threadIdx.x] = error;
}
#endif
