// Wrong mask: one warp turns 32 numbers round; the mask of its barrier names half of it.
//
// Contract  cases.py, wrong_mask
// Idea      lanes come to a barrier whose mask leaves them out
// Finds it  compute-sanitizer --tool synccheck
// Source    CUDA C++ Programming Guide, section on __syncwarp()

// region broken
extern "C" __global__ void wrong_mask(const float *x, float *y) {
  __shared__ float bowl[32];
  int t = threadIdx.x;
  bowl[t] = x[t];
  __syncwarp(0x0000ffff);  // names lanes 0 to 15, and all 32 come
  y[t] = bowl[31 - t];
}
// endregion

// region mended
extern "C" __global__ void wrong_mask_mended(const float *x, float *y) {
  __shared__ float bowl[32];
  int t = threadIdx.x;
  bowl[t] = x[t];
  __syncwarp(0xffffffff);  // names all 32, as a bare __syncwarp() does
  y[t] = bowl[31 - t];
}
// endregion
