"""A step of decoding by our kernels: a layer is the plain one's without a card; who computes what; what is refused."""

from collections import defaultdict
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from hopper_on_cpu import prepare_in, tensor_map

from course_kernels.decode_attention import k03_early, k04_cluster
from course_kernels.decode_linear import by_tma, k01_stream, k02_even
from course_kernels.problem import worst_error
from course_models import bench, step_kernels
from course_models.config import Config
from course_models.model import Model, decode_layer
from course_models.operators import PLAIN
from course_models.step_kernels import (
    few_rows_linear,
    fused,
    fused_decode_layer,
    is_for,
    kernels_for,
    started_early,
)

pytestmark = pytest.mark.kept

TOY = Config(layers=1, width=128, heads=4, kv_heads=2, head_dim=64, hidden=192, vocab=80, max_tokens=64)
KERNELS = (k01_stream, k02_even, k04_cluster)
ROOM = 40  # of the cache
ALLOWED = 2.0**-8  # of the largest number: what is between two kernels is rounded to float16


@pytest.fixture
def here(monkeypatch):
    """here(prepare): launchers run here, on a card of three multiprocessors."""

    def forget():
        for kernel in KERNELS:
            for kept in vars(kernel).values():
                getattr(kept, "cache_clear", lambda: None)()

    def patch(prepare):
        forget()
        for kernel in KERNELS:
            monkeypatch.setattr(kernel, "prepare", prepare)
        monkeypatch.setattr(by_tma, "tensor_map", tensor_map)
        monkeypatch.setenv("TRITON_INTERPRET", "1")  # tensors on the CPU are welcome
        card = SimpleNamespace(multi_processor_count=3)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda d: card)

    yield patch
    forget()


@pytest.fixture
def launches(here):
    """What is launched, by name, with the macros; nothing is computed."""
    seen = []

    def prepare(path, name, *, defines, **_):
        return lambda *args: seen.append((name.removeprefix("decode_"), defines))

    here(prepare)
    return seen


def a_layer(config, batch, dtype=torch.float16):
    """A layer's weights, and what a step brings: x, angles, caches with random tokens, where the new one goes."""
    model = Model.random(config, dtype=dtype)
    layer, generator = model.layers[0], torch.Generator().manual_seed(1)
    with torch.no_grad():
        for norm in (layer.attention_norm, layer.block_norm):
            norm.normal_(1, 0.1, generator=generator)

    def drawn(*shape):
        return torch.randn(shape, generator=generator).to(dtype)

    position = torch.arange(batch) * 7 % ROOM
    cos, sin = model._turns(position[:, None])
    caches = [drawn(batch, config.kv_heads, ROOM, config.head_dim) for _ in range(2)]
    lengths = (position + 1).int()
    each = torch.arange(batch)
    return layer, (drawn(batch, 1, config.width), cos, sin, *caches, each, position, lengths)


def computed(step, layer, given, dtype=None):
    """x behind the layer and both caches."""
    x, cos, sin, keys, values, *where = given
    mine = [t.to(dtype or t.dtype, copy=True) for t in (x, keys, values)]
    with torch.no_grad():
        out = step(PLAIN, layer, mine[0], cos.to(dtype), sin.to(dtype), *mine[1:], *where)
    return out, *mine[1:]


@pytest.fixture
def full_of_nan(monkeypatch):
    """New memory, from here on."""

    def full(size, **how):
        return torch.full(size if isinstance(size, tuple) else (size,), torch.nan, **how)

    return lambda: [
        monkeypatch.setattr(torch, "empty", full),
        monkeypatch.setattr(torch, "empty_like", lambda t: torch.full_like(t, torch.nan)),
    ]


# --- right ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 2, 8, 9, 17, 32])
def test_a_layer_is_the_plain_one(here, full_of_nan, tmp_path, batch):
    layer, given = a_layer(TOY, batch)
    truth = partial(computed, decode_layer, dtype=torch.float64)
    due = truth(layer.double(), given)
    wrong = truth(layer, [given[0].roll(1, -1), *given[1:]])
    layer.half()
    here(prepare_in(tmp_path))
    full_of_nan()
    for _ in range(2):  # the second one finds the tickets as the first one left them
        assert worst_error(computed(fused_decode_layer, layer, given), due) < ALLOWED
    assert worst_error(wrong, due) > ALLOWED


@pytest.mark.parametrize("rows", [1, 17])
def test_the_heads_logits_are_the_plain_ones(here, tmp_path, rows):
    here(prepare_in(tmp_path))
    generator = torch.Generator().manual_seed(0)
    x, weight = (torch.randn(n, 128, generator=generator).half() for n in (rows, 208))
    found = few_rows_linear(x[:, None], weight)

    assert found.shape == (rows, 1, 208)
    assert worst_error(found[:, 0], x.double() @ weight.double().t()) < ALLOWED


@pytest.mark.parametrize("batch", [2, 9])
def test_steps_give_the_plain_logits(here, tmp_path, batch):
    """Two layers, one token after the other; the last norm, which begins early on a card alone, is the plain one."""
    model = bench.subject(replace(TOY, layers=2), dtype=torch.float16, device="cpu")
    cache = bench.filled_cache(model, batch, 20, 3)
    tokens = torch.randint(TOY.vocab, (batch, 3), generator=torch.Generator().manual_seed(0))
    due = bench.truth(model, tokens, cache, 20)
    here(prepare_in(tmp_path))
    ours = fused(model)
    ours.operators = replace(ours.operators, rms_norm=PLAIN.rms_norm)
    found = bench.stepping(ours.decode, cache, 20, TOY.vocab)(tokens)
    assert worst_error(found, due, rows_apart=True) < 2.0**-6


def test_any_kernel_may_take_a_place(here, full_of_nan, tmp_path):
    layer, given = a_layer(TOY, 3)
    due = computed(decode_layer, layer.double(), given, torch.float64)
    layer.half()
    here(prepare_in(tmp_path))
    full_of_nan()
    long = started_early(k02_even, stages=4)
    places = {"qkv": long, "gate_up": long, "output": long, "down": long}
    step = partial(fused_decode_layer, kernels=replace(kernels_for(3), **places))
    assert worst_error(computed(step, layer, given), due) < ALLOWED


# --- who computes what ---------------------------------------------------------------------------

STREAM, EVEN, CLUSTER = "linear_stream", "linear_even", "attention_cluster"
FEW = [STREAM, CLUSTER, STREAM, STREAM, EVEN]


@pytest.mark.parametrize(
    ("batch", "names"), [(1, FEW), (2, FEW), (8, FEW), *((n, [EVEN, CLUSTER, *[EVEN] * 3]) for n in (9, 16, 17, 32))]
)  # fmt: skip
def test_who_computes_a_layer(launches, batch, names):
    computed(fused_decode_layer, *a_layer(TOY, batch))
    few_rows_linear(torch.zeros(batch, 1, 128).half(), torch.zeros(80, 128).half())

    assert [name for name, _ in launches] == [*names, EVEN]
    assert launches[1][1]["EARLY"]
    if batch > 8:
        assert [defines["STAGES"] for name, defines in launches if name == EVEN][:2] == [
            6,
            12 if batch <= 16 else 10,
        ]


def test_what_is_given_takes_the_place_of_the_choice(launches):
    mine = replace(kernels_for(1), down=kernels_for(1).qkv)
    model = fused(Model.random(TOY, dtype=torch.float16), mine)
    layer, given = a_layer(TOY, 1)
    computed(model.decode_layer, layer, given)
    assert [name for name, _ in launches] == [*FEW[:4], STREAM]
    model.operators.linear(torch.zeros(1, 1, 128).half(), torch.zeros(80, 128).half())
    assert launches[5][0] == EVEN


@pytest.mark.parametrize(("heads", "ours"), [(4, True), (16, True), (17, False), (64, False)])
def test_attention_is_by_clusters_where_a_heads_queries_fit(launches, monkeypatch, heads, ours):
    def split(q, keys, values, lengths, *, tickets, pdl):
        assert pdl
        assert tickets.numel() == len(q)
        launches.append(("attention_early", {}))
        return q

    monkeypatch.setattr(k03_early, "decode_attention", split)
    computed(fused_decode_layer, *a_layer(replace(TOY, heads=heads, kv_heads=1), 2))
    assert launches[1][0] == (CLUSTER if ours else "attention_early")


# --- what is refused -----------------------------------------------------------------------------

TAKEN = (
    {"heads": 64, "kv_heads": 1},
    {"head_dim": 128},
    {"width": 64, "hidden": 64},
    {"vocab": 81},  # torch's work
)
NOT_TAKEN = (
    {"heads": 65, "kv_heads": 1},
    {"head_dim": 96},
    {"width": 96},
    {"hidden": 208},
    {"experts": 2, "experts_per_token": 1},
)


@pytest.mark.parametrize("change", [*TAKEN, *NOT_TAKEN], ids=str)
@pytest.mark.parametrize("batch", [1, 32, 33])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_it_is_for_what_the_kernels_take(launches, monkeypatch, change, batch, dtype):
    monkeypatch.setattr(step_kernels, "is_hopper", lambda device: True)
    monkeypatch.setattr(k03_early, "check_early", lambda pdl, device: None)
    monkeypatch.setattr(k03_early, "early_kernel", defaultdict(lambda: lambda *_, **__: None))
    config = replace(TOY, **change)
    layer, given = a_layer(config, batch, dtype)
    try:
        computed(fused_decode_layer, layer, given)
        taken = True
    except (TypeError, ValueError):
        taken = False
    assert taken is (change in TAKEN and batch <= 32 and dtype is not torch.float32)
    assert is_for(Model.random(config, dtype=dtype), batch) is taken


def test_it_is_for_hopper_and_rows_that_the_last_norm_takes(monkeypatch):
    model = Model.empty(TOY, dtype=torch.float16)
    assert not is_for(model, 1)
    monkeypatch.setattr(step_kernels, "is_hopper", lambda device: True)
    assert is_for(model, 1)
    model.config = replace(TOY, width=16384)
    assert is_for(model, 1)
    model.config = replace(TOY, width=16448)
    assert not is_for(model, 1)
