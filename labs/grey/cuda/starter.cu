// Lab grey: a colour picture in, the same picture in grey out. launch.py calls this kernel with blocks of 32 x 8
// threads on a grid that covers the picture: x counts along a row, y counts rows.

extern "C" __global__ void grey(const float *picture,  // [H, W, 3]
                                float *out,            // [H, W]
                                int H, int W) {
  // your lines go here
}
