// y[n] = the sum of 512 numbers of the tile of 1024 that n lies in, from its own start on and round the end.

constexpr int TILE = 1024, ROUNDS = 512, WARP = 32;

// grid: ceil(N / TILE)      block: TILE threads
extern "C" __global__ void windows(const float *x,  // [N]
                                   float *y,        // [N]
                                   int N, int stride) {
  const int begin = blockIdx.x * TILE, n = begin + threadIdx.x;
  if (n >= N) return;
  const int start = (stride * (threadIdx.x % WARP) + threadIdx.x / WARP * WARP) % TILE;
  const float *tile = x + begin;
  float sum = 0.0f;
  if (begin + TILE <= N) {
    const int head = min(ROUNDS, TILE - start);  // up to the end of the tile, and then from its beginning
#pragma unroll 16
    for (int r = 0; r < head; r++) sum += tile[start + r];
#pragma unroll 16
    for (int r = head; r < ROUNDS; r++) sum += tile[start + r - TILE];
  } else {  // past the end every number counts as zero
    for (int r = 0; r < ROUNDS; r++) {
      const int from = (start + r) % TILE;
      if (begin + from < N) sum += tile[from];
    }
  }
  y[n] = sum;
}
