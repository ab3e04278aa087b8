"""Wrong kernels, planted one at a time: the check must name the fault; and right ones, which must pass."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from contextlib import contextmanager
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from course_kernels.attention.problem import PROBLEM as ATTENTION
from course_kernels.measure import check as check_module
from course_kernels.measure import messages
from course_kernels.measure.check import (
    HOLDS,
    Check,
    WrongResult,
    _held_by,
    checked_error,
    checked_errors,
    poisoned_memory,
    worst_element,
)
from course_kernels.measure.competitor import Competitor, competitor_named, competitor_of
from course_kernels.problem import Problem, Workload, worst_error
from course_kernels.refusals import cheats
from course_kernels.refusals.problem import PROBLEM as REFUSALS

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
    assert line == f"fake_softmax/planted on {workload.label}: {refused.value.why}; seed 0"
    return refused.value.why


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


def one_buffer():
    kept = {}

    def kernel(x):
        return torch.softmax(x, -1, out=kept.setdefault("y", torch.empty_like(x)))

    return kernel


class Promise(torch.Tensor):
    pass


def without_infinities(x):
    return row_softmax(x.clamp(-100, 100).nan_to_num(nan=math.nan))


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
        (one_buffer(), "same memory twice: the second output lies where the first one still lies"),
        (
            lambda x: torch.softmax(x.t().contiguous(), 0).t(),
            "a view: output: expected strides (48, 1), got (1, 48); store the answer in that order",
        ),
        (lambda x: row_softmax(x).as_subclass(Promise), "not a plain tensor: output is a Promise"),
        (lambda x: torch._neg_view(-row_softmax(x)), "not a plain tensor: output is worked out only when"),
        (lambda x: row_softmax(x).to_sparse(), "not a plain tensor: output is worked out only when"),
        (
            lambda x: row_softmax(x).nan_to_num(0.5),
            "NaN lost: 96 of 2304 elements should be NaN and are not, ",
        ),
        (without_infinities, "NaN lost: 48 of 2304 elements should"),
        (lambda x: torch.full_like(x, math.nan), "all NaN: output[0, 0]: expected "),
        (lambda x: torch.softmax(x, dim=0), "wrong: "),
        (one_element_off, "wrong: 1 of 2304 elements"),
        (in_place, "input modified: x[0, 0] was "),
        (cached(), "cached result: "),
        (lambda x: x.mul_(1), "output shares memory with input x"),
        (lambda x: x[:1].expand(48, 48), "output shares memory with input x"),
        (
            lambda x: row_softmax(x)[0].clone().expand(48, 48),
            "a view: output: expected strides (48, 1), got (0, 1)",
        ),
        (lambda x: row_softmax(x)[:24], "wrong shape: output: expected (48, 48), got (24, 48)"),
        (lambda x: row_softmax(x).double(), "wrong dtype: output: expected torch.float32, got torch.float64"),
        (lambda x: row_softmax(x).to("meta"), "wrong device: output: expected cpu, got meta"),
        (lambda x: None, "wrong result: expected 1 tensor(s), got (NoneType)"),
        (lambda x: (row_softmax(x), x), "wrong result: expected 1 tensor(s), got (Tensor, Tensor)"),
        (
            lambda x: torch.full_like(x, math.inf),
            "wrong: 2304 of 2304 elements; the worst is output[0, 0]: expected ",
        ),
    ],
)
def test_a_planted_fault_is_refused(function, words):
    assert line_of(function).startswith(words)


def test_one_element_off_is_found_where_it_is():
    assert "output[3, 17]: expected " in line_of(one_element_off)


def test_a_hole_in_a_later_slice_is_named_where_it_is(monkeypatch):
    monkeypatch.setattr("course_kernels.measure.check.SLICE", 100)

    assert line_of(half_written).startswith(
        "not written, or NaN: 1152 of 2304 elements, output[24, 0]: expected "
    )


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
    assert same == [True, False, False] * 2 + [False] * 3
    # The third has hard values in it: the same ones in the same places for the same seed.
    hard = [other.nan_to_num(nan=7.0) for other in seen[2::3]]
    assert [torch.equal(hard[0], other) for other in hard] == [True, True, False]


def test_without_a_seed_inputs_are_drawn_by_seed_0():
    seen = []

    def kernel(x):
        seen.append(x.clone())
        return row_softmax(x)

    it = Competitor("fake_softmax/planted", SOFTMAX, kernel)
    checked_error(it, W, device="cpu")
    checked_errors({"it": it}, W, device="cpu")
    Check({"it": it}, W, device="cpu").before()
    checked_error(it, W, 0, device="cpu")
    of_each = [torch.stack(seen[i :: len(seen) // 4]) for i in range(len(seen) // 4)]
    assert all(
        torch.equal(one.nan_to_num(), again.nan_to_num())
        for first in of_each
        for one, again in pairwise(first)
    )
    assert Check({"it": it}, W, device="cpu").seed == 0


def test_a_refusal_names_its_seed():
    for generator in (12345, torch.Generator().manual_seed(12345)):
        with pytest.raises(WrongResult, match=r"; seed 12345$"):
            check(one_element_off, generator=generator)


def test_poison_works_where_filling_was_switched_off(monkeypatch):
    monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", False)

    with poisoned_memory():
        assert torch.empty(8).isnan().all()

    assert torch.utils.deterministic.fill_uninitialized_memory is False


def test_the_memory_that_the_second_answer_gets_is_filled_with_nan(monkeypatch):
    filled, real = [], torch.full_like
    monkeypatch.setattr(
        torch, "full_like", lambda out, value: filled.append((out.shape, value)) or real(out, value)
    )
    check(row_softmax)

    assert [(shape, math.isnan(value)) for shape, value in filled] == [((48, 48), True)]


def test_poison_is_undone():
    before = torch.are_deterministic_algorithms_enabled()

    with poisoned_memory():
        assert torch.empty(8).isnan().all()
    with pytest.raises(RuntimeError, match="boom"), poisoned_memory():
        raise RuntimeError("boom")

    assert torch.are_deterministic_algorithms_enabled() is before


def test_poison_leaves_pytorchs_compiler_alone():
    text = (
        "import sys, torch; from course_kernels.measure.check import poisoned_memory\n"
        "with poisoned_memory(): assert torch.empty(8).isnan().all()\n"
        "assert 'torch._inductor' not in sys.modules and 'torch._dynamo' not in sys.modules"
    )

    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr  # every command would wait seconds for it


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


def test_what_is_not_finite_adds_nothing_to_the_size_of_its_row():
    truth = torch.tensor([[math.inf, 0.01, -0.01], [math.nan, -math.inf, 0.01]], dtype=torch.float64)
    out = truth.clone()
    out[0, 1] += 0.005

    assert worst_element(out, truth, rows_apart=True) == (pytest.approx(0.25), 1)
    out[1, 2] += 0.01
    assert worst_element(out, truth, rows_apart=True) == (pytest.approx(0.5), 5)


def test_worst_element_is_measured_by_the_usual_size_where_that_is_known():
    truth = torch.tensor([1e6, 0.0, 0.0, 0.0], dtype=torch.float64)
    out = truth + torch.tensor([0.0, 0.5, 0.0, 0.0])

    assert worst_element(out, truth)[0] < 1e-5  # beside the large one
    assert worst_element(out, truth, usual=2.0) == (pytest.approx(0.25), 1)


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


# --- hard values -----------------------------------------------------------------------------------


def doubling(**fields):
    return dataclasses.replace(SOFTMAX, reference=lambda x: 2 * x.double(), max_error=lambda w: 0.0, **fields)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (
            lambda x: 2 * x.nan_to_num(nan=0, posinf=math.inf, neginf=-math.inf),
            "NaN lost: 1 of 2304 elements",
        ),
        (lambda x: 2 * x.clamp(max=1e38), "infinity lost: 1 of 2304 elements are wrong, output["),
        (lambda x: 2 * x.clamp(-1e20, 1e20), "infinity lost: "),
        (lambda x: torch.where(x.isinf(), -2 * x, 2 * x), "infinity lost: 2 of 2304 elements are wrong, "),
        (lambda x: 2 * x + 0 * x.flip(0), "not written, or NaN: 3 of 2304 elements"),
        (lambda x: torch.where(x.abs() == 1e30, 0, 2 * x), "wrong: 2 of 2304 elements"),
        (lambda x: torch.where(x == 0, 1e-6, 2 * x), "wrong: 2 of 2304 elements"),
    ],
)
def test_a_hard_value_that_is_lost_is_refused(function, words):
    line = line_of(function, problem=doubling())

    assert line.startswith(words)
    assert all(value in line.split(", where x holds ")[1] for value in ("nan", "-inf", "1e+30", "-0"))


def test_a_large_value_does_not_hide_the_others():
    def off_where_there_is_a_large_one(x):
        y = 2 * x
        if float(x.nan_to_num(0, 0, 0).abs().max()) > 1e20:
            y[3, 17] += 0.01
        return y

    assert line_of(off_where_there_is_a_large_one, problem=doubling()).startswith("wrong: ")


def test_the_problem_says_which_hard_values_count():
    def no_nan(x):
        return 2 * x.nan_to_num(nan=0, posinf=math.inf, neginf=-math.inf)

    assert check(no_nan, problem=doubling(hard=lambda w: ({0: (0.0, math.inf)},))) == 0
    assert check(no_nan, problem=doubling(hard=lambda w: ())) == 0
    assert "NaN lost" in line_of(no_nan, problem=doubling(hard=lambda w: ({0: (0.0,)}, {0: (math.nan,)})))


@pytest.mark.parametrize(
    ("dtype", "held"),
    [
        (torch.float32, [1e30, -1e30, math.inf]),
        (torch.bfloat16, [1e30, -1e30, math.inf]),
        (torch.float16, [32752.0, -32752.0, math.inf]),
        (torch.float8_e4m3fn, [224.0, -224.0]),
        (torch.int32, []),
    ],
)
def test_a_type_gets_what_it_can_hold(dtype, held):
    assert _held_by(dtype, (1e30, -1e30, math.inf)) == held


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn]
)
def test_every_value_is_planted_once_in_a_place_of_its_own(dtype):
    problem = doubling(make_inputs=lambda w, generator, device: (torch.ones(w.N).to(dtype),))
    values = (0.0, math.nan, math.inf, 1e30)

    for n in (1, 3, 4, 5, 1000):
        one = Check({"it": Competitor("it", problem, row_softmax)}, Workload.of("float32", N=n), 3, "cpu")
        (x,), held = one._plant(one._draw(), {0: values})
        few = min(n, len(_held_by(dtype, values)))

        assert len(held[0]) == few
        assert int((x.float() != 1).sum()) == few


def test_hard_truth_is_met_exactly():
    truth = torch.tensor([1.0, math.nan, math.inf, -math.inf], dtype=torch.float64)

    assert worst_element(truth.float(), truth) == (0.0, 0)
    for place, wrong in (
        (0, math.nan),
        (0, math.inf),
        (1, 0.0),
        (1, math.inf),
        (2, 3e38),
        (2, -math.inf),
        (3, math.nan),
    ):
        out = truth.clone()
        out[place] = wrong
        assert worst_element(out, truth) == (math.inf, place)
    near = truth.clone()
    near[0] += 0.5
    assert worst_element(near, truth) == (0.25, 0)  # the size of the finite elements is 1


# --- views, and where they are due -------------------------------------------------------------------


def test_another_order_is_right_where_the_problem_allows_it():
    def turned(x):
        return torch.softmax(x.t().contiguous(), 0).t()

    assert check(turned, problem=dataclasses.replace(SOFTMAX, layouts=((1, 0),))) <= 1e-6
    assert line_of(turned).startswith("a view: ")


def test_attention_may_keep_its_heads_side_by_side():
    w = Workload.of("float32", B=2, H=3, N=5, D=64, causal=False)

    def attention(order):
        def function(q, k, v, causal):
            out = scaled_dot_product_attention(q, k, v)
            return out.permute(*order).contiguous().permute(*torch.tensor(order).argsort().tolist())

        return Competitor("planted", ATTENTION, function)

    assert checked_error(attention((0, 2, 1, 3)), w, device="cpu") > 0
    with pytest.raises(WrongResult, match="a view: output: expected strides"):
        checked_error(attention((0, 1, 3, 2)), w, device="cpu")


# --- the truth comes after the call ------------------------------------------------------------------


def test_the_truth_is_not_there_to_be_read():
    x, s = REFUSALS.make_inputs(SQUARE, torch.Generator().manual_seed(0), "cpu")

    def careless():
        truth = REFUSALS.reference(x, s)
        return worst_error(cheats.truth_stolen(x, s), truth)

    assert careless() <= 2.0**-22
    with pytest.raises(WrongResult, match=r": wrong: 4096 of 4096 elements"):
        checked_error(cheats.truth_stolen, SQUARE, device="cpu")


def test_no_frame_holds_the_truth_when_a_wrong_kernel_is_asked_again(made_up_stream):
    one = Check({"it": competitor_of(cheats.truth_stolen)}, SQUARE, 0, "cpu")
    one._on_gpu = True

    with pytest.raises(WrongResult, match=r": wrong: 4096 of 4096 elements"):
        one.before()


# --- after the timing --------------------------------------------------------------------------------


def timed(function, problem=SOFTMAX, refill_at=4, calls=9):
    """What `after` says of a function that was called so often, its inputs refilled on the way."""
    one = Check({"it": Competitor("fake_softmax/planted", problem, function)}, W, 5, "cpu")
    one.before()
    inputs, options = one.fresh_inputs()
    versions = [tensor._version for tensor in inputs]
    for call in range(calls):
        if call == refill_at:
            one.refill(inputs)
        result = function(*inputs, **options)
    assert [tensor._version for tensor in inputs] == versions or function is touches_late
    return one.after({"it": result}, inputs)["it"]


def wrong_after(function, **how):
    with pytest.raises(WrongResult) as refused:
        timed(function, **how)
    line = str(refused.value)
    assert line.startswith(f"fake_softmax/planted on {W.label}: right before the timing, wrong after it: ")
    assert line.endswith("; seed 5")
    return line.split("after it: ")[1]


def right_so_often(times, then):
    calls = []

    def kernel(x):
        calls.append(row_softmax(x))
        return calls[-1] if len(calls) <= times else then(calls, x)

    return kernel


def touches_late(x):
    y = row_softmax(x)
    if touches_late.calls > 5:
        x[0, 0] = 1
    touches_late.calls += 1
    return y


def test_a_right_kernel_is_still_right():
    assert 0 < timed(row_softmax) <= 1e-6
    assert 0 < timed(row_softmax, refill_at=None) <= 1e-6


@pytest.mark.parametrize(
    ("then", "words"),
    [
        (lambda made, x: made[5].clone(), "wrong: "),
        (
            lambda made, x: made[6].clone() if len(made) > 8 else made[-1],
            "wrong: ",
        ),  # what the same tensors held
        (lambda made, x: torch.full_like(x, math.nan), "all NaN: "),
        (lambda made, x: row_softmax(x).as_subclass(Promise), "not a plain tensor: "),
        (lambda made, x: torch.softmax(x.t().contiguous(), 0).t(), "a view: "),
        (lambda made, x: x, "output shares memory with input x"),
        (lambda made, x: row_softmax(x)[:24], "wrong shape: "),
    ],
)
def test_right_six_times_and_then_no_more_is_refused(then, words):
    assert wrong_after(right_so_often(6, then)).startswith(words)


def test_inputs_touched_while_timed_are_told():
    touches_late.calls = 0

    assert wrong_after(touches_late).startswith("input modified: x[0, 0] was ")


def test_there_is_nothing_to_judge_before_the_timing():
    one = Check({"it": Competitor("it", SOFTMAX, row_softmax)}, W, 0, "cpu")

    with pytest.raises(RuntimeError, match="nothing to judge"):
        one.after({"it": None}, ())


def test_the_error_after_the_timing_counts():
    worse = right_so_often(6, lambda made, x: made[-1] * (1 + 3e-7))

    assert timed(worse) > timed(row_softmax)


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
    one = Check({"it": Competitor("fake_softmax/planted", SOFTMAX, function)}, W, 0, "cpu")
    one._on_gpu = True
    one.before()


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


def test_a_copy_that_is_made_too_late_is_refused(made_up_stream):
    def kernel(x):
        y = row_softmax(x)
        return y + 1 if made_up_stream.inside and made_up_stream.fills else y

    with pytest.raises(
        WrongResult, match="work on another stream: right when the host waits for the whole GPU"
    ):
        stream_check(kernel)


# --- small things ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_the_first_bit_that_differs_is_found_in_slices_of_any_size(monkeypatch, size):
    monkeypatch.setattr(check_module, "SLICE", size)
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        before = torch.tensor([[0.0, 1.0, math.nan], [math.inf, 2.0, 3.0]], dtype=dtype)
        assert check_module._first_difference(before.clone(), before) is None
        for at in range(6):
            now = before.clone()
            now.view(-1)[at:] = -0.0 if at == 0 else 7.0
            assert check_module._first_difference(now, before) == at


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_the_size_of_an_answer_is_that_of_its_finite_elements(monkeypatch, size):
    monkeypatch.setattr(check_module, "SLICE", size)
    for values, rms in (
        ([3.0, 4.0, 0.0, 0.0, 0.0], math.sqrt(5.0)),
        ([3.0, math.inf, 4.0], math.sqrt(12.5)),
        ([math.nan, -math.inf, 2.0], 2.0),
        ([math.nan], 0.0),
        ([], 0.0),
    ):
        assert check_module._rms(torch.tensor(values)) == pytest.approx(rms)


def test_of_a_large_answer_some_elements_are_remembered_spread_evenly(monkeypatch):
    monkeypatch.setattr(check_module, "REMEMBERED", 4)
    for n, kept in ((3, [0, 1, 2]), (7, list(range(7))), (8, [0, 2, 4, 6]), (13, [0, 3, 6, 9, 12])):
        assert check_module._sample(torch.arange(n)).tolist() == kept


def test_memory_is_shared_where_any_two_lie_in_one_place():
    a, b, empty = torch.zeros(4), torch.zeros(4), torch.zeros(0)
    share = check_module._share_memory
    assert share([b, a], [empty, a[2:]])
    assert share([a.view(2, 2)], [b, a])
    assert not share([a], [b])
    assert not share([empty], [empty])
    assert not share([empty, a], [empty, b])


def test_an_order_of_dimensions_is_one_of_the_problem_s_for_as_many():
    lies, x = check_module._lies_as_asked, torch.zeros(2, 3, 4)
    assert lies(x, ())
    assert not lies(x.transpose(1, 2), ())
    assert lies(x.transpose(1, 2), ((1, 0), (0, 2, 1)))
    assert not lies(x.transpose(1, 2), ((1, 0), (2, 1, 0)))
    assert [check_module._row_major(shape) for shape in ((), (3,), (2, 3, 4))] == [[], [1], [12, 4, 1]]
    assert [check_module._as_tuple(given) for given in (1, [1, 2], (3,))] == [(1,), (1, 2), (3,)]


def test_competitors_are_all_of_one_problem():
    one = Competitor("a/k01", SOFTMAX, row_softmax)
    other = Competitor("b/k01", dataclasses.replace(SOFTMAX, name="another"), row_softmax)
    for given, said in (({}, "no competitor"), ({"a": one, "b": other}, "another, fake_softmax")):
        with pytest.raises(ValueError, match=f"^competitors: expected one problem for all, got {said}$"):
            Check(given, W, 0, "cpu")
    assert Check({"a": one, "b": one}, W, 0, "cpu").problem is SOFTMAX


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (lambda x: x.double(), None),  # a by-product may be kept more exactly
        (lambda x: x.clone(), None),
        (lambda x: x.int(), "wrong dtype: output 1: expected torch.float32, got torch.int32"),
        (lambda x: x[:1].clone(), "wrong shape: output 1: expected (48, 48), got (1, 48)"),
    ],
)
def test_a_second_output_is_a_floating_point_number_of_any_width(second, said):
    both = dataclasses.replace(
        SOFTMAX, reference=lambda x: (x.double(), x.double()), max_error=lambda w: 0.0, hard=lambda w: ()
    )

    def made(x):
        return [x.clone(), second(x)]

    if said:
        assert line_of(made, problem=both) == said
    else:
        assert check(made, problem=both) == 0


# --- what a refusal says ------------------------------------------------------------------------


def why_wrong(out, truth, at=0, **how):
    out, truth = (torch.tensor(values, dtype=torch.float64) for values in (out, truth))
    how = {"worst": 0.125, "allowed": 0.0625, "wrong": 1, "slice_elements": 2, **how}
    return messages.why_wrong("y", out, truth, at, **how)


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("out", "truth", "at", "said"),
    [
        ([NAN] * 4, [1.0] * 4, 0, "all NaN: y[0]: expected 1, got nan"),
        ([NAN] * 4, [1.0, 1.0, NAN, 1.0], 0, "not written, or NaN: 3 of 4 elements, y[0]: expected 1, got nan"),
        ([1.0, 1.0, 1.0, NAN], [1.0] * 4, 0, "not written, or NaN: 1 of 4 elements, y[3]: expected 1, got nan"),
        ([1.0, NAN, 1.0, NAN], [1.0] * 4, 0, "not written, or NaN: 2 of 4 elements, y[1]: expected 1, got nan"),
        ([NAN, 1.0, 0.0], [0.0, NAN, 1.0], 2, "not written, or NaN: 1 of 3 elements, y[0]: expected 0, got nan"),
        ([1.0, 1.0, 2.0], [1.0, 1.0, NAN], 2,
         "NaN lost: 1 of 3 elements should be NaN and are not, y[2]: expected nan, got 2"),
        ([NAN, 1.0, 2.0], [NAN, NAN, NAN], 0,
         "NaN lost: 2 of 3 elements should be NaN and are not, y[1]: expected nan, got 1"),
        ([1.0, 3e38], [1.0, INF], 1, "infinity lost: 1 of 2 elements are wrong, y[1]: expected inf, got 3e+38"),
        ([1.0, INF], [1.0, 2.0], 1,
         "wrong: 1 of 2 elements; the worst is y[1]: expected 2, got inf; "
         "inf apart, a scaled error of 0.12 where 0.062 is allowed"),
        ([[1.0, 1.0], [5.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]], 2,
         "wrong: 1 of 4 elements; the worst is y[1, 0]: expected 1, got 5; "
         "4 apart, a scaled error of 0.12 where 0.062 is allowed"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("slice_elements", [1, 2, 100])
def test_what_is_wrong_is_said_word_for_word_in_slices_of_any_length(out, truth, at, said, slice_elements):
    assert why_wrong(out, truth, at, slice_elements=slice_elements) == said


def test_places_sizes_and_names_are_those_of_the_problem():
    flat = torch.arange(24.0).reshape(2, 3, 4)
    for at in range(24):
        i, j, k = at // 12, at // 4 % 3, at % 4
        assert messages.place_of(flat, at) == f"[{i}, {j}, {k}]"
        assert messages.value_of(flat, at) == f"{at}"
    assert messages.place_of(torch.tensor(1.0), 0) == "[]"
    assert [messages.sizes(shape) for shape in ((), (3,), (3, 4))] == ["()", "(3)", "(3, 4)"]
    assert [messages.output_name(1, outputs) for outputs in ([1], [1, 2])] == ["output", "output 1"]
    assert [messages.input_name(SOFTMAX, index) for index in (0, 1, 2)] == ["x", "1", "2"]
    held = {0: [0.0, -0.0, 1 / 3, NAN], 1: [INF]}
    assert messages.planted(SOFTMAX, held) == "where x holds 0, -0, 0.333333, nan and 1 holds inf"
    was, now = torch.zeros(2, 2), torch.ones(2, 2)
    assert messages.touched(SOFTMAX, 0, was, now, 3) == (
        "input modified: x[1, 1] was 0 before the call and is 1 after it"
    )


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
        (cheats.nan_clamped, "NaN lost: 1 of 4096 elements"),
        (cheats.input_modified, "input modified: x[0, 0]"),
        (cheats.cached_result, "cached result"),
        (cheats.watches_versions, "cached result"),
        (cheats.same_memory, "same memory twice"),
        (cheats.view_returned, "a view: output: expected strides (64, 1), got (1, 64)"),
        (cheats.lazy_tensor, "not a plain tensor: output is a _Later"),
        (cheats.truth_stolen, "wrong: 4096 of 4096 elements"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_cheat_is_refused(cheat, words):
    with pytest.raises(WrongResult) as refused:
        checked_error(cheat, SQUARE, device="cpu")

    assert str(refused.value).startswith(f"refusals/cheats.{cheat.__name__} on {SQUARE.label}: {words}")


def test_every_fault_of_a_cheat_shows_elsewhere_too():
    """They are right by the plain test, once: what refuses them is what the page says."""
    x, s = REFUSALS.make_inputs(SQUARE, torch.Generator().manual_seed(0), "cpu")
    truth = REFUSALS.reference(x, s)

    for cheat in cheats.CHEATS[4:-3]:
        kept = x.clone()
        assert worst_error(torch.Tensor.double(cheat(x, s)), truth) <= 2.0**-22
        x.copy_(kept)


@pytest.mark.parametrize("cheat", [cheats.looks_who_asks, cheats.faster_than_floor])
def test_only_the_timing_gives_away(cheat):
    assert checked_error(cheat, SQUARE, device="cpu") <= 2.0**-22


def test_who_looks_who_asks_is_wrong_after_the_timing():
    def after(cheat):
        one = Check({"it": competitor_of(cheat)}, SQUARE, 0, "cpu")
        one.before()
        inputs, _ = one.fresh_inputs()
        cheat(*inputs)
        one.refill(inputs)
        return one.after({"it": cheat(*inputs)}, inputs)["it"]

    with pytest.raises(WrongResult, match="right before the timing, wrong after it: wrong: 4096 of 4096"):
        after(cheats.looks_who_asks)
    assert after(cheats.faster_than_floor) <= 2.0**-22


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


def test_a_competitor_is_named_by_its_file_and_by_its_function_where_that_is_another():
    module = sys.modules[cheats.honest.__module__]
    assert competitor_of(cheats.honest) == Competitor("refusals/cheats.honest", REFUSALS, cheats.honest)
    with pytest.raises(TypeError, match=r"cheats has no function refusals\(\); pass one of its functions$"):
        competitor_of(module)
    for thing in (3, "refusals/cheats", len):
        with pytest.raises(
            TypeError, match=r"^competitor: expected a kernel module or a function of a problem"
        ):
            competitor_of(thing)
    first = competitor_named("copy/k01_vectorised")
    assert (first.kernel, first.problem.name, first.function.__name__) == (
        "copy/k01_vectorised",
        "copy",
        "copy",
    )
    assert competitor_of(first) is first
    assert competitor_of(first.function) == first == competitor_of(sys.modules[first.function.__module__])
    for where in ("measure/check", "cuda/compile"):
        with pytest.raises(ValueError, match=r"has no problem\.py with a PROBLEM$"):
            competitor_named(where)


def test_a_function_of_a_page_needs_a_problem():
    with pytest.raises(TypeError, match="for a function of your own take Competitor"):
        competitor_of(row_softmax)
