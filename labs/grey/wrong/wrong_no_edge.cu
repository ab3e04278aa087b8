// refused for: out of bounds
extern "C" __global__ void grey(const float *picture,  // [H, W, 3]
                                float *out,            // [H, W]
                                int H, int W) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const long long pixel = static_cast<long long>(row) * W + column;  // rows lie one behind the other
  const float red = picture[3 * pixel];
  const float green = picture[3 * pixel + 1];
  const float blue = picture[3 * pixel + 2];
  out[pixel] = 0.299f * red + 0.587f * green + 0.114f * blue;
}
