"""The grouped multiply on Hopper's own instructions, on the CPU's stand-in: right, planted faults, machine code."""

import re
from types import SimpleNamespace

import pytest
import torch
from hopper_on_cpu import prepare_in, tensor_map
from machine_code import sass

from course_kernels.cuda.compile import compile_cubin
from course_kernels.grouped_gemm import k02_promoted
from course_kernels.grouped_gemm.problem import PROBLEM
from course_kernels.problem import Workload, worst_error

pytestmark = pytest.mark.kept


def full_of_nan(*size, **how):
    return torch.full(size[0] if isinstance(size[0], tuple) else size, float("nan"), **how)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(*inputs, text=..., out=...) -> the product, its memory full of NaN before."""
    built = {}

    def run(*inputs, text=None, **options):
        def prepare(path, name, **how):
            key = text, str(how)
            if key not in built:
                built[key] = prepare_in(tmp_path_factory.mktemp(name))(path, name, text=text, **how)
            return built[key]

        k02_promoted._prepared.cache_clear()
        k02_promoted._multiprocessors.cache_clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TRITON_INTERPRET", "1")  # tensors on the CPU are welcome
            patch.setattr(k02_promoted, "prepare", prepare)
            patch.setattr(k02_promoted, "tensor_map", tensor_map)
            patch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
            patch.setattr(
                torch.cuda, "get_device_properties", lambda device: SimpleNamespace(multi_processor_count=5)
            )
            patch.setattr(torch, "empty", full_of_nan)
            return k02_promoted.grouped_gemm(*inputs, **options)

    return run


def inputs(G, M, N, K, **flags):
    w = Workload.of("bfloat16", G=G, M=M, N=N, K=K, **flags)
    return w, PROBLEM.make_inputs(w, torch.Generator().manual_seed(M + N + K), "cpu")


SIZES = [
    (1, 1, 8, 128, False),
    (3, 131, 72, 384, False),  # an empty group, one row, and a tile that has two rows
    (4, 150, 392, 256, False),  # more pairs of tiles than clusters
    (1, 4, 16, 128, True),
    (4, 150, 392, 256, True),
    (2, 193, 200, 640, True),  # tiles of one row, of 128 and of 64
]


@pytest.mark.parametrize(("G", "M", "N", "K", "masked"), SIZES)
def test_the_product_is_right(run, G, M, N, K, masked):
    w, tensors = inputs(G, M, N, K, masked=masked)

    assert k02_promoted.supports(w)
    assert worst_error(run(*tensors), PROBLEM.reference(*tensors), rows_apart=True) <= 2.0**-8


def test_rows_that_nobody_has_stay_as_they_were(run):
    _, tensors = inputs(4, 193, 72, 128, masked=True)
    out = torch.full((*tensors[0].shape[:2], 72), 3.0, dtype=torch.bfloat16)
    behind = torch.arange(out.shape[1]) >= tensors[4][:, None]
    c = run(*tensors, out=out)

    assert c is out
    assert (c[behind] == 3.0).all()
    truth = PROBLEM.reference(*tensors)
    assert worst_error(c[~behind], truth[~behind], rows_apart=True) <= 2.0**-8


def full_of_garbage(tensors):
    """Contiguous groups with NaN in their rows of padding, and in the scales of these."""
    a, b, scale_a, scale_b, groups = (x.clone() for x in tensors)
    a.view(torch.uint8)[groups < 0] = 0x7F
    scale_a[:, groups < 0] = torch.nan
    return a, b, scale_a, scale_b, groups


def test_what_lies_in_padding_goes_nowhere(run):
    _, tensors = inputs(3, 131, 72, 256)
    c = run(*full_of_garbage(tensors))

    assert (c[tensors[4] < 0] == 0).all()
    assert worst_error(c, PROBLEM.reference(*tensors), rows_apart=True) <= 2.0**-8


def test_tiles_behind_the_last_group_are_zeros(run):
    _, (a, b, scale_a, scale_b, groups) = inputs(2, 130, 72, 128)
    groups[-128:] = -1  # a buffer that is larger than its groups
    tensors = a, b, scale_a, scale_b, groups

    assert worst_error(run(*tensors), PROBLEM.reference(*tensors), rows_apart=True) <= 2.0**-8


FAULTS = {
    "the scale of the first block of columns for all": (r"\(tile.n \+ p \* 64\) / BK", "tile.n / BK", False),
    "the scale of the block of K before": (r"of_b\[p\]\[step\]", "of_b[p][step ? step - 1 : 0]", False),
    "a row has the scale of another": (r"scales\[s \* BM \+ mine \+ 8\]", "scales[s * BM + mine]", True),
    "a group begins a tile late": (
        r"max\(0, groups\[tile.m\]\)",
        "max(0, groups[max(0, tile.m - 1)])",
        False,
    ),
    "a group has one pair of tiles too many": (r"number < before", "number <= before", True),
    "the blocks before are forgotten": (r"whole\[i\] \+= ", "whole[i] = ", False),
    "sums stay in the tensor cores from block to block": (r"k > 0\)", "step + k > 0)", True),
    "both blocks make the same columns": (
        r"\* CLUSTER \+ static_cast<int>\(cluster_rank\(\)\)",
        "* CLUSTER",
        False,
    ),
    "rows behind the last are stored": (r"rows >= 64\) \{", "true) {", True),
    "padding is answered by what it holds": (r"\? whole\[i\] : 0.0f", "? whole[i] : whole[i]", False),
    "bytes that nobody sends": (r"B_BYTES \+ halves \* PANEL_BYTES", "STAGE_BYTES", True),
    "a stage given back before it was read": (
        r"(wgmma_wait<0>\(part\);)(\s+)(if \(thread < CLUSTER\)[^;]*;)",
        r"\3\2\1",
        False,
    ),
    "who reads scales gives nothing back": (r"\n +arrive\(&empty\[s\]\);  // each", "  //", False),
    "a place is not counted where threads stored": (
        r"thread == 0\) close_bulk_group",
        "thread == 0 && rows >= 64) close_bulk_group",
        True,
    ),
    "a panel written while it is stored": (r"if \(thread == 0\) wait_until_read<PANELS - 1>\(\);", "", False),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen(run, fault):
    *change, masked = FAULTS[fault]
    text, count = re.subn(*change, k02_promoted.SOURCE.read_text())
    assert count == 1
    # Masked: a block stores a whole tile, then one of a single row. Else an empty group, and more tiles than blocks.
    _, tensors = inputs(*((2, 193) if masked else (4, 150)), 200, 384, masked=masked)
    given = tensors if masked else full_of_garbage(tensors)
    try:
        wrong = not worst_error(run(*given, text=text), PROBLEM.reference(*tensors), rows_apart=True) <= 0.05
    except RuntimeError as error:
        print(fault, error)
        wrong = True

    assert wrong


def test_what_is_refused(run):
    _, (a, b, scale_a, scale_b, groups) = inputs(2, 200, 16, 256)
    with pytest.raises(ValueError, match="b: expected N a multiple of 8, for the copy engine, got N=12"):
        run(a, b[:, :12].contiguous(), scale_a, scale_b, groups)
    with pytest.raises(ValueError, match=re.escape("out: expected (M, N) with N=16, got (384, 8)")):
        run(a, b, scale_a, scale_b, groups, out=torch.zeros((len(a), 8), dtype=torch.bfloat16))
    odd = torch.zeros(len(a) * 16 + 1, dtype=torch.bfloat16)[1:].view(-1, 16)
    with pytest.raises(ValueError, match="out: expected an address"):
        run(a, b, scale_a, scale_b, groups, out=odd)


@pytest.mark.parametrize("masked", [0, 1])
def test_nothing_spills_and_the_instructions_are_hopper_s(masked):
    pytest.importorskip("cuda.core")
    text = sass(compile_cubin(k02_promoted.SOURCE, "sm_90a", {"MASKED": masked}))

    columns = k02_promoted.BN[bool(masked)]
    assert len(re.findall(rf"QGMMA\.64x{columns}x32\.F32\.E4M3\.E4M3", text)) == 4
    assert len(re.findall(r"\bFFMA\b", text)) >= columns // 2  # a sum leaves by one multiply-add
    assert "UTMALDG.3D.MULTICAST" in text
    assert "UTMASTG.3D" in text
    assert not re.search(r"\b(LDL|STL)\b", text)
