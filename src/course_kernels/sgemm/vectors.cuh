// Four neighbours of a row in one 16-byte access, where the matrix allows it.
//
// Contract  VECTORS: every row begins at a multiple of 16 bytes and has a multiple of 4 elements. `left` is how many
//           elements of the row are left from here; what lies past the end is read as 0 and is not written
#pragma once

template <bool VECTORS>
__device__ inline float4 load_4(const float *from, int left) {
  if (VECTORS) return left > 0 ? *reinterpret_cast<const float4 *>(from) : float4{};
  float4 v = {};
  if (left > 0) v.x = from[0];
  if (left > 1) v.y = from[1];
  if (left > 2) v.z = from[2];
  if (left > 3) v.w = from[3];
  return v;
}

template <bool VECTORS>
__device__ inline void store_4(float *to, int left, float4 v) {
  if (VECTORS) {
    if (left > 0) *reinterpret_cast<float4 *>(to) = v;
    return;
  }
  if (left > 0) to[0] = v.x;
  if (left > 1) to[1] = v.y;
  if (left > 2) to[2] = v.z;
  if (left > 3) to[3] = v.w;
}

// Four neighbours in shared memory, into registers; both addresses are multiples of 16 bytes.
__device__ inline void copy_4(float *to, const float *from) {
  *reinterpret_cast<float4 *>(to) = *reinterpret_cast<const float4 *>(from);
}
