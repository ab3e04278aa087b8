// Not a number: softmax of every row, one thread to a row.
//
// Contract  cases.py, not_a_number
// Idea      exp of a large number is infinite, and infinity over infinity is not a number
// Finds it  torch.isnan on the output, then a printf at the first one
// Source    CUDA C++ Programming Guide, section on mathematical functions

// region broken
extern "C" __global__ void not_a_number(const float *x, float *y, int M, int N) {
  int m = blockIdx.x * blockDim.x + threadIdx.x;
  if (m >= M) return;
  float sum = 0.0f;
  for (int n = 0; n < N; n++) sum += expf(x[m * N + n]);
  for (int n = 0; n < N; n++) y[m * N + n] = expf(x[m * N + n]) / sum;
}
// endregion

// region printing
extern "C" __global__ void not_a_number_printing(
    const float *x, float *y, int M, int N) {
  int m = blockIdx.x * blockDim.x + threadIdx.x;
  if (m >= M) return;
  float sum = 0.0f;
  for (int n = 0; n < N; n++) {
    float before = sum;
    sum += expf(x[m * N + n]);
    if (isfinite(before) && !isfinite(sum))
      printf("row %d, column %d: x = %g makes the sum %g\n", m, n, x[m * N + n], sum);
  }
  for (int n = 0; n < N; n++) y[m * N + n] = expf(x[m * N + n]) / sum;
}
// endregion

// region mended
extern "C" __global__ void not_a_number_mended(
    const float *x, float *y, int M, int N) {
  int m = blockIdx.x * blockDim.x + threadIdx.x;
  if (m >= M) return;
  float largest = x[m * N], sum = 0.0f;
  for (int n = 0; n < N; n++) largest = fmaxf(largest, x[m * N + n]);
  for (int n = 0; n < N; n++) sum += expf(x[m * N + n] - largest);  // no exponent above 0
  for (int n = 0; n < N; n++) y[m * N + n] = expf(x[m * N + n] - largest) / sum;
}
// endregion

// region rules
extern "C" __global__ void rules_of_nan(float zero, float *y) {
  float infinite = 1.0f / zero, nan = zero / zero;
  y[0] = nan;
  y[1] = infinite - infinite;
  y[2] = zero * infinite;
  y[3] = nan == nan ? 1.0f : 0.0f;  // is it equal to itself?
  y[4] = nan > 0.0f ? nan : 0.0f;   // a ReLU with a comparison
  y[5] = fmaxf(nan, 0.0f);          // a ReLU with fmaxf
}
// endregion
