"""cuda/hopper/: a kernel with everything in it is right on the CPU's stand-in, each fault is seen, and the SASS is Hopper's."""

import re
from pathlib import Path

import pytest
import torch
from hopper_on_cpu import prepare_in, tensor_map

from course_kernels.cuda.compile import compile_cubin
from course_kernels.cuda.disassemble import sass

TILE = Path(__file__).with_name("hopper_tile.cu")
BM, BN, BK, STAGES = 128, 128, 64, 3
SHARED_BYTES = STAGES * (BM + BN) * BK * 2 + BM * BN * 2 + 64
# One tile and one step; fewer rows than a tile; several tiles each way, ragged, more steps than stages.
SIZES = [(128, 128, 64), (8, 16, 200), (130, 264, 456)]
TWO_TILES = (64, 256, 320)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(M, N, K, cluster, blocks, kernel text) -> the worst error, as a share of the largest number."""
    built = {}

    def run(M, N, K, cluster=1, blocks=1, text=None):
        if (cluster, text) not in built:
            prepare = prepare_in(tmp_path_factory.mktemp("tile"))
            built[cluster, text] = prepare(
                TILE,
                "hopper_tile",
                block=384,
                shared_bytes=SHARED_BYTES,
                cluster=cluster,
                defines={"CLUSTER": cluster},
                text=text,
            )
        draw = torch.Generator().manual_seed(M + N + K)
        a, b = (torch.randn(size, generator=draw).bfloat16() for size in ((M, K), (K, N)))
        c = torch.full((M, N), float("nan"), dtype=torch.bfloat16)
        maps = tensor_map(a, (BM, BK)), tensor_map(b, (BK, 64)), tensor_map(c, (64, 64))
        built[cluster, text](blocks * cluster, *maps, M, N, K)
        truth = a.double() @ b.double()
        return float((c.double() - truth).abs().max() / truth.abs().max())

    return run


@pytest.mark.parametrize(("M", "N", "K"), SIZES)
@pytest.mark.parametrize(("cluster", "blocks"), [(1, 1), (1, 2), (2, 1)])
def test_the_product_is_right(run, cluster, blocks, M, N, K):
    assert run(M, N, K, cluster, blocks) <= 2.0**-8


# What is changed, and what must be said; nothing where the answer is wrong.
FAULTS = {
    "the multiplying warps wait for the wrong phase": (r"(at / STAGES & 1)\);", r"\1 ^ 1);", ""),
    "the asking thread waits for the wrong phase": (
        r" & 1 \^ 1\);",
        " & 1);",
        r"deadlock: .*; threads 128 to 383 wait for parity 0 of the mbarrier .* \(number 1, its phase 0: 1 of 1 arrivals"
        r" and 0 bytes are missing\)",
    ),
    "no bytes announced": (r"arrive_and_expect_bytes\(&full\[s\], STAGE_BYTES\)", "arrive(&full[s])", ""),
    "too few bytes announced": ("STAGE_BYTES\\);\n", "A_BYTES);\n", ""),
    "too many bytes announced": ("STAGE_BYTES\\);\n", "STAGE_BYTES + 16);\n", "0 of 1 arrivals and 16 bytes are missing"),
    "one more arrival wanted than come": (
        r"2 \* CLUSTER",
        "3",
        r"deadlock: thread.* 0 to 0 wait for parity 0 of the mbarrier .*: 1 of 3 arrivals and 0 bytes are missing",
    ),
    "no wait for an empty stage": (r"wait\(&empty.*?\);", "", ""),
    "a stage released before its product is done": (r"wgmma_wait<1>\(\);", "", ""),
    "a stage released one step too early": (r"release\(at - 1\)(?=;\n      })", "release(at)", ""),
    "sums read before the products are done": (r"wgmma_wait<0>\(d\);", "", ""),
    "sums written while a product is under way": (r"(wgmma_commit\(\);)", r"\1 d[0] *= 2;", "sums were written while"),
    "no wgmma_fence": (r"wgmma_fence\(d\);", "", "go to a product without wgmma_fence"),
    "a descriptor of another swizzle": (r"k_major\(", "k_major<64>(", ""),
    "the next panel where it is not": (r"mn_major\(b, PANEL_BYTES\)", "mn_major(b, 1024)", ""),
    "the next columns where they are not": (r"i \* 32\)", "i * 64)", ""),
    "C without its swizzle": (r"swizzled\(", "(", ""),
    "no fence before C is taken": (r"fence_async\(\);", "", "a store of what threads have written without fence_async"),
    "C written over before it was read": (
        r"wait_until_read<0>\(\);  // C of",
        ";  //",
        "changed before its store had read it",
    ),
    "a block that ends with C half read": (
        r"(\n    }\n    if \(threadIdx.x % 128 == 0\)) wait_until_read<0>\(\);",
        r"\1 ;",
        "a block ends before its stores have been read",
    ),
    "barriers that the copy engine does not see": (r"fence_barrier_init\(\);", "", "before fence_barrier_init"),
    "tiles that begin anywhere": (r"__align__\(1024\) ", "", "which is no multiple of 128 bytes"),
    "tiles that begin amid the swizzle": (r"__align__\(1024\)", "__align__(128)", "amid the swizzle's pattern"),
    "a named barrier of too many": (r"named_barrier_wait\(role, 128\)", "named_barrier_wait(role, 256)", "named barrier 1"),
}
OF_A_CLUSTER = {
    "half of B to one block only": (r"&full\[s\], 3,", "&full[s], 1 << rank,", "8192 bytes are missing"),
    "a stage released at home only": (r"(arrive_remote\(.*), threadIdx.x % 128\)", r"\1, rank)", ""),
}


def spoiled(pattern, replacement):
    text, count = re.subn(pattern, replacement, TILE.read_text(), flags=re.DOTALL if "wait_until" in pattern else 0)
    assert count >= 1
    return text


@pytest.mark.parametrize("fault", [*FAULTS, *OF_A_CLUSTER])
def test_a_planted_fault_shows(run, fault):
    pattern, replacement, said = (FAULTS | OF_A_CLUSTER)[fault]
    text = spoiled(pattern, replacement)
    cluster = 2 if fault in OF_A_CLUSTER else 1
    try:
        error = run(*TWO_TILES, cluster, text=text)
    except RuntimeError as caught:
        assert re.search(said, str(caught)), caught
        print(caught)
    else:
        assert not said and not error <= 0.1
