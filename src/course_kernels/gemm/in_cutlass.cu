// Matrix multiply in CUTLASS C++: two builders put the kernel together out of parts.
//
// Contract  problem.py      Launcher  in_cutlass.py
// Idea      name the types, the tile, the cluster and a schedule. The mainloop's builder chooses the instruction, the
//           swizzles and the depth of the ring; the epilogue's builder the way of C through shared memory to TMA; the
//           scheduler walks over the tiles
// Against   k11_cluster and k12_stored, where each of these parts is written out
// Cost      a block reads BM rows of A and BN columns of B for a tile; a cluster shares what its blocks have in common
// Limits    Hopper (sm_90a) only; K and N are multiples of 8, for TMA
// Source    CUTLASS, examples 48 and 49; its page "Efficient GEMM"

#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

// Macros of the launcher: BM, BN, BK, CLUSTER_M, CLUSTER_N, PINGPONG, FLOAT16.
using cute::_1;
#if FLOAT16
using Type = cutlass::half_t;
#else
using Type = cutlass::bfloat16_t;
#endif
#if PINGPONG  // two consumers, a tile each: one rounds and stores while the other multiplies
using Schedule = cutlass::gemm::KernelTmaWarpSpecializedPingpong;
using Store = cutlass::epilogue::TmaWarpSpecialized;
#else  // two consumers, half of the rows of a tile each: the tile may be twice as large
using Schedule = cutlass::gemm::KernelTmaWarpSpecializedCooperative;
using Store = cutlass::epilogue::TmaWarpSpecializedCooperative;
#endif
using RowMajor = cutlass::layout::RowMajor;
using Tile = cute::Shape<cute::Int<BM>, cute::Int<BN>, cute::Int<BK>>;
using Cluster = cute::Shape<cute::Int<CLUSTER_M>, cute::Int<CLUSTER_N>, _1>;
constexpr int ALIGNED = 16 / sizeof(Type);  // elements: a row begins at a multiple of 16 bytes

// region kernel
using Epilogue = cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster, cutlass::epilogue::collective::EpilogueTileAuto,
    float, float,              // sums, and what is done with them before they are rounded
    void, RowMajor, ALIGNED,   // nothing is added
    Type, RowMajor, ALIGNED,   // C
    Store, cutlass::epilogue::fusion::ScaledAcc<Type, float>>::CollectiveOp;

using Mainloop = cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp,
    Type, RowMajor, ALIGNED,   // A
    Type, RowMajor, ALIGNED,   // B
    float, Tile, Cluster,
    // As many stages as shared memory holds beside the epilogue's part of it.
    cutlass::gemm::collective::StageCountAutoCarveout<sizeof(Epilogue::SharedStorage)>, Schedule>::CollectiveOp;

using Kernel = cutlass::gemm::kernel::GemmUniversal<
    cute::Shape<int, int, int, int>, Mainloop, Epilogue, cutlass::gemm::PersistentScheduler>;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;
// endregion

// C (M, N) = A (M, K) @ B (K, N), row-major, in the order of the stream; returns a cutlass::Status.
extern "C" int multiply(const void *a, const void *b, void *c, int M, int N, int K, int device, int multiprocessors,
                        int swizzle, cudaStream_t stream) {
  Gemm::Arguments arguments{
      cutlass::gemm::GemmUniversalMode::kGemm,
      {M, N, K, 1},
      {static_cast<const Type *>(a), {K, _1{}, 0}, static_cast<const Type *>(b), {_1{}, N, 0}},  // strides of (n, k)
      {{}, nullptr, {}, static_cast<Type *>(c), {N, _1{}, 0}},  // {}: times 1
      {device, multiprocessors}};
  arguments.scheduler.max_swizzle_size = swizzle;
  Gemm gemm;
  cutlass::Status status = gemm.can_implement(arguments);
  if (status == cutlass::Status::kSuccess) status = gemm(arguments, nullptr, stream);  // it asks for no workspace
  return static_cast<int>(status);
}

extern "C" const char *words_of(int status) { return cutlassGetStatusString(static_cast<cutlass::Status>(status)); }
extern "C" int shared_bytes() { return Kernel::SharedStorageSize; }
extern "C" int stages() { return Mainloop::DispatchPolicy::Stages; }
