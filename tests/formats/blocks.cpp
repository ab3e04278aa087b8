// Blocks of four-bit numbers by the conversions of CUDA's headers, on the host: what test_many_blocks.py compares with.
#include <cmath>
#include <cstdint>
#include <cuda_fp4.h>
#include <cuda_fp8.h>

static float step_of(int nv, uint8_t scale, float second) {
  if (!nv) return scale == 255 ? NAN : std::ldexp(1.0f, scale - 127);
  __nv_fp8_e4m3 number;
  number.__x = scale;
  return static_cast<float>(number) * second;
}

// x: count blocks of `block` numbers. codes: one a byte.
extern "C" void encode(const float *x, long count, int block, int nv, float second, uint8_t *codes, uint8_t *scales) {
  for (long b = 0; b < count; b++, x += block, codes += block) {
    float largest = 0;
    bool lost = false;
    for (int i = 0; i < block; i++) {
      lost |= !std::isfinite(x[i]);
      largest = std::fmax(largest, std::fabs(x[i]));
    }
    if (lost) {
      scales[b] = nv ? 0x7f : 0xff;
      for (int i = 0; i < block; i++) codes[i] = 0;
      continue;
    }
    if (nv) {
      scales[b] = __nv_fp8_e4m3(largest / (6.0f * second)).__x;
      if (scales[b] == 0) scales[b] = 1;
    } else {
      const int power = largest == 0 ? -127 : std::ilogb(largest) - 2;
      scales[b] = power < -127 ? 0 : power + 127;
    }
    const float step = step_of(nv, scales[b], second);
    for (int i = 0; i < block; i++) codes[i] = __nv_fp4_e2m1(x[i] / step).__x;
  }
}

extern "C" void decode(const uint8_t *codes, const uint8_t *scales, long count, int block, int nv, float second, float *x) {
  for (long i = 0; i < count * block; i++) {
    __nv_fp4_e2m1 number;
    number.__x = codes[i];
    x[i] = static_cast<float>(number) * step_of(nv, scales[i / block], second);
  }
}
