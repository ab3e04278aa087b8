// Where a matrix lies in shared memory, as wgmma wants to be told, and where the copy engine's swizzle puts a byte.
//
// Idea      a tile lies in panels, ROW_BYTES wide: 128, 64 or 32, as the swizzle. A panel's rows lie one behind the
//           other, eight of them repeat the swizzle's pattern, and the copy engine fills one panel per box
// Limits    nothing here is an instruction, so the CPU's tests use this very file. A panel begins at a multiple of
//           8 * ROW_BYTES
// Source    PTX ISA, wgmma: strides, canonical layouts, and the matrix descriptor
#pragma once

using Descriptor = unsigned long long;

// 64 bits, lengths in units of 16 bytes. Bits 0-13 the address; 16-29 the leading step, 32-45 the stride; 62-63 the
// swizzle: 1 of 128 bytes, 2 of 64, 3 of 32.
template <int ROW_BYTES>
__device__ constexpr Descriptor descriptor(unsigned address, unsigned leading, unsigned stride) {
  static_assert(ROW_BYTES == 128 || ROW_BYTES == 64 || ROW_BYTES == 32, "rows of 128, 64 or 32 bytes");
  return static_cast<Descriptor>((address & 0x3ffff) >> 4) | static_cast<Descriptor>(leading >> 4 & 0x3fff) << 16 |
         static_cast<Descriptor>(stride >> 4 & 0x3fff) << 32 |
         static_cast<Descriptor>(ROW_BYTES == 128 ? 1 : ROW_BYTES == 64 ? 2 : 3) << 62;
}

// Rows of the matrix (m of A, n of B) are the panel's rows, and k runs along them. An instruction takes 32 bytes of k.
// The next ones: `advance` by 32 within the panel, by rows * ROW_BYTES to the next panel.
template <int ROW_BYTES = 128>
__device__ constexpr Descriptor k_major(unsigned address) {
  return descriptor<ROW_BYTES>(address, 16, 8 * ROW_BYTES);
}

// The panel's rows are k, and m or n runs along them; 16-bit numbers only. `panel_bytes` from one panel to the next
// ROW_BYTES / 2 of m or n; with one panel it is not looked at. The next 16 of k: `advance` by 16 * ROW_BYTES.
template <int ROW_BYTES = 128>
__device__ constexpr Descriptor mn_major(unsigned address, unsigned panel_bytes) {
  return descriptor<ROW_BYTES>(address, panel_bytes, 8 * ROW_BYTES);
}

// The same matrix, so many bytes further on: a multiple of 16.
__device__ constexpr Descriptor advance(Descriptor d, unsigned bytes) { return d + (bytes >> 4); }

// Where the byte of that offset lies, row * ROW_BYTES + column in bytes, counted from where a panel begins. Pieces of
// 16 bytes change places within a row: so threads meet what the copy engine brought, and leave what it is to take.
template <int ROW_BYTES = 128>
__device__ constexpr unsigned swizzled(unsigned offset) {
  static_assert(ROW_BYTES == 128 || ROW_BYTES == 64 || ROW_BYTES == 32, "rows of 128, 64 or 32 bytes");
  return offset ^ (offset >> 7 & (ROW_BYTES / 16 - 1)) << 4;
}
