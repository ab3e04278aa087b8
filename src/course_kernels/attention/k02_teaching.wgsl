// Attention, kernel 2, in WGSL: FlashAttention as you type it. Plain fp32, no score ever leaves the chip.
//
// Contract  problem.py, fp32, D = 64      Sister  k02_teaching.cu
// Idea      a workgroup keeps 64 query rows and lets the keys and values pass by in tiles; each row keeps a running
//           maximum m, a running sum l and a running answer acc, repaired whenever m grows
// Against   k01_materialised, which writes N x N scores to memory and reads them back
// Cost      Q and O cross memory once, K and V once for every 64 rows
// Limits    a thread keeps a whole row, where four share one in the sister: that subgroups are there, and which
//           threads they join, WGSL does not promise. So it needs many registers, and the workgroup is small
// Source    Dao 2023, arXiv:2307.08691, algorithm 1; Milakov & Gimelshein 2018, arXiv:1805.02867, algorithm 3

const D: u32 = 64;
const VECTORS: u32 = D / 4;  // of a row
const BLOCK_M: u32 = 64;     // query rows of a workgroup, one a thread
const BLOCK_N: u32 = 16;     // keys of a tile; every thread keeps a score for each of them
const NEVER: f32 = -1e30;    // our minus infinity: finite, so that NEVER - NEVER is 0 and not NaN

struct Sizes { N: u32, causal: u32 }

@group(0) @binding(0) var<storage, read> Q: array<vec4<f32>>;        // [heads, N, VECTORS]
@group(0) @binding(1) var<storage, read> K: array<vec4<f32>>;        // [heads, N, VECTORS]
@group(0) @binding(2) var<storage, read> V: array<vec4<f32>>;        // [heads, N, VECTORS]
@group(0) @binding(3) var<storage, read_write> O: array<vec4<f32>>;  // [heads, N, VECTORS]
@group(0) @binding(4) var<uniform> sizes: Sizes;

var<workgroup> K_tile: array<array<vec4<f32>, VECTORS>, BLOCK_N>;
var<workgroup> V_tile: array<array<vec4<f32>, VECTORS>, BLOCK_N>;

// grid: (ceil(N / BLOCK_M), heads)
@compute @workgroup_size(BLOCK_M)
fn attention_teaching(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) thread: vec3<u32>) {
  let N = sizes.N;
  let head = group.y * N;  // all below is about the rows of one head
  let first_row = group.x * BLOCK_M;
  let row = first_row + thread.x;

  var q: array<vec4<f32>, VECTORS>;
  var acc: array<vec4<f32>, VECTORS>;
  var m = NEVER;
  var l = 0.0;
  for (var i = 0u; i < VECTORS; i++) {
    if (row < N) { q[i] = Q[(head + row) * VECTORS + i] * inverseSqrt(f32(D)); }
  }

  // Causal comes last. Skip: no tile past the workgroup's last row is loaded. Mask: a row stops at its own key.
  let keys_of_block = select(N, min(N, first_row + BLOCK_M), sizes.causal != 0);
  let keys_of_row = select(N, min(N, row + 1), sizes.causal != 0);

  for (var start = 0u; start < keys_of_block; start += BLOCK_N) {
    for (var i = thread.x; i < BLOCK_N * VECTORS; i += BLOCK_M) {
      let key = start + i / VECTORS;
      var k = vec4<f32>();  // past the last key: zeros
      var v = vec4<f32>();
      if (key < N) { k = K[(head + key) * VECTORS + i % VECTORS]; }
      if (key < N) { v = V[(head + key) * VECTORS + i % VECTORS]; }
      K_tile[i / VECTORS][i % VECTORS] = k;
      V_tile[i / VECTORS][i % VECTORS] = v;
    }
    workgroupBarrier();  // the tile is complete

    var s: array<f32, BLOCK_N>;
    var m_new = m;
    for (var j = 0u; j < BLOCK_N; j++) {
      var score = 0.0;
      for (var i = 0u; i < VECTORS; i++) { score += dot(q[i], K_tile[j][i]); }
      s[j] = select(NEVER, score, start + j < keys_of_row);
      m_new = max(m_new, s[j]);
    }

    let repair = exp(m - m_new);
    m = m_new;
    l *= repair;
    for (var i = 0u; i < VECTORS; i++) { acc[i] *= repair; }
    for (var j = 0u; j < BLOCK_N; j++) {
      let p = exp(s[j] - m);
      l += p;
      for (var i = 0u; i < VECTORS; i++) { acc[i] += p * V_tile[j][i]; }
    }
    workgroupBarrier();  // nobody reads the tile any more: the next one may land
  }

  if (row < N) {
    for (var i = 0u; i < VECTORS; i++) { O[(head + row) * VECTORS + i] = acc[i] / l; }
  }
}
