#!/usr/bin/env bash
# Intel's ocloc builds a kernel that calls a function which is nowhere, says "Build succeeded.", and leaves the call out.
#
# Seen with intel-opencl-icd 22.43.24595.41-1 and libigc1 1.0.12504.6-1+deb12u1 of Debian 12. A name that begins with
# __builtin_IB_, declared in the source, is one of the compiler's own. __builtin_IB_sub_group16_fdpas_f_f_bf_bf_8_8 for
# Xe-HPC (pvc) becomes dpas, a product of matrices. The same source for Xe-HPG (dg2), which has matrix engines, too, builds,
# and no dpas is in its code. So does __builtin_IB_no_such_thing for both. A loop that only feeds such a call goes with it.
# It matters to whoever takes a build that succeeds for a product that is there: count the instruction.
#
# Exits with 0 while this is so, with 1 when it has changed. Needs Debian 12's packages and apt-get.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download --quiet=2 -o APT::Sandbox::User=root intel-opencl-icd=22.43.24595.41-1 libigc1=1.0.12504.6-1+deb12u1 \
    libigdfcl1=1.0.12504.6-1+deb12u1 libigdgmm12 libopencl-clang14 libllvmspirvlib14 libllvm14 libclang-cpp14
for package in ./*.deb; do dpkg -x "$package" root; done
libraries="$folder/root/usr/lib/x86_64-linux-gnu"
export LD_LIBRARY_PATH="$libraries:$libraries/intel-opencl"
is_so=0
try() { # device, built-in, how many dpas are to be found
    cat > kernel.cl <<CL
float8 $2(float8 sums, short8 a, int8 b);
__kernel __attribute__((intel_reqd_sub_group_size(16)))
void multiply(__global const short* A, __global const int* B, __global float* C, int K) {
    int lane = get_sub_group_local_id();
    float8 sums;
    for (int j = 0; j < 8; ++j) sums[j] = 0;
    for (int k = 0; k < K; ++k) {
        short8 a;
        int8 b;
        for (int j = 0; j < 8; ++j) { a[j] = A[(8 * k + j) * 16 + lane]; b[j] = B[(8 * k + j) * 16 + lane]; }
        sums = $2(sums, a, b);
    }
    for (int j = 0; j < 8; ++j) C[j * 16 + lane] = sums[j];
}
CL
    rm -rf dump && mkdir dump
    said=$(IGC_ShaderDumpEnable=1 IGC_DumpToCustomDir="$folder/dump" root/usr/bin/ocloc compile -file kernel.cl \
        -device "$1" -output out | tail -1)
    found=$(cat dump/*entry*.asm | grep -v '^//' | grep -c 'dpas' || true)
    echo "$1, $2: $said dpas: $found"
    if [ "$said" != "Build succeeded." ] || [ "$found" != "$3" ]; then is_so=1; fi
}
try pvc __builtin_IB_sub_group16_fdpas_f_f_bf_bf_8_8 1
try dg2 __builtin_IB_sub_group16_fdpas_f_f_bf_bf_8_8 0
try pvc __builtin_IB_no_such_thing 0
try dg2 __builtin_IB_no_such_thing 0
if [ $is_so = 0 ]; then echo "as described"; else echo "this has changed"; fi
exit $is_so
