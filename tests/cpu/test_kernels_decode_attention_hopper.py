"""Decode attention, kernel 4: right without a card in any cluster, early or not; planted faults; refusals; code."""

import re

import pytest
import torch
from hopper_on_cpu import prepare_in

from course_kernels.cuda.compile import compile_cubin
from course_kernels.cuda.disassemble import sass
from course_kernels.decode_attention import k04_cluster
from course_kernels.decode_attention.problem import PROBLEM
from course_kernels.problem import Workload, worst_error

pytestmark = pytest.mark.kept


@pytest.fixture(scope="module")
def attend(tmp_path_factory):
    """A call of the launcher, here; `text` in the place of the kernel's own."""
    made = {}

    def call(*inputs, text=None, **how):
        def prepare(path, name, **given):
            key = text, str(sorted(given.items(), key=str))
            if key not in made:
                made[key] = prepare_in(tmp_path_factory.mktemp(name))(path, name, text=text, **given)
            return made[key]

        patch = pytest.MonkeyPatch()
        patch.setattr(k04_cluster, "prepare", prepare)
        patch.setenv("TRITON_INTERPRET", "1")  # tensors on the CPU are welcome
        k04_cluster._prepared.cache_clear()
        try:
            return k04_cluster.decode_attention(*inputs, **how)
        finally:
            patch.undo()

    yield call
    k04_cluster._prepared.cache_clear()


def inputs_of(dtype, B, H, KV, N, D):
    w = Workload.of(dtype, B=B, H=H, KV=KV, N=N, D=D, full=False)
    return w, PROBLEM.make_inputs(w, torch.Generator().manual_seed(0), "cpu")


def error(out, w, inputs):
    return worst_error(out, PROBLEM.reference(*inputs), rows_apart=True) / PROBLEM.max_error(w)


@pytest.mark.parametrize(("blocks", "early"), [(1, True), (2, False), (8, True)])
@pytest.mark.parametrize(
    ("dtype", "B", "H", "KV", "N", "D"),
    [("float16", 1, 4, 1, 300, 128), ("float16", 3, 6, 2, 70, 64), ("bfloat16", 4, 16, 1, 200, 64)],
)
def test_it_is_right(attend, dtype, B, H, KV, N, D, blocks, early):
    w, inputs = inputs_of(dtype, B, H, KV, N, D)
    out = attend(*inputs, blocks=blocks, early=early)

    assert error(out, w, inputs) < 1
    assert torch.equal(attend(*inputs, blocks=blocks, early=early), out)


FAULTS = {
    "the newest token is not asked for again": (
        "      copy_row(ring + tile_of_newest",
        "      if (0) copy_row(ring + tile_of_newest",
    ),
    "and nobody waits for it": (
        "      wait_for_all_but<0>();  // the newest token came last\n",
        "      wait_for_all_but<STAGES>();\n",
    ),
    "tokens past the end": ("< length ? x * scale : NEVER", "< N ? x * scale : NEVER"),
    "sums are not repaired": (
        "o[j][2 * half] *= repair, o[j][2 * half + 1] *= repair",
        "o[j][2 * half] *= 1, o[j][2 * half + 1] *= 1",
    ),
    "one warp too few": (
        "for (int w = 0; w < WARPS; w++) {\n      const",
        "for (int w = 1; w < WARPS; w++) {\n      const",
    ),
    "one block too few": (
        "for (int b = 0; b < BLOCKS; b++) {\n        const",
        "for (int b = 0; b < BLOCKS - 1; b++) {\n        const",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen(attend, fault):
    right, wrong = FAULTS[fault]
    text = k04_cluster.SOURCE.read_text()
    assert text.count(right) == 1
    w, inputs = inputs_of("float16", 2, 4, 1, 300, 64)
    try:
        out = attend(*inputs, text=text.replace(right, wrong), blocks=2, early=True)
    except RuntimeError:
        return
    assert not error(out, w, inputs) < 1


def test_how_an_h200_shares_out_the_heads():
    assert [k04_cluster.blocks_for(8 * B, 1024, 132) for B in (1, 4, 8, 16, 32, 128)] == [8, 8, 4, 2, 1, 1]
    assert k04_cluster.blocks_for(8, 64, 132) == 2  # a short room has no work for more


@pytest.mark.parametrize("D", [64, 128])
def test_the_cache_is_asked_for_early_and_nothing_is_kept_in_memory(D):
    pytest.importorskip("cuda.core")
    text = sass(compile_cubin(k04_cluster.SOURCE, "sm_90a", k04_cluster.defines_of(False, D, 4, 8, True)))
    names = re.findall(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z]\w*)", text, re.M)

    assert names[: names.index("ACQBULK")].count("LDGSTS") == k04_cluster.STAGES * 2 * 16 * D // 8 // 32
    assert names.count("HMMA") == 4 * D // 16
    assert "STL" not in names


@pytest.mark.parametrize(
    ("make", "how", "kind", "says"),
    [
        (("float32", 1, 4, 1, 8, 64), {}, TypeError, "q: expected bfloat16 or float16, got float32"),
        (("float16", 1, 17, 1, 8, 64), {}, ValueError, "q: expected H at most 16 times KV=1, got H=17"),
        (
            ("float16", 1, 4, 1, 8, 64),
            {"blocks": 3},
            ValueError,
            "blocks: expected one of (1, 2, 4, 8), got 3",
        ),
    ],
)
def test_what_is_refused(attend, make, how, kind, says):
    _, inputs = inputs_of(*make)
    with pytest.raises(kind, match=re.escape(says)):
        attend(*inputs, **how)
