// Bias + GELU, kernel 1: the whole recipe in one trip, 16 bytes at a time.
//
// Contract  problem.py      Launcher  k01_fused.py
// Idea      add the bias and take the GELU while the number is still in a register
// Against   two operators: the sum goes out to memory, only to come straight back
// Cost      reads x once and writes y once; a thread keeps its piece of the bias for all of its rows
// Limits    an infinite sum gives NaN, since the two parts are then inf and inf * 0
// Source    Hendrycks & Gimpel 2016, arXiv:1606.08415, section 2; Abramowitz & Stegun, formula 7.1.26

constexpr int ROWS = 4;  // 16-byte loads under way in a thread: enough to keep the memory busy

// Instructions of the special-function unit, good to some 22 bits.
__device__ inline float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ inline float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// region gelu
// s * (1 + erf(s / sqrt 2)) / 2, written as max(s, 0) - |s| * erfc(|s| / sqrt 2) / 2. The polynomial is half of formula
// 7.1.26, within 1e-7. With erff() the instructions would take about as long as the bytes when those are bf16.
__device__ inline float gelu(float s) {
  const float a = fabsf(s);
  const float t = reciprocal(1.0f + 0.2316418f * a);
  const float half_erfc =
      t * (0.1274148f + t * (-0.1422484f + t * (0.7107069f + t * (-0.726576f + t * 0.5307027f))));
  return fmaxf(s, 0.0f) - a * half_erfc * power_of_two(-0.72134752f * s * s);  // exp(-s * s / 2)
}
// endregion

// What is in 32 bits of x and of b, and what becomes of it: one float, or two bf16 numbers.
struct Fp32 {
  __device__ static unsigned word(unsigned x, unsigned b) {
    return __float_as_uint(gelu(__uint_as_float(x) + __uint_as_float(b)));
  }
};
struct Bf16 {  // a bf16 number is the upper half of a float
  __device__ static unsigned word(unsigned x, unsigned b) {
    const float low = gelu(__uint_as_float(x << 16) + __uint_as_float(b << 16));
    const float high = gelu(__uint_as_float(x & 0xffff0000u) + __uint_as_float(b & 0xffff0000u));
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
  }
};

// region fused
// A block takes blockDim.x vectors of ROWS rows. The sum is never rounded: it stays a float from load to store.
template <class Type>
__device__ inline void fused(const uint4 *__restrict__ x,  // [M, width]
                             const uint4 *__restrict__ b,  // [width]
                             uint4 *__restrict__ y,        // [M, width]
                             int M, int width) {
  const int blocks_in_a_row = (width + blockDim.x - 1) / blockDim.x;
  const int column = blockIdx.x % blocks_in_a_row * blockDim.x + threadIdx.x;
  const int first = blockIdx.x / blocks_in_a_row * ROWS;
  if (column >= width) return;

  // Ask for every row before the first of them is needed.
  uint4 held[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    if (first + r < M) held[r] = x[static_cast<long long>(first + r) * width + column];
  }
  const uint4 bias = b[column];
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    if (first + r >= M) break;
    const uint4 h = held[r];
    y[static_cast<long long>(first + r) * width + column] = {Type::word(h.x, bias.x), Type::word(h.y, bias.y),
                                                             Type::word(h.z, bias.z), Type::word(h.w, bias.w)};
  }
}
// endregion

// width: 16-byte vectors in a row      grid: ceil(width / blockDim.x) * ceil(M / ROWS)
extern "C" __global__ void bias_gelu_fp32(const uint4 *x, const uint4 *b, uint4 *y, int M, int width) {
  fused<Fp32>(x, b, y, M, width);
}
extern "C" __global__ void bias_gelu_bf16(const uint4 *x, const uint4 *b, uint4 *y, int M, int width) {
  fused<Bf16>(x, b, y, M, width);
}
