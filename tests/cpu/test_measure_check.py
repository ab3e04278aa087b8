"""Wrong kernels, planted one at a time: the check must name the fault; and right ones, which must pass."""

from __future__ import annotations

import math
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch

from course_kernels.measure.check import (
    HOLDS,
    WrongResult,
    _check_stream,
    _make_case,
    checked_error,
    poisoned_memory,
    worst_element,
)
from course_kernels.measure.competitor import Competitor, competitor_named, competitor_of
from course_kernels.problem import Problem, Workload, worst_error
from course_kernels.refusals import cheats

W = Workload.of("float32", M=48, N=48)


def row_softmax(x):
    return torch.softmax(x, dim=-1)


def make_inputs(w, generator, device):
    return (torch.randn(w.M, w.N, generator=generator, dtype=w.torch_dtype, device=device),)


SOFTMAX = Problem(
    name="fake_softmax",
    formula="y = softmax(x)",
    make_inputs=make_inputs,
    reference=lambda x: torch.softmax(x.double(), dim=-1),
    reads_bytes=lambda w: w.M * w.N * w.element_bytes,
    writes_bytes=lambda w: w.M * w.N * w.element_bytes,
    flops=lambda w: 4 * w.M * w.N,
    math=lambda w: "fp32",
    max_error=lambda w: 1e-6,
    check_on=(W,),
    time_on=(W,),
)


def check(function, workload=W, problem=SOFTMAX, **how):
    return checked_error(Competitor("fake_softmax/planted", problem, function), workload, device="cpu", **how)


def line_of(function, workload=W, problem=SOFTMAX):
    with pytest.raises(WrongResult) as refused:
        check(function, workload, problem)
    line = str(refused.value)
    assert "\n" not in line
    assert line.startswith(f"fake_softmax/planted on {workload.label}: ")
    return line.split(": ", 1)[1]


def test_a_right_kernel_passes_with_its_error():
    assert 0 < check(row_softmax) <= 1e-6


def half_written(x):
    y = torch.empty_like(x)
    y[: len(x) // 2] = row_softmax(x)[: len(x) // 2]
    return y


def hole_in_reused_buffer():
    kept = {}

    def kernel(x):
        y = kept.setdefault("y", torch.zeros_like(x))
        y[:-1] = row_softmax(x)[:-1]
        return y

    return kernel


def one_element_off(x):
    y = row_softmax(x)
    y[3, 17] += 0.01
    return y


def in_place(x):
    x.copy_(row_softmax(x))
    return x.clone()


def cached():
    kept = {}

    def kernel(x):
        return kept.setdefault("y", row_softmax(x)).clone()

    return kernel


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (half_written, "not written, or NaN: 1152 of 2304 elements, output[24, 0]: expected "),
        (hole_in_reused_buffer(), "wrong: 48 of 2304 elements"),
        (lambda x: torch.full_like(x, math.nan), "all NaN: output[0, 0]: expected "),
        (lambda x: torch.softmax(x, dim=0), "wrong: "),
        (one_element_off, "wrong: 1 of 2304 elements"),
        (in_place, "input modified: x[0, 0] was "),
        (cached(), "cached result: "),
        (lambda x: x.mul_(1), "output shares memory with input x"),
        (lambda x: x[:1].expand(48, 48), "output shares memory with input x"),
        (lambda x: row_softmax(x)[:24], "wrong shape: output: expected (48, 48), got (24, 48)"),
        (lambda x: row_softmax(x).double(), "wrong dtype: output: expected torch.float32, got torch.float64"),
        (lambda x: row_softmax(x).to("meta"), "wrong device: output: expected cpu, got meta"),
        (lambda x: None, "wrong result: expected 1 tensor(s), got (NoneType)"),
        (lambda x: (row_softmax(x), x), "wrong result: expected 1 tensor(s), got (Tensor, Tensor)"),
        (lambda x: torch.full_like(x, math.inf), "wrong: 2304 of 2304 elements, the worst is off by inf"),
    ],
)
def test_a_planted_fault_is_refused(function, words):
    assert line_of(function).startswith(words)


def test_one_element_off_is_found_where_it_is():
    assert "output[3, 17]: expected " in line_of(one_element_off)


def test_one_element_off_hides_from_a_norm():
    w = Workload.of("float32", M=1024, N=1024)
    (x,) = make_inputs(w, torch.Generator().manual_seed(0), "cpu")
    truth, out = SOFTMAX.reference(x), one_element_off(x).double()

    norm_error = float((out - truth).norm() / truth.norm())

    assert norm_error < 1 / 64 < worst_element(out, truth)[0]


def test_both_runs_count_for_the_error():
    calls = []

    def worse_the_second_time(x):
        calls.append(x)
        return row_softmax(x) * (1 + (2e-7 if len(calls) % 2 == 0 else 0))

    assert check(worse_the_second_time) > check(row_softmax)


def test_a_fault_of_the_second_output_is_found():
    problem = Problem(
        **{
            **vars(SOFTMAX),
            "reference": lambda x: (torch.softmax(x.double(), -1), torch.logsumexp(x.double(), -1)),
        }
    )

    def right(x):
        return row_softmax(x), torch.logsumexp(x, -1)

    def wrong(x):
        return row_softmax(x), torch.logsumexp(x, -1) + 1

    assert check(right, problem=problem) <= 1e-6
    assert "output 1[" in line_of(wrong, problem=problem)


def test_options_reach_kernel_and_reference():
    problem = Problem(
        **{
            **vars(SOFTMAX),
            "options": lambda w: {"scale": w.S},
            "reference": lambda x, *, scale: torch.softmax(x.double() * scale, -1),
        }
    )
    w = Workload.of("float32", M=8, N=8, S=3)

    assert check(lambda x, *, scale: row_softmax(x * scale), w, problem) <= 1e-6
    assert line_of(lambda x, *, scale: row_softmax(x), w, problem).startswith("wrong: ")


def test_a_reference_that_is_not_finite_is_the_problems_fault():
    problem = Problem(**{**vars(SOFTMAX), "reference": lambda x: x.double() / 0})

    with pytest.raises(ValueError, match="the reference is not finite; mend the problem"):
        check(row_softmax, problem=problem)


def test_inputs_are_drawn_from_the_generator():
    seen = []

    def look(x):
        seen.append(x.clone())
        return row_softmax(x)

    check(look, generator=1)
    check(look, generator=torch.Generator().manual_seed(1))
    check(look, generator=2)

    same = [torch.equal(seen[0], other) for other in seen]
    assert same == [True, False, True, False, False, False]


def test_poison_works_where_filling_was_switched_off(monkeypatch):
    monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", False)

    with poisoned_memory():
        assert torch.empty(8).isnan().all()

    assert torch.utils.deterministic.fill_uninitialized_memory is False


def test_poison_is_undone():
    before = torch.are_deterministic_algorithms_enabled()

    with poisoned_memory():
        assert torch.empty(8).isnan().all()
    with pytest.raises(RuntimeError, match="boom"), poisoned_memory():
        raise RuntimeError("boom")

    assert torch.are_deterministic_algorithms_enabled() is before


@pytest.mark.parametrize("shape", [(), (1,), (7, 5), (3, 1, 2)])
def test_worst_element_agrees_with_the_problems_definition(shape):
    generator = torch.Generator().manual_seed(3)
    truth = torch.randn(shape, generator=generator, dtype=torch.float64)
    out = (truth + 1e-3 * torch.randn(shape, generator=generator)).float()

    assert worst_element(out, truth)[0] == pytest.approx(worst_error(out, truth), rel=1e-12)


@pytest.mark.parametrize("shape", [(1,), (7, 5), (3, 4, 2)])
def test_worst_element_with_rows_apart(shape, monkeypatch):
    monkeypatch.setattr("course_kernels.measure.check.SLICE", 12)  # two rows of five, then more
    generator = torch.Generator().manual_seed(3)
    truth = torch.randn(shape, generator=generator, dtype=torch.float64)
    out = (truth + 1e-3 * torch.randn(shape, generator=generator)).float()

    apart = worst_element(out, truth, rows_apart=True)[0]

    assert apart == pytest.approx(worst_error(out, truth, rows_apart=True), rel=1e-12)


def test_a_small_row_beside_a_large_one_is_judged_by_its_own_size():
    truth = torch.tensor([[100.0, -100.0], [0.01, -0.01]], dtype=torch.float64)
    out = truth + torch.tensor([[0.0, 0.0], [0.005, 0.0]])

    assert worst_element(out, truth)[0] < 1e-4
    assert worst_element(out, truth, rows_apart=True) == (pytest.approx(0.25), 2)


def test_worst_element_in_slices(monkeypatch):
    truth = torch.arange(100.0, dtype=torch.float64)
    out = truth.clone()
    out[61] += 5
    whole = worst_element(out, truth)

    monkeypatch.setattr("course_kernels.measure.check.SLICE", 7)

    assert worst_element(out, truth) == (pytest.approx(whole[0]), 61)


def test_all_zero_truth():
    zeros = torch.zeros(4, dtype=torch.float64)

    assert worst_element(zeros, zeros) == (0.0, 0)
    assert worst_element(zeros + 1e-9, zeros)[0] == math.inf


# --- work on another stream, on a made-up one (tests/gpu has the real one) -----------------------


@pytest.fixture
def made_up_stream(monkeypatch):
    """torch.cuda on the CPU: a stream is a flag, and `held` says how often the host is faster than the hold."""
    state = SimpleNamespace(inside=False, held=[True], fills=0)

    class Event:
        def record(self):
            state.fills += 1

        def query(self):
            return not (state.held.pop(0) if state.held else False)

    @contextmanager
    def stream(_):
        state.inside = True
        yield
        state.inside = False

    monkeypatch.setattr(torch.cuda, "Stream", lambda device, priority: "side")
    monkeypatch.setattr(torch.cuda, "stream", stream)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(L2_cache_size=8))
    return state


def stream_check(function):
    case = _make_case(SOFTMAX, W, torch.Generator().manual_seed(0), "cpu")
    _check_stream(Competitor("fake_softmax/planted", SOFTMAX, function), case)


def test_work_in_order_passes(made_up_stream):
    stream_check(row_softmax)

    assert made_up_stream.fills == 1


def test_the_hold_grows_until_the_host_is_faster(made_up_stream):
    made_up_stream.held = [False, True]

    stream_check(row_softmax)

    assert made_up_stream.fills == 2


def test_a_function_that_is_never_held_is_judged_by_its_answer(made_up_stream):
    made_up_stream.held = []

    stream_check(row_softmax)

    assert made_up_stream.fills == len(HOLDS)


def test_work_that_starts_too_early_is_refused(made_up_stream):
    seen = []

    def kernel(x):
        # On a stream of its own it would still see what x held before.
        seen.append(row_softmax(x))
        return seen[-2] if made_up_stream.inside and len(seen) > 1 else seen[-1]

    with pytest.raises(
        WrongResult, match="work on another stream: right when the host waits for the whole GPU"
    ):
        stream_check(kernel)


def test_work_that_is_wrong_either_way_is_just_wrong(made_up_stream):
    with pytest.raises(WrongResult, match=r"float32: wrong: 1 of 2304 elements"):
        stream_check(one_element_off)


# --- the cheats of the page --------------------------------------------------------------------

SQUARE = Workload.of("float32", M=64, N=64)


def test_the_honest_one_passes():
    assert checked_error(cheats.honest, SQUARE, device="cpu") <= 2.0**-22


@pytest.mark.parametrize(
    ("cheat", "words"),
    [
        (cheats.half_written, "not written, or NaN: 2048 of 4096"),
        (cheats.all_nan, "all NaN"),
        (cheats.wrong_axis, "wrong: "),
        (cheats.one_element_off, "wrong: 1 of 4096 elements"),
        (cheats.input_modified, "input modified: x[0, 0]"),
        (cheats.cached_result, "cached result"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_cheat_is_refused(cheat, words):
    with pytest.raises(WrongResult) as refused:
        checked_error(cheat, SQUARE, device="cpu")

    assert str(refused.value).startswith(f"refusals/cheats.{cheat.__name__} on {SQUARE.label}: {words}")


def test_only_the_floor_stops_the_one_that_watches_versions():
    assert checked_error(cheats.faster_than_floor, SQUARE, device="cpu") <= 2.0**-22


# --- competitors ---------------------------------------------------------------------------------


def test_a_competitor_by_its_id():
    named = competitor_named("refusals/cheats.honest")

    assert named == competitor_of(cheats.honest)
    assert named.kernel == "refusals/cheats.honest"


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        ("refusals/cheats.nobody", "has no function nobody"),
        ("refusals/k99_none", "no file src/course_kernels/refusals/k99_none.py"),
        ("refusals/cheats", "has no function refusals()"),
        ("problem", "is not a module in a problem folder"),
    ],
)
def test_an_unknown_competitor_is_one_line(kernel, words):
    with pytest.raises(ValueError, match=r".") as refused:
        competitor_named(kernel)

    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_function_of_a_page_needs_a_problem():
    with pytest.raises(TypeError, match="for a function of your own take Competitor"):
        competitor_of(row_softmax)
