// Hopper's matrix instruction: 64 rows of A times N columns of B, by the 128 threads of a warpgroup, on its own.
//
// Contract  wgmma_fence; products; wgmma_commit closes them into a group; wgmma_wait<LEFT> until at most LEFT groups
//           are under way. From the product to the wait the sums, A in registers and the tiles in shared memory are
//           the tensor cores': nobody reads the sums, nobody writes any of them
// Layout    of the sums: row 16 * warp + lane / 4 (+ 8), column 8 * j + lane % 4 * 2 (+ 1) of the 64 x N lies in
//           d[4 * j], (right of it) d[4 * j + 1], (eight rows below) d[4 * j + 2], d[4 * j + 3]; warp is
//           threadIdx.x / 32 % 4. Of 16-bit A in registers: the same for 16 columns, two neighbours in a register. So
//           the sums of one product, rounded in pairs, are the A of the next (attention's P): `operand`, no shuffle.
//           8-bit A has another layout
// Limits    sm_90a. Sums are float32. A warpgroup is four warps, the first's number divisible by four; all its threads
//           call
// Source    PTX ISA, Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions
#pragma once

#include <hopper/descriptor.cuh>

// Types of the numbers that are multiplied.
struct Bf16x16 {};  // k is 16
struct F16x16 {};   // k is 16
struct E4m3x32 {};  // k is 32; both operands K-major

// Which way an operand lies in shared memory; see descriptor.cuh.
enum class Major { k, mn };

// --- when -----------------------------------------------------------------------------------------

// These registers are used here: the compiler moves no reading or writing of them over this place.
template <int R>
__device__ inline void hold(float (&d)[R]) {
#pragma unroll
  for (int i = 0; i < R; i++) asm volatile("" : "+f"(d[i])::"memory");
}

// Before the first product, and again after threads wrote to sums or to A's registers: name those sums.
template <int... R>
__device__ inline void wgmma_fence(float (&...d)[R]) {
  (hold(d), ...);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Until at most LEFT groups are under way. Name the sums that are then finished, and only those.
template <int LEFT, int... R>
__device__ inline void wgmma_wait(float (&...d)[R]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
  (hold(d), ...);
}

// --- what -----------------------------------------------------------------------------------------

namespace wgmma {
template <class A, class B>
constexpr bool same = false;
template <class A>
constexpr bool same<A, A> = true;

template <int COLUMNS>
struct Product;

#define HELD_8_FROM(d, i)                                                                     \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])

#define NUMBERS_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define NUMBERS_16 NUMBERS_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define NUMBERS_24 NUMBERS_16 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define NUMBERS_32 NUMBERS_24 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define NUMBERS_40 NUMBERS_32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define NUMBERS_48 NUMBERS_40 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define NUMBERS_56 NUMBERS_48 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define NUMBERS_64 NUMBERS_56 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define NUMBERS_72 NUMBERS_64 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define NUMBERS_80 NUMBERS_72 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define NUMBERS_88 NUMBERS_80 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define NUMBERS_96 NUMBERS_88 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define NUMBERS_104 NUMBERS_96 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define NUMBERS_112 NUMBERS_104 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define NUMBERS_120 NUMBERS_112 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define NUMBERS_128 NUMBERS_120 ", %120, %121, %122, %123, %124, %125, %126, %127"

#define HELD_8(d) HELD_8_FROM(d, 0)
#define HELD_16(d) HELD_8(d), HELD_8_FROM(d, 8)
#define HELD_24(d) HELD_16(d), HELD_8_FROM(d, 16)
#define HELD_32(d) HELD_24(d), HELD_8_FROM(d, 24)
#define HELD_40(d) HELD_32(d), HELD_8_FROM(d, 32)
#define HELD_48(d) HELD_40(d), HELD_8_FROM(d, 40)
#define HELD_56(d) HELD_48(d), HELD_8_FROM(d, 48)
#define HELD_64(d) HELD_56(d), HELD_8_FROM(d, 56)
#define HELD_72(d) HELD_64(d), HELD_8_FROM(d, 64)
#define HELD_80(d) HELD_72(d), HELD_8_FROM(d, 72)
#define HELD_88(d) HELD_80(d), HELD_8_FROM(d, 80)
#define HELD_96(d) HELD_88(d), HELD_8_FROM(d, 88)
#define HELD_104(d) HELD_96(d), HELD_8_FROM(d, 96)
#define HELD_112(d) HELD_104(d), HELD_8_FROM(d, 104)
#define HELD_120(d) HELD_112(d), HELD_8_FROM(d, 112)
#define HELD_128(d) HELD_120(d), HELD_8_FROM(d, 120)

// PTX wants to know by a predicate whether the product is added to d or takes its place.
#define ASK(WHAT, NUMBERS, OPERANDS, ADD, TAIL) \
  "{\n.reg .pred p;\nsetp.ne.b32 p, " ADD ", 0;\nwgmma.mma_async.sync.aligned." WHAT " {" NUMBERS "}, " OPERANDS \
  ", p, 1, 1" TAIL ";\n}"

// Operands come after the R sums, so their numbers differ from N to N: O0 is %R, O1 the next.
#define PRODUCT(N, R, O0, O1, O2, O3, O4, O5, O6)                                                                      \
  template <>                                                                                                          \
  struct Product<N> {                                                                                                  \
    template <class T, int A_TRANSPOSED, int B_TRANSPOSED>                                                             \
    __device__ static void shared(float (&d)[R], Descriptor a, Descriptor b, int add) {                                \
      if constexpr (same<T, Bf16x16>)                                                                                  \
        asm volatile(ASK("m64n" #N "k16.f32.bf16.bf16", NUMBERS_##R, O0 ", " O1, O2, ", " O3 ", " O4)                  \
                     : HELD_##R(d) : "l"(a), "l"(b), "r"(add), "n"(A_TRANSPOSED), "n"(B_TRANSPOSED));                  \
      else if constexpr (same<T, F16x16>)                                                                              \
        asm volatile(ASK("m64n" #N "k16.f32.f16.f16", NUMBERS_##R, O0 ", " O1, O2, ", " O3 ", " O4)                    \
                     : HELD_##R(d) : "l"(a), "l"(b), "r"(add), "n"(A_TRANSPOSED), "n"(B_TRANSPOSED));                  \
      else                                                                                                             \
        asm volatile(ASK("m64n" #N "k32.f32.e4m3.e4m3", NUMBERS_##R, O0 ", " O1, O2, "")                               \
                     : HELD_##R(d) : "l"(a), "l"(b), "r"(add));                                                        \
    }                                                                                                                  \
    template <class T, int B_TRANSPOSED>                                                                               \
    __device__ static void registers(float (&d)[R], const unsigned (&a)[4], Descriptor b, int add) {                   \
      if constexpr (same<T, Bf16x16>)                                                                                  \
        asm volatile(ASK("m64n" #N "k16.f32.bf16.bf16", NUMBERS_##R, "{" O0 ", " O1 ", " O2 ", " O3 "}, " O4, O5,      \
                         ", " O6)                                                                                      \
                     : HELD_##R(d)                                                                                     \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(B_TRANSPOSED));               \
      else if constexpr (same<T, F16x16>)                                                                              \
        asm volatile(ASK("m64n" #N "k16.f32.f16.f16", NUMBERS_##R, "{" O0 ", " O1 ", " O2 ", " O3 "}, " O4, O5,        \
                         ", " O6)                                                                                      \
                     : HELD_##R(d)                                                                                     \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(B_TRANSPOSED));               \
      else                                                                                                             \
        asm volatile(ASK("m64n" #N "k32.f32.e4m3.e4m3", NUMBERS_##R, "{" O0 ", " O1 ", " O2 ", " O3 "}, " O4, O5, "")  \
                     : HELD_##R(d)                                                                                     \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));                                  \
    }                                                                                                                  \
  };

PRODUCT(16, 8, "%8", "%9", "%10", "%11", "%12", "%13", "%14")
PRODUCT(32, 16, "%16", "%17", "%18", "%19", "%20", "%21", "%22")
PRODUCT(48, 24, "%24", "%25", "%26", "%27", "%28", "%29", "%30")
PRODUCT(64, 32, "%32", "%33", "%34", "%35", "%36", "%37", "%38")
PRODUCT(80, 40, "%40", "%41", "%42", "%43", "%44", "%45", "%46")
PRODUCT(96, 48, "%48", "%49", "%50", "%51", "%52", "%53", "%54")
PRODUCT(112, 56, "%56", "%57", "%58", "%59", "%60", "%61", "%62")
PRODUCT(128, 64, "%64", "%65", "%66", "%67", "%68", "%69", "%70")
PRODUCT(144, 72, "%72", "%73", "%74", "%75", "%76", "%77", "%78")
PRODUCT(160, 80, "%80", "%81", "%82", "%83", "%84", "%85", "%86")
PRODUCT(176, 88, "%88", "%89", "%90", "%91", "%92", "%93", "%94")
PRODUCT(192, 96, "%96", "%97", "%98", "%99", "%100", "%101", "%102")
PRODUCT(208, 104, "%104", "%105", "%106", "%107", "%108", "%109", "%110")
PRODUCT(224, 112, "%112", "%113", "%114", "%115", "%116", "%117", "%118")
PRODUCT(240, 120, "%120", "%121", "%122", "%123", "%124", "%125", "%126")
PRODUCT(256, 128, "%128", "%129", "%130", "%131", "%132", "%133", "%134")

#undef PRODUCT
#undef ASK
#undef HELD_8_FROM
}  // namespace wgmma

// d [64, N] = A @ B, added to d unless `add` is false. N is COLUMNS, a multiple of 16; k what T says (32 bytes). A and B
// lie in shared memory, each the way that its Major says. With `add` a constant the compiler leaves out the question.
template <int COLUMNS, class T = Bf16x16, Major B_MAJOR = Major::k, Major A_MAJOR = Major::k>
__device__ inline void products(float (&d)[COLUMNS / 2], Descriptor a, Descriptor b, bool add = true) {
  static_assert(!wgmma::same<T, E4m3x32> || (B_MAJOR == Major::k && A_MAJOR == Major::k), "8 bits: K-major");
  wgmma::Product<COLUMNS>::template shared<T, A_MAJOR == Major::mn, B_MAJOR == Major::mn>(d, a, b, add);
}

// The same, and this thread's part of A [64, k] lies in four registers.
template <int COLUMNS, class T = Bf16x16, Major B_MAJOR = Major::k>
__device__ inline void products(float (&d)[COLUMNS / 2], const unsigned (&a)[4], Descriptor b, bool add = true) {
  static_assert(!wgmma::same<T, E4m3x32> || B_MAJOR == Major::k, "8 bits: K-major");
  wgmma::Product<COLUMNS>::template registers<T, B_MAJOR == Major::mn>(d, a, b, add);
}
