// Copy, kernel 1, in WGSL: 16 bytes at a time, four of them under way in every thread.
//
// Contract  problem.py, in words of 4 bytes: WGSL knows no bytes      Sister  k01_vectorised.cu
// Idea      a thread asks for four 16-byte vectors before it waits for the first, so that enough bytes are
//           under way to keep the memory busy
// Against   one element a thread: a quarter of the bytes for every load instruction
// Cost      reads and writes every word once
// Source    W3C, WebGPU Shading Language, section on memory views; the idea is the sister's

const THREADS: u32 = 256;
const VECTORS: u32 = 4;  // 64 bytes under way in a thread

struct Sizes { N: u32 }  // words

@group(0) @binding(0) var<storage, read> x: array<vec4<u32>>;        // [ceil(N / 4)]
@group(0) @binding(1) var<storage, read_write> y: array<vec4<u32>>;  // [ceil(N / 4)]
@group(0) @binding(2) var<uniform> sizes: Sizes;

// grid: ceil(N / 4 / (VECTORS * THREADS)), at least 1, folded into x and y
@compute @workgroup_size(THREADS)
fn copy_vectorised(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                   @builtin(local_invocation_id) thread: vec3<u32>) {
  let n_vectors = sizes.N / 4;
  let block = group.y * groups.x + group.x;  // at most 65535 workgroups lie side by side
  let first = block * VECTORS * THREADS + thread.x;

  // Neighbouring threads take neighbouring vectors; a thread's own four lie a workgroup apart.
  var held: array<vec4<u32>, VECTORS>;
  for (var v = 0u; v < VECTORS; v++) {
    let i = first + v * THREADS;
    if (i < n_vectors) { held[v] = x[i]; }
  }
  for (var v = 0u; v < VECTORS; v++) {
    let i = first + v * THREADS;
    if (i < n_vectors) { y[i] = held[v]; }
  }

  // Up to 3 words do not fill a vector. One thread carries them all: who writes a component of a vector may touch
  // the whole vector, so two threads must not share one.
  if (block == 0 && thread.x == 0) {
    for (var c = 0u; c < sizes.N % 4; c++) { y[n_vectors][c] = x[n_vectors][c]; }
  }
}
