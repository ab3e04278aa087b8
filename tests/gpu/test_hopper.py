"""cuda/hopper/ on the card: every form that its CPU stand-in was held against, and a prepared launch."""

from pathlib import Path

import pytest
import torch

from course_kernels.cuda.prepared import prepare, tensor_map

GROUPS = ("cuda",)
pytestmark = pytest.mark.skipif(
    torch.cuda.get_device_capability() != (9, 0), reason="made for Hopper (compute capability 9.0)"
)
ON_CPU = Path(__file__).resolve().parents[1] / "cpu"
TILE, FORMS = ON_CPU / "hopper_tile.cu", ON_CPU / "hopper_forms.cu"
SHARED_BYTES = 3 * 32768 + 32768 + 64
TYPES = {"Bf16x16": torch.bfloat16, "F16x16": torch.float16, "E4m3x32": torch.float8_e4m3fn}


def numbers(*shape, seed=0, most=9):
    """Small whole numbers, so that sums are exact."""
    draw = torch.Generator("cuda").manual_seed(seed)
    return torch.randint(1 - most, most, shape, generator=draw, device="cuda")


@pytest.mark.parametrize(("M", "N", "K"), [(128, 128, 64), (8, 16, 200), (130, 264, 456), (4096, 4096, 4096)])
@pytest.mark.parametrize("cluster", [1, 2])
def test_tiles_through_a_ring(cluster, M, N, K):
    kernel = prepare(
        TILE,
        "hopper_tile",
        block=384,
        shared_bytes=SHARED_BYTES,
        cluster=cluster,
        defines={"CLUSTER": cluster},
    )
    draw = torch.Generator("cuda").manual_seed(0)
    a, b = (torch.randn(s, generator=draw, device="cuda").bfloat16() for s in ((M, K), (K, N)))
    c = torch.full((M, N), float("nan"), device="cuda").bfloat16()
    kernel(132, tensor_map(a, (128, 64)), tensor_map(b, (64, 64)), tensor_map(c, (64, 64)), M, N, K)
    truth = a.double() @ b.double()

    assert ((c.double() - truth).abs().max() / truth.abs().max()).item() <= 2.0**-8


@pytest.mark.parametrize(
    ("kind", "a_mn", "b_mn", "row_bytes", "N", "K"),
    [
        ("Bf16x16", 0, 0, 128, 80, 128),
        ("Bf16x16", 1, 1, 128, 192, 32),
        ("F16x16", 0, 1, 64, 96, 64),
        ("F16x16", 1, 0, 32, 16, 32),
        ("E4m3x32", 0, 0, 128, 176, 256),
        ("E4m3x32", 0, 0, 64, 256, 64),
    ],
)
def test_one_product_of_each_form(kind, a_mn, b_mn, row_bytes, N, K):
    size = TYPES[kind].itemsize
    exact = [numbers(rows, K, seed=rows) / 4 for rows in (64, N)]
    held, maps = [], []
    for x, rows, mn in zip(exact, (64, N), (a_mn, b_mn), strict=True):
        held.append((x.t().contiguous() if mn else x).to(TYPES[kind]))
        maps.append(tensor_map(held[-1], (K if mn else rows, row_bytes // size), row_bytes))
    c = torch.full((64, N), float("nan"), device="cuda")
    defines = {
        "TYPE": kind,
        "BYTES": size,
        "A_MN": a_mn,
        "B_MN": b_mn,
        "PANEL_ROW": row_bytes,
        "WIDE": N,
        "DEEP": K,
    }
    shared_bytes = (64 + N) * K * size + 64
    prepare(FORMS, "one_product", block=128, shared_bytes=shared_bytes, defines=defines)(1, *maps, c)

    assert torch.equal(c.double(), exact[0].double() @ exact[1].double().T)


def test_sums_are_the_next_products_operand():
    draw = torch.Generator("cuda").manual_seed(0)
    q, k, v = (torch.randn(64, 64, generator=draw, device="cuda").bfloat16() for _ in range(3))
    q, o = q * 0.25, torch.full((64, 64), float("nan"), device="cuda")
    maps = [tensor_map(x, (64, 64)) for x in (q, k, v)]
    prepare(FORMS, "chained", block=128, shared_bytes=3 * 8192 + 64)(1, *maps, o)
    truth = torch.exp2(q.double() @ k.double().T) @ v.double()

    assert ((o.double() - truth).abs().max() / truth.abs().max()).item() <= 2.0**-7


def test_the_copy_engine_cuts_adds_and_stores():
    x, z = numbers(3, 6, 12).float(), numbers(2, 3, 2, 5, 8, seed=1).float()
    y, t = torch.ones(2, 4, 8, device="cuda"), torch.full((16, 16), float("nan"), device="cuda").half()
    source, target = torch.arange(64.0, device="cuda"), torch.full((64,), 0.5, device="cuda")
    maps = (
        tensor_map(x, (2, 4, 8), 0),
        tensor_map(y, (2, 4, 8), 0),
        tensor_map(z, (1, 2, 1, 4, 8), 0),
        tensor_map(t, (16, 16), 0),
    )
    prepare(FORMS, "moves", block=128, shared_bytes=4096 + 64)(1, *maps, source, target)
    of_x, of_z = torch.zeros(2, 4, 8, device="cuda"), torch.zeros(1, 2, 1, 4, 8, device="cuda")
    of_x[:, 1:] = x[1:3, 0:3, 4:12]
    of_z[0, :, 0, :2] = z[1, 0:2, 1, 3:5]
    n = torch.arange(16, device="cuda")

    assert torch.equal(y, 1 + of_x + of_z.reshape(2, 4, 8))
    assert torch.equal(target, source + 0.5 * (torch.arange(64, device="cuda") >= 32))
    assert torch.equal(t.float(), (100 * n + n[:, None]).float())


def test_a_prepared_launch_goes_to_the_current_stream(tmp_path):
    file = tmp_path / "add.cu"
    file.write_text(
        'extern "C" __global__ void add(float *y, double x, int N, const float *none) '
        "{ int i = blockIdx.x * 32 + threadIdx.x; if (i < N && !none) y[i] += x; }"
    )
    add = prepare(file, "add", block=32)
    y, stream = torch.zeros(70, device="cuda"), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        add(3, y, 0.25, 67, None)
        add(3, y, 0.25, 67, None)
    stream.synchronize()

    assert torch.equal(y, 0.5 * (torch.arange(70, device="cuda") < 67))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        add(3, y, 1.0, 70, None)
    graph.replay()
    torch.cuda.synchronize()
    assert y[69].item() == 1.0
