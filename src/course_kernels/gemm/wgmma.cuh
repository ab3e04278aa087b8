// Hopper's matrix instruction and what belongs to it: one function for one line of PTX.
//
// For       k04_wgmma.cu, which says in what order they are called
// Source    PTX ISA, Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions
#pragma once

#if FLOAT16
#define TYPE "f16"
#else
#define TYPE "bf16"
#endif

using Descriptor = unsigned long long;

// The tensor cores read shared memory by a road of their own (the async proxy). What this thread wrote before the
// fence is there for them after it.
__device__ inline void fence_for_tensor_cores() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Where a matrix lies: 64 bits, lengths in units of 16 bytes. Bits 0-13 its address; 16-29 the step from 64 columns
// to the next 64, where columns lie side by side (MN-major); 32-45 the step from eight rows of 128 bytes to the next
// eight; 62-63 the swizzle, 1 for the one of 128 bytes.
__device__ inline Descriptor descriptor(unsigned address, unsigned next_64, unsigned next_8) {
  return (address & 0x3ffff) >> 4 | static_cast<Descriptor>(next_64 >> 4) << 16 |
         static_cast<Descriptor>(next_8 >> 4) << 32 | 1ull << 62;
}

// Before the first wgmma of a batch: the registers of d, written until now by the threads, are the tensor cores'.
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Until at most LEFT batches are under way.
template <int LEFT>
__device__ inline void wgmma_wait(float (&d)[128]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
#pragma unroll
  for (int i = 0; i < 128; i++) asm volatile("" : "+f"(d[i])::"memory");  // no earlier reading of d
}

#define EIGHT(d, i) \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])

// d [64, 256] += A [64, 16] @ B [16, 256], by the 128 threads of a warpgroup together; d is spread over them, 128
// numbers each. The five numbers at the end: add to d; plus A, plus B; A lies as it is (K-major), B by rows of n
// (MN-major), so "transposed".
__device__ inline void wgmma_64x256x16(float (&d)[128], Descriptor a, Descriptor b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n256k16.f32." TYPE "." TYPE " {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
      "%128, %129, 1, 1, 1, 0, 1;"
      : EIGHT(d, 0), EIGHT(d, 8), EIGHT(d, 16), EIGHT(d, 24), EIGHT(d, 32), EIGHT(d, 40), EIGHT(d, 48), EIGHT(d, 56),
        EIGHT(d, 64), EIGHT(d, 72), EIGHT(d, 80), EIGHT(d, 88), EIGHT(d, 96), EIGHT(d, 104), EIGHT(d, 112), EIGHT(d, 120)
      : "l"(a), "l"(b));
}

// Two numbers, rounded to 16 bits each, in one register.
__device__ inline unsigned pack(float low, float high) {
  unsigned both;
  asm("cvt.rn." TYPE "x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
