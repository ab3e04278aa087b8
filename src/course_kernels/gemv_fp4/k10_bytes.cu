// FP4 matrix times vector, kernel 10: four numbers a register, in whole numbers.
//
// Contract  problem.py
// Idea      twice an E2M1 number is a whole number from -12 to 12, a byte: PRMT looks four up at once, and IDP.4A
//           multiplies and adds four; see bytes.cuh
// Against   k09_in_flight, which needs four instructions to decode two numbers, and one to multiply them
// Cost      for eight numbers of a eleven instructions; of b two bytes from shared memory for each byte of a
// Limits    five bytes of shared memory for four numbers of b
// Next      k11_resident keeps b in registers, and gives every multiprocessor the same work
// Source    llama.cpp, ggml/src/ggml-cuda/vecdotq.cuh (products of looked-up bytes by dp4a)
#include "fp4_instructions.cuh"
#include "values.cuh"
#include "bytes.cuh"

constexpr int WARPS = 4, ROWS = 4;    // a warp takes its rows side by side
constexpr int VECTORS = 2;            // of each row: ROWS * VECTORS * 16 bytes are under way for a lane

// grid: rows / (WARPS * ROWS), L      block: 32 * WARPS
extern "C" __global__ void gemv_bytes(const uint4 *a,                  // [L, M, K/32], 32 numbers in each
                                      const unsigned short *scales_a,  // [L, M, K/32], two in each
                                      const uint4 *b,                  // [L, K/32]
                                      const unsigned short *scales_b,  // [L, K/32]
                                      unsigned short *c,               // [L, M], float16
                                      int M, int K) {
  extern __shared__ uint4 bytes[];  // [2, K/32], sixteen numbers in each; behind them the scales, float2 [K/32]
  const int lane = threadIdx.x % 32, vectors = K / 32;
  const unsigned low = LOW | threadIdx.y;  // always 0, but the compiler cannot know: it stays in a register
  float2 *two_of_b = reinterpret_cast<float2 *>(bytes + 2 * vectors);
  const long long batch = blockIdx.y;
  b += batch * vectors, scales_b += batch * vectors;
  for (int v = threadIdx.x; v < vectors; v += 32 * WARPS) {
    const uint4 of_b = b[v];
    const Bytes x = with_signs(of_b.x), y = with_signs(of_b.y), z = with_signs(of_b.z), w = with_signs(of_b.w);
    bytes[v] = {x.low, x.high, y.low, y.high}, bytes[vectors + v] = {z.low, z.high, w.low, w.high};
    two_of_b[v] = e4m3_pair(scales_b[v]);
  }
  __syncthreads();
  const int m = (blockIdx.x * WARPS + threadIdx.x / 32) * ROWS;
  if (m >= M) return;
  const uint4 *rows[ROWS];
  const unsigned short *scales[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; r++) {  // past the last row, that one again: nobody writes what comes of it
    const long long row = batch * M + min(m + r, M - 1);
    rows[r] = a + row * vectors, scales[r] = scales_a + row * vectors;
  }
  float sums[ROWS] = {};
  for (int first = lane; first < vectors; first += 32 * VECTORS) {
    uint4 of_a[VECTORS][ROWS];
    unsigned two[VECTORS][ROWS];
#pragma unroll
    for (int u = 0; u < VECTORS; u++) {
      const int v = min(first + 32 * u, vectors - 1);
#pragma unroll
      for (int r = 0; r < ROWS; r++) of_a[u][r] = streamed(rows[r] + v), two[u][r] = streamed_pair(scales[r] + v);
    }
#pragma unroll
    for (int u = 0; u < VECTORS; u++) {
      const int v = first + 32 * u;
      if (v >= vectors) break;
      const uint4 low_b = bytes[v], high_b = bytes[vectors + v];
      const float2 two_b = two_of_b[v];
#pragma unroll
      for (int r = 0; r < ROWS; r++) {
        const float2 two_a = e4m3_pair(two[u][r]);
        sums[r] += block_sum(of_a[u][r].x, of_a[u][r].y, low_b, low) * (two_a.x * two_b.x);
        sums[r] += block_sum(of_a[u][r].z, of_a[u][r].w, high_b, low) * (two_a.y * two_b.y);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    const float sum = warp_sum(sums[r]);
    if (lane == 0 && m + r < M) c[batch * M + m + r] = half_of(sum * 0.25f);
  }
}
