// Colour to grey, kernel 1: one thread, one pixel, on a grid of two dimensions.
//
// Contract  problem.py      Launcher  k01_pixels.py
// Idea      blocks tile the picture as it lies: x counts along a row, y counts rows
// Against   one dimension, where every thread would divide to find its row and its column
// Cost      reads every pixel once, 12 bytes; writes 4
// Next      k02_triton.py, the same in Triton
// Source    CUDA C++ Programming Guide, section on the thread hierarchy

// grid: (ceil(W / blockDim.x), ceil(H / blockDim.y))      block: any two dimensions
extern "C" __global__ void grey(const float *__restrict__ picture,  // [H, W, 3]
                                float *__restrict__ out,            // [H, W]
                                int H, int W) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;  // neighbouring threads, neighbouring pixels
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= W || row >= H) return;  // the last blocks reach past the right and the lower edge

  const long long pixel = static_cast<long long>(row) * W + column;  // rows lie one behind the other
  const float red = picture[3 * pixel];
  const float green = picture[3 * pixel + 1];
  const float blue = picture[3 * pixel + 2];
  out[pixel] = 0.299f * red + 0.587f * green + 0.114f * blue;
}
