"""cuda/hopper/: kernels that use all of it are right on the CPU, faults are seen, and the SASS is Hopper's."""

import re
from pathlib import Path

import pytest
import torch
from hopper_on_cpu import prepare_in, tensor_map
from machine_code import sass

from course_kernels.cuda.compile import compile_cubin

pytestmark = pytest.mark.kept

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
        r"deadlock: .*; threads 128 to 383 wait for parity 0 of the mbarrier .* "
        r"\(number 1, its phase 0: 1 of 1 arrivals and 0 bytes are missing\)",
    ),
    "no bytes announced": (r"arrive_and_expect_bytes\(&full\[s\], STAGE_BYTES\)", "arrive(&full[s])", ""),
    "too few bytes announced": ("STAGE_BYTES\\);\n", "A_BYTES);\n", ""),
    "too many bytes announced": (
        "STAGE_BYTES\\);\n",
        "STAGE_BYTES + 16);\n",
        "0 of 1 arrivals and 16 bytes are missing",
    ),
    "one more arrival wanted than come": (
        r"2 \* CLUSTER",
        "3",
        r"deadlock: thread.* 0 to 0 wait for parity 0 of the mbarrier .*: 1 of 3 arrivals and 0 bytes are missing",
    ),
    "no wait for an empty stage": (r"wait\(&empty.*?\);", "", ""),
    "a stage released before its product is done": (r"wgmma_wait<1>\(\);", "", ""),
    "a stage released one step too early": (r"release\(at - 1\)(?=;\n      })", "release(at)", ""),
    "sums read before the products are done": (r"wgmma_wait<0>\(d\);", "", ""),
    "sums written while a product is under way": (
        r"(wgmma_commit\(\);)",
        r"\1 d[0] *= 2;",
        "sums were written while",
    ),
    "no wgmma_fence": (r"wgmma_fence\(d\);", "", "go to a product without wgmma_fence"),
    "a descriptor of another swizzle": (r"k_major\(", "k_major<64>(", ""),
    "the next panel where it is not": (r"mn_major\(b, PANEL_BYTES\)", "mn_major(b, 1024)", ""),
    "the next columns where they are not": (r"i \* 32\)", "i * 64)", ""),
    "C without its swizzle": (r"swizzled\(", "(", ""),
    "no fence before C is taken": (
        r"fence_async\(\);",
        "",
        "a store of what threads have written without fence_async",
    ),
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
    "barriers that the copy engine does not see": (
        r"fence_barrier_init\(\);",
        "",
        "before fence_barrier_init",
    ),
    "C stored from before its first row": (
        r"n \+ p \* 64, m\)",
        "n + p * 64, m - 8)",
        "a store that begins before its tensor",
    ),
    "tiles that begin anywhere": (r"__align__\(1024\) ", "", "which is no multiple of 128 bytes"),
    "tiles that begin amid the swizzle": (
        r"__align__\(1024\)",
        "__align__(128)",
        "amid the swizzle's pattern",
    ),
    "more registers than were given back": (
        r"registers_down<24>",
        "registers_down<32>",
        "warpgroups ask for 65536 registers, and the block has 64512",
    ),
    "a named barrier of too many": (
        r"named_barrier_wait\(role, 128\)",
        "named_barrier_wait(role, 256)",
        "named barrier 1",
    ),
}
OF_A_CLUSTER = {
    "half of B to one block only": (r"&full\[s\], 3,", "&full[s], 1 << rank,", "8192 bytes are missing"),
    "a stage released at home only": (
        r"(arrive_remote\(.*), threadIdx.x % 128\)",
        r"\1, rank)",
        "an earlier one has not come yet",
    ),
}


def spoiled(pattern, replacement):
    text, count = re.subn(
        pattern, replacement, TILE.read_text(), flags=re.DOTALL if "wait_until" in pattern else 0
    )
    assert count >= 1
    return text


@pytest.mark.parametrize("fault", [*FAULTS, *OF_A_CLUSTER])
def test_a_planted_fault_shows(run, fault):
    pattern, replacement, said = (FAULTS | OF_A_CLUSTER)[fault]
    text = spoiled(pattern, replacement)
    cluster = 2 if fault in OF_A_CLUSTER else 1
    error, fault = 1.0, ""
    try:
        error = run(*TWO_TILES, cluster, text=text)
    except RuntimeError as caught:
        fault = str(caught)

    assert re.search(said, fault), fault
    assert not error <= 0.1


# --- what else the headers have -------------------------------------------------------------------

FORMS = Path(__file__).with_name("hopper_forms.cu")
TYPES = {"Bf16x16": torch.bfloat16, "F16x16": torch.float16, "E4m3x32": torch.float8_e4m3fn}
# Type, whether A and B lie by rows of k, bytes of a panel's row, N, K.
PRODUCTS = [
    ("Bf16x16", 0, 0, 128, 80, 128),
    ("Bf16x16", 1, 1, 128, 192, 32),
    ("F16x16", 0, 1, 64, 96, 64),
    ("F16x16", 1, 0, 32, 16, 32),
    ("E4m3x32", 0, 0, 128, 176, 256),
    ("E4m3x32", 0, 0, 64, 256, 64),
]


def macros_of(kind, a_mn, b_mn, row_bytes, N, K):
    size = TYPES[kind].itemsize
    return {
        "TYPE": kind,
        "BYTES": size,
        "A_MN": a_mn,
        "B_MN": b_mn,
        "PANEL_ROW": row_bytes,
        "WIDE": N,
        "DEEP": K,
    }


def drawn(rows, K, dtype, transposed):
    """A matrix as it lies, and the same as (rows, K) in float64."""
    x = (torch.randint(-8, 9, (rows, K), generator=torch.Generator().manual_seed(rows)) / 4).to(dtype)
    return (x.t().contiguous() if transposed else x), x.double()


@pytest.mark.parametrize("form", PRODUCTS, ids=lambda form: "-".join(map(str, form)))
def test_every_kind_of_operand(tmp_path, form):
    kind, a_mn, b_mn, row_bytes, N, K = form
    row = row_bytes // TYPES[kind].itemsize
    (a, true_a), (b, true_b) = drawn(64, K, TYPES[kind], a_mn), drawn(N, K, TYPES[kind], b_mn)
    maps = [
        tensor_map(x, (K if mn else rows, row), row_bytes) for x, rows, mn in ((a, 64, a_mn), (b, N, b_mn))
    ]
    c = torch.full((64, N), float("nan"))
    shared_bytes = (64 + N) * K * a.element_size() + 64
    prepare = prepare_in(tmp_path)
    prepare(FORMS, "one_product", block=128, shared_bytes=shared_bytes, defines=macros_of(*form))(1, *maps, c)

    assert torch.equal(c.double(), true_a @ true_b.T)  # quarters of small whole numbers: exact in float32


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ((r"operand\(p\[i\], s, i\)", "operand(p[i], s, 3 - i)"), ""),
        ((r"wgmma_fence\(o\);", ""), "A in registers, and no wgmma_fence since the last wait"),
        ((r"expect_bytes\(full, 8192\);", ""), "a block ends while a copy is coming"),
        ((r"<64, Bf16x16, Major::mn>", "<64>"), "outside of the dynamic shared memory"),
        (None, ""),
    ],
    ids=["the wrong columns", "no fence", "too few bytes", "V the other way", "right"],
)
def test_sums_are_the_next_operand(tmp_path, fault, said):
    q, k, v = (torch.randn(64, 64, generator=torch.Generator().manual_seed(i)).bfloat16() for i in range(3))
    q *= 0.25
    o = torch.full((64, 64), float("nan"))
    text = FORMS.read_text()
    if fault:
        text, count = re.subn(*fault, text)
        assert count == 1
    kernel = prepare_in(tmp_path)(FORMS, "chained", block=128, shared_bytes=3 * 8192 + 64, text=text)
    truth = torch.exp2(q.double() @ k.double().T) @ v.double()
    told = ""
    try:
        kernel(1, *(tensor_map(x, (64, 64)) for x in (q, k, v)), o)
    except RuntimeError as caught:
        told = str(caught)

    assert re.search(said, told), told
    assert ((o.double() - truth).abs().max() <= 2.0**-7 * truth.abs().max()) == (fault is None)


def test_copies_of_many_dimensions_and_of_none(tmp_path):
    draw = torch.Generator().manual_seed(0)
    x, z = (torch.randint(-9, 10, size, generator=draw).float() for size in ((3, 6, 12), (2, 3, 2, 5, 8)))
    y, t = torch.ones(2, 4, 8), torch.full((16, 16), float("nan"), dtype=torch.float16)
    source, target = torch.arange(64.0), torch.full((64,), 0.5)
    box = (2, 4, 8)
    maps = [tensor_map(x, box, 0), tensor_map(y, box, 0), tensor_map(z, (1, 2, 1, 4, 8), 0)]
    kernel = prepare_in(tmp_path)(FORMS, "moves", block=128, shared_bytes=4096 + 64)
    kernel(1, *maps, tensor_map(t, (16, 16), 0), source, target)

    of_x, of_z = torch.zeros(box), torch.zeros(1, 2, 1, 4, 8)
    of_x[:, 1:, :] = x[1:3, 0:3, 4:12]  # one row before the tensor
    of_z[0, :, 0, :2] = z[1, 0:2, 1, 3:5]  # two rows behind it
    assert torch.equal(y, 1 + of_x + of_z.reshape(box))
    assert torch.equal(target[:32], source[:32])
    assert torch.equal(target[32:], source[32:] + 0.5)
    number = torch.arange(16)
    assert torch.equal(t.int(), 100 * number + number[:, None])


# --- the machine code -----------------------------------------------------------------------------


@pytest.mark.parametrize("cluster", [1, 2])
def test_the_tile_kernel_uses_hoppers_own_instructions_and_spills_nothing(cluster):
    text = sass(compile_cubin(TILE, "sm_90a", {"CLUSTER": cluster}))

    assert len(re.findall(r"HGMMA\.64x128x16\.F32\.BF16 \S+, gdesc\[\S+\]\.tnspB", text)) == 4
    assert len(re.findall(r"WARPGROUP\.DEPBAR", text)) == 2  # else the compiler waits after every product
    for name in ("UTMALDG.2D", "UTMASTG.2D", "SYNCS.PHASECHK.TRANS64.TRYWAIT", "USETMAXREG", "STSM", "ELECT"):
        assert name in text
    assert ("UTMALDG.2D.MULTICAST" in text) == (cluster > 1) == ("UCGABAR_WAIT" in text)
    assert not re.search(r"\b(LDL|STL)\b", text)


@pytest.mark.parametrize("form", [*PRODUCTS, None], ids=lambda form: "-".join(map(str, form or ["chained"])))
def test_every_form_is_one_instruction(form):
    text = sass(compile_cubin(FORMS, "sm_90a", macros_of(*form) if form else None))
    kind, N, K = (form[0], form[4], form[5]) if form else ("Bf16x16", 80, 128)
    name = {"Bf16x16": r"HGMMA\.64x{}x16\.F32\.BF16", "F16x16": r"HGMMA\.64x{}x16\.F32 "}.get(
        kind, r"QGMMA\.64x{}x32"
    )

    assert len(re.findall(name.format(N), text)) == K * TYPES[kind].itemsize // 32
    assert len(re.findall(r"HGMMA\.64x64x16\.F32\.BF16", text)) == 8  # of `chained`
    for of_moves in (
        "UTMALDG.3D",
        "UTMALDG.5D",
        "UTMAREDG.3D.ADD",
        "UBLKCP",
        "UBLKRED",
        "STSM",
        "UTMASTG.2D",
    ):
        assert of_moves in text
    assert not re.search(r"\b(LDL|STL)\b", text)
