// Lab fp4_gemv: c = A b, both in NVFP4. launch.py calls this kernel with blocks of THREADS threads, a block for every
// ROWS numbers of c.

#include <cuda_fp16.h>

constexpr int THREADS = 128, ROWS = 4;

// On paper. A byte of A is 0xB5, and the code of its block's scale is 0x3C. A has rows of 96 numbers.
constexpr double FIRST = 3.0, SECOND = -1.5;  // what the byte's two codes of E2M1 stand for, in their order
constexpr double SCALE = 1.5;  // what the code of E4M3 stands for
constexpr int BYTES = 48, SCALES = 6;  // from a row of A to the next, and from a row of its scales to the next
static_assert(7 * FIRST + 5 * SECOND != 4.5, "predict first: which number is in the low four bits?");
static_assert(SCALE == 0 || SCALE > 1e-9, "predict first: E4M3 has a mantissa below its exponent; E8M0 has none");
static_assert(BYTES != 96, "predict first: two numbers share a byte");
static_assert(SCALES != 3, "predict first: sixteen numbers share a scale, and not 32");
static_assert(7 * FIRST + 5 * SECOND + 3 * SCALE + BYTES + 2 * SCALES == 78,
              "predict first, on paper");

// What a code of E2M1 stands for, 0 to 15: with these bits a float is 2**-126 times the number.
__device__ float number(unsigned code) {
  return __uint_as_float((code & 8) << 28 | (code & 7) << 22) * 0x1p126f;
}

// What a code of E4M3 stands for, 0 to 127; the last of them is NaN.
__device__ float scale(unsigned code) {
  return code == 127 ? __int_as_float(0x7fffffff) : __uint_as_float(code << 20) * 0x1p120f;
}

extern "C" __global__ void gemv_fp4(const unsigned char *a,         // [M, K/2]
                                    const unsigned char *scales_a,  // [M, K/16]
                                    const unsigned char *b,         // [K/2]
                                    const unsigned char *scales_b,  // [K/16]
                                    __half *c,                      // [M]
                                    int M, int K) {
  const int row = blockIdx.x * ROWS + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= M) return;  // the whole warp
  a += static_cast<long long>(row) * (K / 2);
  scales_a += static_cast<long long>(row) * (K / 16);
  float sum = 0.0f;
  for (int block = lane; block < K / 16; block += 32) {
    float products = 0.0f;
    for (int k = 8 * block; k < 8 * block + 8; k++)
      products += number(a[k] & 15) * number(b[k] & 15) + number(a[k] >> 4) * number(b[k] >> 4);
    sum += products * (scale(scales_a[block]) * scale(scales_b[block]));
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (lane == 0) c[row] = __half(sum);
}

// A layer as compressed-tensors stores it: weights over a second scale, times plain numbers.
extern "C" __global__ void layer(const unsigned char *packed,   // [M, K/2]
                                 const unsigned char *of_each,  // [M, K/16]
                                 const float *of_all,           // [1]
                                 const float *vector,           // [K]
                                 float *y,                      // [M]
                                 int M, int K) {
  const int row = blockIdx.x * ROWS + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= M) return;
  packed += static_cast<long long>(row) * (K / 2);
  of_each += static_cast<long long>(row) * (K / 16);
  float sum = 0.0f;
  for (int block = lane; block < K / 16; block += 32) {
    float sixteen = 0.0f;
    for (int pair = 8 * block; pair < 8 * block + 8; pair++)
      sixteen += number(packed[pair] & 15) * vector[2 * pair] + number(packed[pair] >> 4) * vector[2 * pair + 1];
    sum += sixteen * scale(of_each[block]);
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (lane == 0) y[row] = sum / of_all[0];
}
