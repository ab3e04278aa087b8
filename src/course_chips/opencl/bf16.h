// bfloat16 as the upper half of a float32: OpenCL C has no such type.

static inline float to_float(ushort x) { return as_float((uint)x << 16); }

// Rounded to the nearest, ties to even; a NaN may lose its digits and become an infinity, and none is handed in.
static inline ushort to_bf16(float x) {
    uint bits = as_uint(x);
    return (ushort)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
