"""GPT-2 of our own: its published size, its attention, one token like many; and whose kernels a profiler saw."""

import copy
from types import SimpleNamespace

import pytest
import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from course_kernels.problem import worst_error
from course_models.gpt2 import GPT2, LINES, Shape
from course_models.kernel_times import ELSE, busy, profiled, range_of, summed

TINY = Shape(layers=3, width=48, heads=4, words=101, places=40)


def model(shape=TINY, dtype=torch.float64):
    return GPT2(shape, dtype=dtype, device="cpu")


def tokens(B, N, words=101):
    return torch.randint(words, (B, N), generator=torch.Generator().manual_seed(1))


def test_it_has_the_published_parameters():
    """124,439,808: what the library that publishes the weights counts."""
    assert Shape().parameters == 124_439_808
    assert sum(weight.numel() for weight in model().parameters()) == TINY.parameters


def test_a_step_reads_all_weights_but_the_places_it_is_not_at():
    least = Shape().decode_bytes(512, 2)
    assert least == 2 * (124_439_808 - 1023 * 768 + 2 * 12 * 768 * 513)
    assert TINY.decode_bytes(1, 4) - TINY.decode_bytes(0, 4) == 4 * 2 * 3 * 48


def test_it_is_torch_s_own_layer():
    """The same weights in `torch.nn.TransformerEncoderLayer`, norm first, tanh GELU, causal."""
    ours, shape = model(), TINY
    x = tokens(2, 17)
    found = ours.words[x] + ours.places[:17]
    for layer in ours.layers:
        theirs = torch.nn.TransformerEncoderLayer(
            shape.width, shape.heads, shape.hidden, 0.0,
            lambda h: torch.nn.functional.gelu(h, approximate="tanh"),
            norm_first=True, batch_first=True, dtype=torch.float64,
        )  # fmt: skip
        names = {
            "self_attn.in_proj_weight": "lists", "self_attn.in_proj_bias": "lists_bias",
            "self_attn.out_proj.weight": "output", "self_attn.out_proj.bias": "output_bias",
            "linear1.weight": "up", "linear1.bias": "up_bias", "linear2.weight": "down", "linear2.bias": "down_bias",
            "norm1.weight": "norm_1", "norm1.bias": "norm_1_bias",
            "norm2.weight": "norm_2", "norm2.bias": "norm_2_bias",
        }  # fmt: skip
        theirs.load_state_dict({name: getattr(layer, mine) for name, mine in names.items()})
        mask = torch.nn.Transformer.generate_square_subsequent_mask(17, dtype=torch.float64)
        with torch.no_grad():
            found = theirs(found, src_mask=mask, is_causal=True)
    found = torch.nn.functional.layer_norm(found, (48,), ours.norm, ours.norm_bias, 1e-5) @ ours.words.T
    torch.testing.assert_close(ours(x), found)


def test_one_token_after_the_other_is_all_of_them_at_once():
    ours, x = model(), tokens(2, 9)
    at_once = ours(x)
    keys, values = ours.cache(2, 9)
    for held in range(9):
        torch.testing.assert_close(ours.decode(x[:, held], keys, values, held), at_once[:, held])


def test_a_place_that_changes_changes_what_follows_and_nothing_before():
    ours, x = model(), tokens(1, 12)
    before = ours(x)
    x[0, 5] = (x[0, 5] + 1) % 101
    after = ours(x)
    assert torch.equal(before[:, :5], after[:, :5])
    assert (before[:, 5:] - after[:, 5:]).abs().amax(dim=(0, 2)).min() > 1e-3


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_in_half_precision_it_is_off_by_rounding(dtype):
    half = model(Shape(layers=12, width=96, heads=6, words=500, places=64), dtype)
    exact = copy.deepcopy(half).double()
    x = tokens(2, 64, 500)
    assert worst_error(half(x), exact(x), rows_apart=True) < (0.03 if dtype is torch.float16 else 0.25)


# --- the profiler -------------------------------------------------------------------------------------


def cpu_events(step):
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        step()
    return list(seen.events())


def test_every_operator_of_the_model_but_a_few_is_in_a_range():
    ours, x = model(), tokens(1, 8)
    assert not {event.name for event in cpu_events(lambda: ours(x))} & set(LINES)
    ours.watched, found = True, {}
    for event in cpu_events(lambda: ours(x)):
        if event.name in (
            "aten::addmm",
            "aten::bmm",
            "aten::_softmax",
            "aten::gelu",
            "aten::native_layer_norm",
        ):
            name = range_of(event, LINES)
            found[name, event.name] = found.get((name, event.name), 0) + 1
        if event.name == "aten::masked_fill_":
            assert range_of(event, LINES) == "mask and softmax"
    assert ELSE not in {name for name, _ in found}
    assert found["scores and sums of attention", "aten::bmm"] == 2 * 3
    assert found["mask and softmax", "aten::_softmax"] == found["GELU", "aten::gelu"] == 3
    assert found["norms", "aten::native_layer_norm"] == 7
    assert {name for name, _ in found} >= set(LINES) - {"sums", "logits"}


def on_card(start, end, annotation=False):
    return SimpleNamespace(
        device_type=DeviceType.CUDA,
        is_user_annotation=annotation,
        time_range=SimpleNamespace(start=start, end=end),
    )


def of_host(name, *kernels, parent=None):
    return SimpleNamespace(
        device_type=DeviceType.CPU, name=name, cpu_parent=parent,
        kernels=[SimpleNamespace(duration=us) for us in kernels],
    )  # fmt: skip


def test_kernels_are_summed_by_the_innermost_range():
    outer, inner = of_host("norms"), None
    inner = of_host("GELU", parent=outer)
    op = of_host("aten::gelu", 5.0, parent=of_host("aten::wrapped", parent=inner))
    events = [
        outer, inner, op, of_host("aten::add", 2.0, 1.0, parent=outer), of_host("aten::copy_", 4.0),
        of_host("cudaLaunchKernel", 5.0, parent=op),  # an order is no operator
        on_card(0, 5), on_card(10, 12), on_card(12, 13), on_card(11, 15), on_card(0, 20, annotation=True),
    ]  # fmt: skip
    seen = summed(events, ("norms", "GELU"))
    assert seen.us == {"norms": 3.0, "GELU": 5.0, ELSE: 4.0}
    assert (seen.kernels, seen.busy_us) == (4, 10.0)


def test_a_profile_that_lost_something_is_refused():
    with pytest.raises(RuntimeError, match="saw no kernel"):
        summed([of_host("aten::add", 1.0)], ())
    with pytest.raises(RuntimeError, match="kernels ran for 10 microseconds, and operators claim 5"):
        summed([of_host("aten::add", 5.0), on_card(0, 10)], ())
    assert busy([]) == 0


def test_a_step_is_run_twice_and_waited_for(monkeypatch):
    calls = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: calls.append("wait"))
    with pytest.raises(RuntimeError, match="saw no kernel"):
        profiled(lambda: calls.append("step"), ())
    assert calls == ["step", "wait", "step", "wait"]
