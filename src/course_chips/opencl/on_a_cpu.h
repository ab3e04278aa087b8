// What OpenCL C has and C++ has not, so that our kernels run on the machine that compiles them: work items one after the
// other, and the 16 of a sub-group as threads that wait for each other where they multiply together.
#include <barrier>
#include <bit>
#include <cmath>
#include <functional>
#include <thread>
#include <vector>

#define __global
#define __kernel extern "C"
#define intel_reqd_sub_group_size(n) unused
using uint = unsigned int;
using ushort = unsigned short;
typedef float float8 __attribute__((vector_size(32)));
typedef short short8 __attribute__((vector_size(16)));
typedef int int8 __attribute__((vector_size(32)));
using std::exp2, std::fma;

inline float as_float(uint x) { return std::bit_cast<float>(x); }
inline uint as_uint(float x) { return std::bit_cast<uint>(x); }
inline float fmax(float a, float b) { return a > b ? a : b; }

inline thread_local long the_id[2], the_lane;
inline long get_global_id(int axis) { return the_id[axis]; }
inline int get_sub_group_local_id() { return (int)the_lane; }

constexpr int LANES = 16;
inline std::barrier<> all_lanes(LANES);
inline short8 every_a[LANES];

// Sums of 8 rows, for one column of B in each lane: lane i has column i of A, and pairs of rows of B.
inline float8 product_of_a_sub_group(float8 sums, short8 a, int8 b) {
    every_a[the_lane] = a;
    all_lanes.arrive_and_wait();
    for (int j = 0; j < 8; ++j)
        for (int k = 0; k < LANES; ++k) {
            uint pair = (uint)b[k / 2], half = k % 2 ? pair & 0xffff0000u : pair << 16;
            sums[j] += as_float((uint)(ushort)every_a[k][j] << 16) * as_float(half);
        }
    all_lanes.arrive_and_wait();
    return sums;
}
#define __builtin_IB_sub_group16_fdpas_f_f_bf_bf_8_8 product_of_a_sub_group

// Run a kernel for all work items of a grid.
inline void everywhere(long columns, long rows, const std::function<void()>& kernel) {
    for (long row = 0; row < rows; ++row)
        for (long column = 0; column < columns; ++column) {
            the_id[0] = column, the_id[1] = row;
            kernel();
        }
}

// The same, where the 16 of a sub-group go side by side.
inline void by_sub_groups(long columns, long rows, const std::function<void()>& kernel) {
    std::vector<std::thread> lanes;
    for (int lane = 0; lane < LANES; ++lane)
        lanes.emplace_back([=] {
            the_lane = lane;
            for (long row = 0; row < rows; ++row)
                for (long first = 0; first < columns; first += LANES) {
                    the_id[0] = first + lane, the_id[1] = row;
                    kernel();
                }
        });
    for (auto& lane : lanes) lane.join();
}
