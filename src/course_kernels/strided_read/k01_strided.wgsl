// Strided read, kernel 1, in WGSL: thread i reads what thread i is told to read, however far from its neighbour's.
//
// Contract  problem.py      Sister  k01_strided.cu
// Idea      the addresses of neighbouring threads become as many pieces of memory as they touch: few at stride 1, one
//           for every thread at a large stride, for the same bytes wanted. How large a piece is, nobody says: try it
// Against   copy, where neighbours read neighbours
// Cost      a piece that holds one wanted element is fetched whole; the writes stay side by side
// Source    CUDA C++ Best Practices Guide, section on strided accesses

const THREADS: u32 = 256;

struct Sizes { N: u32, S: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;        // [N / S, S]
@group(0) @binding(1) var<storage, read_write> y: array<f32>;  // [S, N / S]
@group(0) @binding(2) var<uniform> sizes: Sizes;

// grid: (ceil(N / S / THREADS), S), the first folded into x and z
@compute @workgroup_size(THREADS)
fn read_strided(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                @builtin(local_invocation_id) thread: vec3<u32>) {
  let lap = sizes.N / sizes.S;  // elements of one walk over x
  let i = (group.z * groups.x + group.x) * THREADS + thread.x;
  if (i >= lap) { return; }
  y[group.y * lap + i] = x[i * sizes.S + group.y];
}
