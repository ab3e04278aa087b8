"""Norm, projection and RoPE in the interpreter: heads, parts, positions, the cache; the model's formulas; faults."""

import re
from types import SimpleNamespace

import pytest
import torch
from planted import planted, seen

from course_judge.worker.interpreter import watched_memory
from course_kernels.measure.check import WrongResult, checked_error
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import Workload, worst_error
from course_kernels.qkv_rope import arguments, k01_three_kernels, k02_fused, library
from course_kernels.qkv_rope.problem import EPSILON, PROBLEM, THETA
from course_models import operators
from course_models.config import LLAMA_8B
from course_models.model import rope_tables

pytestmark = pytest.mark.kept

KERNELS = [k01_three_kernels, k02_fused]
# The interpreter takes its time: neither all types in all widths, nor the longest. bf16 is wrong there by design.
CHECKED = [
    w
    for w in PROBLEM.check_on
    if (w.dtype, w.D) in (("float16", 64), ("float32", 128)) and w.W * (w.H + 2 * w.KV) * w.D < 200_000
]


def workload(dtype="float16", B=3, H=2, KV=1, D=64, W=140, P=20):
    return Workload.of(dtype, B=B, H=H, KV=KV, D=D, W=W, P=P)


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator().manual_seed(seed), "cpu")


def caches_of(w, N=30):
    """Keys and values that nobody wrote."""
    return tuple(torch.full((w.B, w.KV, N, w.D), torch.nan, dtype=w.torch_dtype) for _ in range(2))


# --- the answer -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("w", CHECKED, ids=lambda w: w.label)
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_size_is_right(kernel, w):
    inputs = inputs_of(w)
    out = kernel.qkv_rope(*inputs, kv_heads=w.KV)

    assert [o.dtype for o in out] == [w.torch_dtype] * 3
    assert worst_error(out, PROBLEM.reference(*inputs, kv_heads=w.KV)) <= PROBLEM.max_error(w) / 1.5


@pytest.mark.parametrize(
    ("D", "pairs", "splits"), [(64, 16, 1), (64, 32, 2), (128, 64, 3), (128, 32, 4), (64, 16, 5)]
)
def test_any_number_of_parts_and_pairs_is_right(D, pairs, splits):
    w = workload(B=2, H=2, KV=1, D=D, W=700)  # three steps: one of five parts has nothing to do
    inputs = inputs_of(w)
    out = k02_fused.qkv_rope(*inputs, kv_heads=1, pairs=pairs, splits=splits, turned=splits % 2 == 0)

    assert worst_error(out, PROBLEM.reference(*inputs, kv_heads=1)) <= PROBLEM.max_error(w) / 1.5


def test_it_is_what_the_model_computes():
    """RMSNorm, three projections and RoPE of `course_models`, in float64, with the tables of the 8B model."""
    w = workload("float32", B=2, D=128, W=90, P=50)
    x, g, weights, positions, *_ = inputs_of(w)
    cos, sin = (table[: w.P].contiguous() for table in rope_tables(LLAMA_8B, torch.float32, "cpu"))
    assert (LLAMA_8B.head_dim, LLAMA_8B.norm_eps, LLAMA_8B.rope_theta) == (w.D, EPSILON, THETA)
    h = operators.rms_norm(x.double(), g.double(), EPSILON)
    parts = weights.double().split((w.H * w.D, w.KV * w.D, w.KV * w.D))
    q, k, v = ((h @ part.T).view(w.B, -1, 1, w.D) for part in parts)
    c, s = (table.double()[positions.long()][:, None, None] for table in (cos, sin))
    expected = tuple(t[:, :, 0] for t in (operators.rope(q, c, s), operators.rope(k, c, s), v))

    torch.testing.assert_close(PROBLEM.reference(x, g, weights, positions, cos, sin, kv_heads=w.KV), expected)
    for kernel in KERNELS:
        out = kernel.qkv_rope(x, g, weights, positions, cos, sin, kv_heads=w.KV)
        assert worst_error(out, expected) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("kernel", KERNELS)
class TestProperties:
    """What holds whoever computes it."""

    def test_position_0_turns_nothing_and_values_are_never_turned(self, kernel):
        w = workload()
        x, g, weights, positions, cos, sin = inputs_of(w)
        still = kernel.qkv_rope(x, g, weights, torch.zeros_like(positions), cos, sin, kv_heads=w.KV)
        turned = kernel.qkv_rope(x, g, weights, positions, cos, sin, kv_heads=w.KV)
        h = operators.rms_norm(x.double(), g.double(), EPSILON)
        p = (h @ weights.double().T).view(w.B, -1, w.D)

        assert worst_error(torch.cat(still, dim=1), p) <= PROBLEM.max_error(w)
        assert torch.equal(still[2], turned[2])

    def test_a_row_that_is_ten_times_as_large_gives_the_same(self, kernel):
        w = workload("float32")
        x, *rest = inputs_of(w)
        for a, b in zip(
            kernel.qkv_rope(x, *rest, kv_heads=w.KV, eps=0.0),
            kernel.qkv_rope(8 * x, *rest, kv_heads=w.KV, eps=0.0),
            strict=True,
        ):
            torch.testing.assert_close(a, b)

    def test_sequences_do_not_mix(self, kernel):
        w = workload(B=4)
        x, g, weights, positions, cos, sin = inputs_of(w)
        all_of_them = kernel.qkv_rope(x, g, weights, positions, cos, sin, kv_heads=w.KV)
        alone = kernel.qkv_rope(x[2:3].clone(), g, weights, positions[2:3].clone(), cos, sin, kv_heads=w.KV)

        for one, many in zip(alone, all_of_them, strict=True):
            torch.testing.assert_close(one[0], many[2])

    def test_nothing_past_an_end_is_touched(self, kernel):
        w = workload()
        inputs = inputs_of(w)
        expected = kernel.qkv_rope(*inputs, kv_heads=w.KV)
        with watched_memory(shuffle=3) as memory:
            out = kernel.qkv_rope(*inputs, kv_heads=w.KV)

        assert memory.findings == []
        assert all(torch.equal(a, b) for a, b in zip(out, expected, strict=True))

    def test_the_cache_gets_its_row_and_nothing_else_is_touched(self, kernel):
        w = workload()
        inputs = inputs_of(w)
        q, k, v = kernel.qkv_rope(*inputs, kv_heads=w.KV)
        k_cache, v_cache = caches_of(w)
        found = kernel.qkv_rope_into_cache(*inputs, k_cache, v_cache)

        assert torch.equal(found, q)
        for cache, row in ((k_cache, k), (v_cache, v)):
            expected = torch.full_like(cache, torch.nan)
            expected[torch.arange(w.B), :, inputs[3].long()] = row
            assert torch.equal(cache.nan_to_num(-7.0), expected.nan_to_num(-7.0))

    def test_a_position_of_no_room_writes_nothing(self, kernel):
        w = workload()
        x, g, weights, _, cos, sin = inputs_of(w)
        caches = dict(zip(("k", "v"), caches_of(w, N=10), strict=True))
        positions = torch.tensor([-1, 10, w.P], dtype=torch.int32)  # of no table, of no room, of neither
        with watched_memory({**caches, "cos": cos, "sin": sin}) as memory:
            q = kernel.qkv_rope_into_cache(x, g, weights, positions, cos, sin, *caches.values())

        assert memory.findings == []
        assert all(cache.isnan().all() for cache in caches.values())
        assert q[[0, 2]].isnan().all()
        assert q[1].isfinite().all()

    def test_a_launch_is_the_same_whatever_the_positions(self, kernel, monkeypatch):
        names = ("fused_kernel",) if kernel is k02_fused else ("norm_kernel", "product_kernel", "rope_kernel")
        recorder = Recorder()
        for name in names:
            monkeypatch.setattr(kernel, name, recorder)
        w = workload()
        x, g, weights, _, cos, sin = inputs_of(w)
        for reads in ("item", "tolist", "__int__", "__bool__", "cpu", "numpy"):
            monkeypatch.setattr(torch.Tensor, reads, lambda *how: pytest.fail("looked at the device"))
        for positions in ([0, 0, 0], [19, 3, 7]):
            kernel.qkv_rope_into_cache(
                x, g, weights, torch.tensor(positions, dtype=torch.int32), cos, sin, *caches_of(w)
            )

        assert len(recorder.calls) == 2 * len(names)
        assert recorder.calls[: len(names)] == recorder.calls[len(names) :]


class Recorder:
    """Takes the place of a kernel, and keeps what it was started with."""

    def __init__(self):
        self.calls = []

    def __getitem__(self, grid):
        return lambda *args, **constants: self.calls.append((grid, len(args), constants))


# --- parts and tickets ------------------------------------------------------------------------------------


def test_the_order_of_programs_changes_no_bit():
    w = workload(B=2, H=1, W=600)
    inputs = inputs_of(w)
    expected = k02_fused.qkv_rope(*inputs, kv_heads=1, splits=3)
    for seed in range(2):
        with watched_memory(shuffle=seed) as memory:
            out = k02_fused.qkv_rope(*inputs, kv_heads=1, splits=3)

        assert memory.findings == []
        assert all(torch.equal(a, b) for a, b in zip(out, expected, strict=True))


def test_tickets_serve_one_call_after_the_other():
    tickets = torch.zeros(k02_fused.tickets_for(3, 64), dtype=torch.int32)
    for seed, (B, splits) in enumerate(((2, 2), (17, 3), (1, 1))):
        w = workload(B=B, H=1, KV=1, W=600)
        inputs = inputs_of(w, seed)
        out = k02_fused.qkv_rope(*inputs, kv_heads=1, splits=splits, tickets=tickets)

        assert worst_error(out, PROBLEM.reference(*inputs, kv_heads=1)) <= PROBLEM.max_error(w)
        assert not tickets.any()


@pytest.mark.parametrize(
    ("tiles", "steps", "splits"),
    [
        (192, 16, 1),  # up to 16 sequences of an 8B model: each multiprocessor has a program
        (96, 16, 2),  # 17 to 32
        (131, 16, 2),
        (12, 16, 11),
        (12, 8, 8),
        (10_000, 16, 1),
    ],
)
def test_how_many_parts_an_h200_gets(tiles, steps, splits, monkeypatch):
    k02_fused.splits_for.cache_clear()
    h200 = SimpleNamespace(multi_processor_count=132)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: h200)

    assert k02_fused.splits_for(torch.device("cuda", 0), tiles, steps) == splits
    k02_fused.splits_for.cache_clear()


def test_a_call_is_one_kernel_that_may_begin_early(monkeypatch):
    monkeypatch.setattr(k02_fused, "fused_kernel", recorder := Recorder())
    monkeypatch.setattr(k02_fused, "check_early", lambda pdl, device: None)
    w = workload()
    inputs = inputs_of(w)
    k02_fused.qkv_rope(*inputs, kv_heads=w.KV)
    k02_fused.qkv_rope(*inputs, kv_heads=w.KV, pdl=True)

    (_, _, first), (_, _, second) = recorder.calls
    assert second == {**first, "PDL": True, "launch_pdl": True}
    assert not first["PDL"]


# --- faults -----------------------------------------------------------------------------------------------

FEW = workload("float32", B=2, H=2, KV=1, W=70)
CUT = workload("float32", B=2, H=1, KV=1, W=200)  # four steps: of three parts one has nothing to do
FAULTS = {
    "k01: epsilon is forgotten": (k01_three_kernels, "/ W + epsilon", "/ W", FEW),
    "k01: turned the other way": (k01_three_kernels, "a * c - b * s", "a * c + b * s", FEW),
    "k01: neighbours are pairs": (
        k01_three_kernels, "b = tl.load(products + at + D // 2,", "b = tl.load(products + at + 1,", FEW,
    ),
    "k01: values are turned, too": (k01_three_kernels, "is_value = head >= H + KV", "is_value = head > H + KV", FEW),
    "k01: keys are not turned": (k01_three_kernels, "is_value = head >= H + KV", "is_value = head >= H", FEW),
    "k01: every sequence is at the first one's position": (
        k01_three_kernels, "tl.load(positions_ptr + row,", "tl.load(positions_ptr + row * 0,", FEW,
    ),
    "k01: the next position": (
        k01_three_kernels, "angle = position[:, None] * (D // 2)",
        "angle = (position[:, None] + 1) % P * (D // 2)", FEW,
    ),
    "k01: the last columns are left": (
        k01_three_kernels, "w = tl.load(weights + column[:, None].to(tl.int64) * W + n, mask=columns & (n < W)",
        "w = tl.load(weights + column[:, None].to(tl.int64) * W + n, mask=columns & (n < W - 1)", FEW,
    ),
    "k02: epsilon is forgotten": (k02_fused, "/ W + epsilon", "/ W", FEW),
    "k02: the scale is left out": (k02_fused, "acc *= tl.rsqrt(squares / W + epsilon)[:, None]", "acc *= 1.0", FEW),
    "k02: the scale of the sum, not the mean": (k02_fused, "squares / W", "squares", FEW),
    "k02: squares of what was weighed": (k02_fused, "squares += x * x", "squares += x * x * g * g", FEW),
    "k02: x is not weighed": (k02_fused, "(x * g).to(w.dtype)", "x.to(w.dtype)", FEW),
    "k02: half of a pair is another's": (k02_fused, "column // PAIRS * (D // 2)", "column // PAIRS * PAIRS", FEW),
    "k02: only the last part's squares": (
        k02_fused, "of_rows += tl.load(", "of_rows = tl.load(", CUT,
    ),
    "k02: the first part is left out": (
        k02_fused, "that = begin + number * ROWS", "that = begin + tl.maximum(number, 1) * ROWS", CUT,
    ),
    "k02: a part goes on into the next": (k02_fused, "last = tl.minimum(first + each, W)", "last = W", CUT),
    "k02: the last but one to end answers": (k02_fused, "if ticket == SPLITS - 1:", "if ticket == SPLITS - 2:", CUT),
}  # fmt: skip


@pytest.mark.parametrize(("module", "right", "wrong", "w"), FAULTS.values(), ids=FAULTS)
def test_a_planted_fault_is_seen(tmp_path, module, right, wrong, w):
    faulty = planted(tmp_path, module, right, wrong)
    options = {"splits": 3} if w is CUT else {}

    assert seen(PROBLEM, lambda *inputs, **more: faulty.qkv_rope(*inputs, **more, **options), w)


def test_tickets_that_do_not_come_back_to_zero_are_seen(tmp_path):
    faulty = planted(tmp_path, k02_fused, "tl.store(tickets + tile, 0)", "tl.store(tickets + tile, 1)")
    tickets = torch.zeros(k02_fused.tickets_for(3, 64), dtype=torch.int32)
    inputs = inputs_of(CUT)
    faulty.qkv_rope(*inputs, kv_heads=1, splits=2, tickets=tickets)

    assert tickets.any()


def test_a_row_that_goes_to_another_place_of_the_cache_is_seen(tmp_path):
    for right, wrong in (
        ("place += position", "place += position + 1"),
        ("place += position", "place += row"),
    ):
        faulty = planted(tmp_path, k01_three_kernels, right, wrong)
        inputs, (k_cache, v_cache) = inputs_of(FEW), caches_of(FEW)
        faulty.qkv_rope_into_cache(*inputs, k_cache, v_cache)

        assert k_cache[torch.arange(2), :, inputs[3].long()].isnan().any()


def test_the_copy_without_a_fault_passes(tmp_path):
    for module in KERNELS:
        copy = planted(tmp_path, module, "# --- on the host", "# --- on the host")
        checked_error(Competitor("no fault", PROBLEM, copy.qkv_rope), FEW, device="cpu")


# --- what half precision would have done, and tolerances that mean something ------------------------------


def rounded_to_tf32(x):
    """Round to 10 bits after the point, as the tensor cores do with an fp32 input."""
    bits = x.contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


def test_in_fp32_plain_tf32_is_refused():
    def rough(x, g, weights, *rest, kv_heads):
        found = PROBLEM.reference(rounded_to_tf32(x), g, rounded_to_tf32(weights), *rest, kv_heads=kv_heads)
        return tuple(t.float() for t in found)

    with pytest.raises(WrongResult):
        checked_error(Competitor("tf32", PROBLEM, rough), workload("float32", W=500), device="cpu")


def test_squares_in_float16_overflow_and_nothing_is_left():
    w = workload(B=1, W=64)
    x, *rest = inputs_of(w)
    x = (300 * torch.sign(x)).half()
    half = torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON)

    assert half.item() == 0.0
    for kernel in KERNELS:
        out = kernel.qkv_rope(x, *rest, kv_heads=w.KV)
        assert worst_error(out, PROBLEM.reference(x, *rest, kv_heads=w.KV)) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_angles_in_half_precision_are_refused(dtype):
    """At position 3000 a cosine to 8 or 11 bits of its angle is anybody's: the tables are float32."""
    w = workload(dtype, B=4, W=64, P=3000)

    def half(x, g, weights, positions, cos, sin, *, kv_heads):
        pairs = torch.arange(0, w.D, 2) / w.D
        angles = (torch.arange(w.P)[:, None] * THETA**-pairs).to(x.dtype)
        found = PROBLEM.reference(x, g, weights, positions, angles.cos(), angles.sin(), kv_heads=kv_heads)
        return tuple(t.to(x.dtype) for t in found)

    with pytest.raises(WrongResult):
        checked_error(Competitor("half", PROBLEM, half), w, device="cpu")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_library_is_right(dtype):
    w = workload(dtype, B=5, H=4, KV=2, D=128, W=512)
    competitor = Competitor("eager", PROBLEM, library.eager)

    assert checked_error(competitor, w, device="cpu") <= PROBLEM.max_error(w) / 1.1


# --- what a launcher refuses ------------------------------------------------------------------------------


def zeros(*shape, dtype=torch.float32):
    return torch.zeros(shape, dtype=dtype)


GIVEN = {
    "x": zeros(2, 8),
    "g": zeros(8),
    "w_qkv": zeros(4 * 64, 8),
    "positions": torch.zeros(2, dtype=torch.int32),
    "cos": zeros(5, 32),
    "sin": zeros(5, 32),
}
CACHE = {"k_cache": zeros(2, 1, 9, 64), "v_cache": zeros(2, 1, 9, 64)}
REFUSED = {
    "x: expected bfloat16 or float16 or float32, got float64": (TypeError, {"x": zeros(2, 8).double()}),
    "g: expected float32, got float16": (TypeError, {"g": zeros(8).half()}),
    "positions: expected int32, got int64": (TypeError, {"positions": zeros(2).long()}),
    "cos: expected float32, got bfloat16": (TypeError, {"cos": zeros(5, 32).bfloat16()}),
    "k_cache: expected float32, got float16": (TypeError, {"k_cache": zeros(2, 1, 9, 64).half()}),
    "w_qkv: expected (O, W) with W=8, got (256, 9)": (ValueError, {"w_qkv": zeros(256, 9)}),
    "positions: expected (B,) with B=2, got (3,)": (ValueError, {"positions": zeros(3).int()}),
    "sin: expected (P, D/2) with P=5, got (6, 32)": (ValueError, {"sin": zeros(6, 32)}),
    "cos: expected D/2 = 32 or 64, got D/2=16": (ValueError, {"cos": zeros(5, 16), "sin": zeros(5, 16)}),
    "w_qkv: expected ((H + 2 KV) * D, W) with D=64, KV=1 and H a multiple of KV, got (128, 8)": (
        ValueError, {"w_qkv": zeros(128, 8)},
    ),
    "w_qkv: expected ((H + 2 KV) * D, W) with D=64, KV=1 and H a multiple of KV, got (200, 8)": (
        ValueError, {"w_qkv": zeros(200, 8)},
    ),
    "w_qkv: expected contiguous (O, W), got strides (1, 256)": (ValueError, {"w_qkv": zeros(8, 256).T}),
    "x: expected B <= 32, got B=33": (
        ValueError, {"x": zeros(33, 8), "positions": zeros(33).int()},
    ),
    "v_cache: expected (B, KV, N, D) with N=9, got (2, 1, 8, 64)": (ValueError, {"v_cache": zeros(2, 1, 8, 64)}),
    "k_cache: expected (B, KV, N, D) with B=2, got (3, 1, 9, 64)": (ValueError, {"k_cache": zeros(3, 1, 9, 64)}),
    "k_cache: expected (B, KV, N, D) with D=64, got (2, 1, 9, 128)": (ValueError, {"k_cache": zeros(2, 1, 9, 128)}),
    "v_cache: expected another tensor than k_cache, got the same memory": (
        ValueError, {"v_cache": CACHE["k_cache"]},
    ),
    "v_cache: expected a tensor on cpu, got meta": (ValueError, {"v_cache": zeros(2, 1, 9, 64).to("meta")}),
}  # fmt: skip


@pytest.mark.parametrize("says", REFUSED)
@pytest.mark.parametrize("kernel", KERNELS)
def test_what_a_launcher_refuses(kernel, says):
    refusal, other = REFUSED[says]

    with pytest.raises(refusal, match=f"^{re.escape(says)}$"):
        kernel.qkv_rope_into_cache(**GIVEN | CACHE | other)
    if not set(other) & set(CACHE):
        with pytest.raises(refusal, match=f"^{re.escape(says)}$"):
            kernel.qkv_rope(**GIVEN | other, kv_heads=1)


OPTIONS = {
    "pdl: expected a GPU of compute capability 9.0 or later, got cpu": (ValueError, {"pdl": True}),
    "tickets: expected int32, got float32": (TypeError, {"tickets": zeros(8)}),
    "tickets: expected (T,) with T >= 8, got (7,)": (ValueError, {"tickets": zeros(7).int()}),
    "pairs: expected 16, 32 or 64, at most D/2=32, got 64": (ValueError, {"pairs": 64}),
    "pairs: expected 16, 32 or 64, at most D/2=32, got 8": (ValueError, {"pairs": 8}),
}


@pytest.mark.parametrize("says", OPTIONS)
def test_what_the_fused_launcher_refuses(says):
    refusal, other = OPTIONS[says]

    with pytest.raises(refusal, match=f"^{re.escape(says)}$"):
        k02_fused.qkv_rope(**GIVEN, kv_heads=1, **other)


def test_what_32_bits_do_not_hold():
    """No memory behind these: a tensor on the device `meta` has a shape only."""

    def on_meta(*shape, dtype=torch.float32):
        return torch.empty(shape, dtype=dtype, device="meta")

    positions, table = on_meta(1, dtype=torch.int32), on_meta(9, 32)
    for given, says in (
        ((on_meta(1, 2**24 + 1), on_meta(2**24 + 1), on_meta(192, 2**24 + 1)), "x: expected W <= 16777216"),
        (
            (on_meta(1, 1), on_meta(1), on_meta(2**20 + 64, 1)),
            r"w_qkv: expected \(H \+ 2 KV\) \* D <= 1048576",
        ),
    ):
        with pytest.raises(ValueError, match=f"^{says}, got "):
            arguments.sizes_of(*given, positions, table, table, 1)


def test_supports():
    yes, no = (
        [workload(), workload(B=32)],
        [workload("float8_e4m3fn"), workload(D=96), workload(B=33), workload(H=5, KV=2)],
    )

    assert [k02_fused.supports(w) for w in (*yes, *no)] == [True] * 2 + [False] * 4
    assert all(k01_three_kernels.supports(w) for w in (*PROBLEM.check_on, *PROBLEM.time_on))


# --- the problem ------------------------------------------------------------------------------------------


def test_positions_are_all_different_or_shared_out_evenly():
    for B, P in ((5, 100), (5, 5), (5, 2), (1, 1)):
        positions = inputs_of(workload(B=B, P=P))[3].tolist()
        assert set(positions) <= set(range(P))
        assert len(set(positions)) == min(B, P)


def test_the_weights_are_nearly_all_bytes():
    w = Workload.of("bfloat16", B=32, H=32, KV=8, D=128, W=4096, P=8192)
    weights = 2 * (32 + 2 * 8) * 128 * 4096

    assert PROBLEM.reads_bytes(w) == weights + 2 * (32 * 4096 + 4096) + 4 * 32 + 2 * 4 * 32 * 64
    assert PROBLEM.writes_bytes(w) == 2 * 32 * 48 * 128
    assert weights / (PROBLEM.reads_bytes(w) + PROBLEM.writes_bytes(w)) > 0.98
    assert PROBLEM.flops(w) == 2 * 32 * 48 * 128 * 4096
