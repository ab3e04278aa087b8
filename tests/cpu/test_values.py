"""Values and claims: what an expression may say, and what the samples say of it."""

import re

import numpy as np
import pytest

from course_kernels.measure.machine import machine_for
from course_site.values.claims import judge
from course_site.values.uncertainty import BetweenRuns, factors, interval
from course_site.values.values import (
    BadExpression,
    Define,
    NotOnThisCard,
    Resolved,
    Result,
    Scope,
    UnknownName,
    evaluate,
    format_value,
    parse,
)

RNG = np.random.default_rng(1)
NOISE = RNG.normal(1.0, 0.05, 200)


BLOCKS = (1.002, 0.999, 1.0, 0.997, 1.001, 1.0)


def measurement(median_us, *, group="g1", noise=NOISE, blocks=BLOCKS, **dims):
    samples = noise * median_us
    quantiles = {str(q): float(np.quantile(samples, q)) for q in (0.05, 0.25, 0.5, 0.75, 0.95)}
    return {
        "kind": "measurement", "kernel": "p/k01", "workload": {"dtype": "bfloat16", "dims": dims or {"N": 4}}, "n": 200,
        "samples_us": [float(s) for s in samples],
        "quantiles_us": {"0": float(samples.min()), **quantiles, "1": float(samples.max())},
        "group": group, "rounds": 200, "reads_bytes": 10**9, "writes_bytes": 10**9, "flops": 10**12, "math": "bf16",
        "error": 1e-3, "allowed": 1e-2, "blocks_us": [block * median_us for block in blocks], "every": 1, "seed": 7,
        "host_us": {"0.25": 9.0, "0.5": 10.0, "0.75": 12.0}, "host_bound": 0,
        "running": [
            {"sm_mhz": 1500, "memory_mhz": 3201, "power_w": 600.0, "temperature_c": 60, "throttle": []}
        ],
    }  # fmt: skip


TOOK = {
    "gpu__time_duration.sum": {"value": 500_000.0, "unit": "ns"}
}  # of one kernel; of the other nobody asked


def scope(**more):
    names = {
        "flash": {"full": measurement(1000.0), "causal": measurement(600.0)},
        "sdpa": {"full": measurement(1500.0)},
        "steps": {"m": {"kind": "quantity", "value": 3.0, "unit": "1", "how": "computed"}},
        "said": {"kind": "text", "value": "refused: NaN"},
        "waits": {
            "kind": "samples",
            "how": "timed",
            "unit": "µs",
            "n": 3,
            "quantiles": {"0.5": 4.0},
            "blocks": [],
        },
        "traffic": {
            "kind": "counted",
            "read_bytes": 3 * 10**9,
            "write_bytes": 10**9,
            "kernels": [
                {"name": "k", "read_bytes": 10**9, "write_bytes": 10**9, "metrics": TOOK},
                {"name": "l", "read_bytes": 2 * 10**9, "write_bytes": 0},
            ],
        },
        "power": {"kind": "trace", "columns": {"t_s": [0.0, 1.0, 2.0], "power_w": [100.0, 700.0, 690.0]}},
        **more,
    }
    return Scope("w1", names, machine_for("NVIDIA H200"))


def test_a_name_becomes_its_value():
    assert evaluate("flash.full.us", scope()).value == pytest.approx(1000, rel=0.02)
    assert evaluate("flash.full.n", scope()).value == 200
    assert evaluate("flash.full.N", scope()).value == 4
    assert evaluate("steps.m", scope()).value == 3.0
    assert evaluate("said", scope()).value == "refused: NaN"
    assert evaluate("power.power_w.max", scope()).value == 700.0
    assert evaluate("waits.us", scope()).value == 4.0
    assert evaluate("waits", scope()).value == 4.0
    assert [
        evaluate(f"traffic.kernel.{name}", scope()).value for name in ("k.gb", "l.gb", "k.ms")
    ] == pytest.approx([2, 2, 0.5])
    assert [evaluate(f"traffic.{name}", scope()).value for name in ("gb", "mb", "kernels")] == [
        4.0,
        4000.0,
        2,
    ]


@pytest.mark.parametrize(
    ("expression", "value", "unit"),
    [
        ("traffic.read_bytes", 3e9, "B"), ("traffic.write_bytes", 1e9, "B"), ("traffic.bytes", 4e9, "B"),
        ("traffic.read_gb", 3.0, "GB"), ("traffic.write_gb", 1.0, "GB"), ("traffic.gb", 4.0, "GB"),
        ("traffic.mb", 4000.0, "MB"), ("traffic.kernels", 2, "1"),
        ("waits", 4.0, "µs"), ("waits.us", 4.0, "µs"), ("waits.ms", 0.004, "ms"), ("waits.s", 4e-6, "s"),
        ("waits.n", 3, "1"), ("steps.m", 3.0, "1"), ("said", "refused: NaN", ""),
        ("flash.full.n", 200, "1"), ("flash.full.sm_mhz", 1500, "MHz"), ("flash.full.hbm_gb", 2.0, "GB"),
        ("flash.full.N", 4, "1"), ("flash.full.host_us", 10.0, "µs"), ("2 * waits.us", 8.0, ""),
        ("power.power_w.first", 100.0, "w"), ("power.power_w.last", 690.0, "w"),
        ("power.power_w.min", 100.0, "w"), ("power.power_w.max", 700.0, "w"),
        ("power.power_w.mean", 1490 / 3, "w"), ("power.power_w.median", 690.0, "w"),
        ("power.of_all_w.last", 2.0, "w"), ("power.line.last", 9, "1"),
        ("min(1, 2)", 1, ""), ("min(2, 1)", 1, ""), ("max(2, 1, 3)", 3, ""), ("max(3, 1, 2)", 3, ""),
    ],
)  # fmt: skip
def test_everything_a_leaf_can_be_asked_has_its_value_and_its_unit(expression, value, unit):
    page = scope()
    page.names["power"]["columns"] |= {"of_all_w": [1.0, 1.0, 2.0], "line": [7, 8, 9]}

    found = evaluate(expression, page)
    assert found.value == (value if isinstance(value, str) else pytest.approx(value))
    assert found.unit == unit


@pytest.mark.parametrize("scale", ["", ".us", ".ms", ".s"])
def test_samples_are_drawn_around_their_median_the_same_in_every_unit(scale):
    page = scope()
    page.terms = BetweenRuns()

    asked = evaluate(f"waits{scale}", page)
    assert np.median(asked.resamples) == pytest.approx(asked.value, rel=0.01)
    assert evaluate(f"waits{scale} / waits", page).spread < 1e-9 < asked.spread
    assert evaluate("waits.spread", page).value == pytest.approx(asked.spread)


def test_text_a_single_number_and_nothing_have_no_spread():
    drawn = np.linspace(1.0, 2.0, 1001)

    assert Result("text", None, ()).spread is None
    assert Result(1.5, None, ()).spread is None
    assert Result(1.5, 1.5, ()).spread is None
    assert Result(0.0, drawn, ()).spread is None
    assert Result(-2.0, drawn, ()).spread == pytest.approx(0.95 / 2 / 2)


def test_an_interval_is_the_central_95_percent():
    assert interval(np.linspace(0.0, 1.0, 1001)) == pytest.approx((0.025, 0.975))


def test_a_define_that_rests_on_itself_is_refused_as_often_as_it_is_asked():
    page = scope()
    page.defines["a"] = Define("a", "b + 1")
    page.defines["b"] = Define("b", "a + 1")
    page.defines["c"] = Define("c", "1 / (steps.m - 3)")

    for _ in range(2):
        with pytest.raises(BadExpression, match=r"^'a' is defined by itself$"):
            evaluate("a", page)
        with pytest.raises(BadExpression, match="cannot be computed"):
            evaluate("c", page)


@pytest.mark.parametrize("expression", ["(1 - steps.m) ** 0.5", "1e308 * 10", "1e308 * 10 - 1e308 * 10"])
def test_what_is_no_finite_number_is_refused(expression):
    with pytest.raises(BadExpression, match=r"is not a finite number$"):
        evaluate(expression, scope())


def test_arithmetic_and_functions():
    ratio = evaluate("sdpa.full.us / flash.full.us", scope())
    assert ratio.value == pytest.approx(1.5)
    assert evaluate("max(flash.full.us, sdpa.full.us) - abs(-2) * 3", scope()).value == pytest.approx(
        evaluate("sdpa.full.us - 6", scope()).value
    )


def test_a_median_is_that_of_its_names_in_every_resample():
    assert evaluate("median(flash.full.us, sdpa.full.us, sdpa.full.us)", scope()).value == pytest.approx(
        evaluate("sdpa.full.us", scope()).value
    )
    found = evaluate("median(flash.full.us, sdpa.full.us)", scope())
    assert found.value == pytest.approx(evaluate("(flash.full.us + sdpa.full.us) / 2", scope()).value)
    drawn = parse("median(a, b, c)").compute([np.array([3.0, 9.0]), np.array([1.0, 2.0]), 5.0])
    assert list(drawn) == [3.0, 5.0]


def test_resamples_are_numbers_to_multiply_and_no_text():
    thousandfold = evaluate("1e6 * flash.full.us", scope())
    assert np.median(thousandfold.resamples) == pytest.approx(1e9, rel=0.02)
    square = evaluate("flash.full.us * flash.full.us", scope())
    assert np.median(square.resamples) == pytest.approx(1e6, rel=0.04)


def test_paired_samples_cancel_in_a_ratio():
    # Both were slow in the same rounds, so the ratio is far steadier than either time.
    ratio, alone = evaluate("sdpa.full.us / flash.full.us", scope()), evaluate("sdpa.full.us", scope())
    assert ratio.spread < 1e-9 < alone.spread


def test_a_define_is_a_name_with_its_own_resamples():
    page = scope()
    page.defines["flash_over_sdpa.full"] = Define("flash_over_sdpa.full", "sdpa.full.us / flash.full.us", "×")
    result = evaluate("flash_over_sdpa.full * 2", page)
    assert result.value == pytest.approx(3.0)
    assert len(result.resamples) == 1000


def test_another_page_is_quoted_by_its_id():
    other = scope()
    page = Scope("home", {}, None, others={"w1": other}.get)
    assert evaluate("w1.flash.full.us", page).value == evaluate("flash.full.us", other).value


def test_a_group_is_its_leaves_in_recorded_order_on_this_page_or_another():
    other = scope()
    page = Scope("home", {"own": {"m": other.names["steps"]["m"]}}, None, others={"w1": other}.get)

    for pattern in ("flash.*", "flash"):
        assert [name for name, _ in other.group(pattern)] == ["flash.full", "flash.causal"]
    assert [name for name, _ in page.group("w1.flash.*")] == ["w1.flash.full", "w1.flash.causal"]
    assert page.group("own.m") == [("own.m", other.names["steps"]["m"])]
    leaf = other.names["steps"]["m"]
    race = Scope("race", {"race": {"n1": {"ours": leaf, "deep": {"ours": leaf}}, "n2": {"ours": leaf}}}, None)
    assert [name for name, _ in race.group("race.*.ours")] == ["race.n1.ours", "race.n2.ours"]
    assert [name for name, _ in race.group("race.*.deep.*")] == ["race.n1.deep.ours"]
    with pytest.raises(UnknownName, match=r"^unknown value 'race\.\*\.theirs'"):
        race.group("race.*.theirs")
    for unknown in ("flash.*", "w1", "own.n", "w2.flash.*"):
        with pytest.raises(UnknownName, match=f"^unknown value {re.escape(repr(unknown))}"):
            page.group(unknown)
    with pytest.raises(UnknownName, match=r"^unknown value 'w1'$"):
        evaluate("w1", page)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("flash.ful.us", "unknown value 'flash.ful.us'; did you mean 'flash.full'?"),
        ("flash.full.speed", "a measurement has us, ms"),
        ("flash.full", "is a measurement; ask for one of: us"),
        ("nothing", "unknown value 'nothing'"),
        ("sad", "unknown value 'sad'; did you mean 'said'?"),
        ("flahs.full", "unknown value 'flahs.full'; did you mean 'flash.full'?"),
        ("flash.causl.us", "unknown value 'flash.causl.us'; did you mean 'flash.causal'?"),
        ("flash", "names a group of values"),
        ("flash.full.us.more", "is a measurement; ask for one of: us"),
        ("steps.m.more", "a quantity has no 'more'"),
        ("said.more", "a text has no 'more'"),
        ("power.power_w", "a trace has no 'power_w'"),
        ("power.volts.max", "the trace has t_s, power_w, each with first, last"),
        ("power.power_w.largest", "the trace has t_s, power_w, each with first, last"),
        ("waits.hours", "samples have n, spread, "),
        ("waits.us.more", "samples have n, spread, "),
        ("traffic.more", "a counted traffic has read_bytes"),
        ("traffic.gb.more", "a counted has no 'gb.more'"),
        ("traffic.kernel.k.more", "a counted traffic has read_bytes"),
        ("traffic.kernel.l.ms", "no time was counted"),
    ],
)
def test_an_unknown_name_says_what_there_is(expression, said):
    with pytest.raises(UnknownName) as error:
        evaluate(expression, scope())
    assert said in str(error.value)


def test_a_kernel_that_a_library_did_not_take_is_not_on_this_card():
    with pytest.raises(NotOnThisCard, match="those counted are k, l"):
        evaluate("traffic.kernel.m.gb", scope())


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os')", "flash.full.us.__class__", "(lambda: 1)()", "[1][0]", "'a' * 9", "pow(2, 3)",
        "flash.full.us if 1 else 2", "1 if", "min(flash.full.us, key=abs)", "steps.m / 0", "said + 1", "f'{1}'",
    ],
)  # fmt: skip
def test_nothing_but_names_and_arithmetic(expression):
    with pytest.raises((BadExpression, UnknownName)):
        evaluate(expression, scope())


def test_formats():
    assert format_value(411.6, ".0f") == "412"
    assert format_value(0.834, ".0%") == "83%"
    assert format_value(1234567, ",d") == "1,234,567"
    assert format_value("text", "") == "text"
    with pytest.raises(BadExpression):
        format_value("text", ".2f")


def test_a_true_claim_holds():
    verdict = judge("flash.full.tflops > 1.4 * sdpa.full.tflops", scope())
    assert verdict.holds
    assert verdict.support == 1.0


def test_a_false_claim_fails_and_says_what_it_saw():
    verdict = judge("flash.full.tflops > 1.6 * sdpa.full.tflops", scope())
    assert not verdict.holds
    assert "is false" in verdict.why
    assert "sdpa.full.tflops = " in verdict.why


def test_a_claim_true_by_luck_only_is_undecided():
    # The blocks of each lie further apart than the two medians do.
    page = scope(a=measurement(1000.0, group="a"), b=measurement(1001.0, group="b"))
    verdict = judge("a.us < b.us", page)
    assert 0.1 < verdict.support < 0.9
    assert verdict.undecided
    assert not verdict.holds
    assert "is too close to call: true in" in verdict.why


def test_a_margin_that_another_card_may_take_away_is_undecided():
    one = scope(a=measurement(1000.0), b=measurement(1015.0))
    assert judge("a.us < b.us", one).holds  # the blocks of one run see no difference between cards
    one.terms = BetweenRuns()
    one._cache.clear()
    assert judge("a.us < b.us", one).undecided


def test_a_false_claim_is_not_undecided():
    page = scope(a=measurement(1000.0), b=measurement(1500.0))
    page.terms = BetweenRuns()
    verdict = judge("a.us > b.us", page)
    assert not verdict.holds
    assert not verdict.undecided


def test_what_the_card_does_to_all_cancels_in_a_ratio_of_one_run():
    page = scope(a=measurement(1000.0), b=measurement(1500.0))
    page.terms = BetweenRuns({"timing": 0.1}, {"timing": 0.0}, runs=4, cards=4)
    assert evaluate("b.us / a.us", page).spread < 0.02 < 0.15 < evaluate("b.us", page).spread


def test_a_name_moves_with_itself():
    page = scope(a=measurement(1000.0))
    page.terms = BetweenRuns()
    assert evaluate("a.us * a.tflops", page).spread < 1e-9 < evaluate("a.us", page).spread


def test_the_spread_is_that_of_the_blocks_and_not_of_the_samples():
    steady = scope(a=measurement(1000.0, blocks=(1.0,) * 6), b=measurement(1000.0, noise=np.ones(200)))
    assert evaluate("a.spread", steady).value == 0
    assert evaluate("b.spread", steady).value == pytest.approx(evaluate("b.us", steady).spread)
    assert evaluate("b.spread", steady).value > 0.001


@pytest.mark.parametrize(("n", "middle"), [(3, 0.8165), (6, 0.7267)])
def test_within_a_run_two_means_of_its_blocks_differ_as_student_says(n, middle):
    """Half of what Student's t of n - 1 degrees draws lies within `middle` of 0."""
    logs = 0.01 * np.arange(n)
    leaf = {"blocks_us": [float(block) for block in np.exp(logs)]}
    drawn = [factors(leaf, name=f"x{i}", run="r", terms=None, kind="timing") for i in range(60)]

    found = np.median(np.abs(np.log(drawn))) / (np.std(logs, ddof=1) * np.sqrt(2 / n))
    assert found == pytest.approx(middle, rel=0.03)


def test_one_block_tells_nothing_and_two_tell_something():
    def drawn(*blocks):
        return factors({"blocks_us": list(blocks)}, name="x", run="r", terms=None, kind="timing")

    assert drawn() is None
    assert drawn(1.0) is None
    assert np.std(drawn(1.0, 1.1)) > 0.01


def test_what_blocks_tell_and_what_other_runs_tell_is_multiplied():
    terms, of = BetweenRuns(), {"name": "x", "run": "r", "kind": "timing"}
    within, across = factors({"blocks_us": BLOCKS}, terms=None, **of), factors({}, terms=terms, **of)

    assert factors({"blocks_us": BLOCKS}, terms=terms, **of) == pytest.approx(within * across)


def test_what_was_learnt_of_half_a_kind_is_not_learnt():
    """Where nothing was learnt, what an unseen card may bring: two per cent, and one."""
    assert BetweenRuns() == BetweenRuns({}, {}, runs=0, cards=0)
    for terms in (BetweenRuns(), BetweenRuns({"timing": 0.3}, {}), BetweenRuns({}, {"timing": 0.3})):
        assert terms.of("timing") == (0.02, 0.01)
    assert BetweenRuns({"timing": 0.3}, {"timing": 0.0}).of("timing") == (0.3, 0.002)
    assert BetweenRuns({"timing": 0.0}, {"timing": 0.3}).of("timing") == (0.002, 0.3)


def test_the_host_has_a_number_of_its_own():
    page = scope(a=measurement(1000.0))
    assert evaluate("a.host_us", page).spread is None  # the blocks are those of the card
    page = scope(a=measurement(1000.0))
    page.terms = BetweenRuns()
    assert evaluate("a.host_us", page).value == 10.0
    assert evaluate("a.host_us", page).spread > 0.01
    assert evaluate("a.sm_mhz", page).value == 1500


@pytest.mark.parametrize("condition", ["flash.full.us > 0", "flash.full.us < 10 * sdpa.full.us", "1 < 2"])
def test_a_claim_that_nothing_makes_false_is_vacuous(condition):
    verdict = judge(condition, scope())
    assert verdict.vacuous
    assert "is vacuous: no name's halving or doubling makes it false" in verdict.why


@pytest.mark.parametrize(("far", "vacuous"), [(0.5, False), (0.01, True)])
def test_a_number_that_another_run_puts_elsewhere_may_have_a_bound_further_away(far, vacuous):
    drawn = 100 * np.exp(far * np.random.default_rng(0).standard_normal(1000))

    class Wide:
        def resolve(self, name):
            return Resolved(100.0, drawn, "µs")

        def cards_of(self, name):
            return frozenset()

    for condition in ("x > 30", "x < 300"):
        assert judge(condition, Wide()).vacuous == vacuous
    assert not judge("x > 60", Wide()).vacuous
    assert judge("x > 10", Wide()).vacuous


@pytest.mark.parametrize(
    ("at", "vacuous", "not_vacuous"), [(150.0, "x > 40", "x > 60"), (60.0, "x < 210", "x < 190")]
)
def test_a_number_is_halved_and_doubled_from_here_at_least(at, vacuous, not_vacuous):
    """Where another run puts it on the far side only, it is still this run's number that is halved or doubled."""

    class Beside:
        def resolve(self, name):
            return Resolved(100.0, np.full(1000, at), "µs")

        def cards_of(self, name):
            return frozenset()

    assert judge(vacuous, Beside()).vacuous
    assert not judge(not_vacuous, Beside()).vacuous


def test_a_claim_may_rest_on_a_fact_beside_a_measurement():
    assert judge("flash.full.us < 370 * steps.m", scope()).holds
    assert not judge("flash.full.us < 370 * steps.m", scope()).vacuous
    assert judge("steps.m > 1.4", scope()).vacuous
    assert not judge("steps.m > 1.6", scope()).vacuous
    assert judge("steps.m < 6.5", scope()).vacuous
    assert not judge("steps.m < 5.5", scope()).vacuous


def test_chains_and_and_or_hold_round_by_round():
    assert judge("0.6 < flash.full.us / sdpa.full.us < 0.7", scope()).holds
    assert judge("flash.full.us < 1100 and sdpa.full.us < 1600", scope()).holds
    assert not judge("flash.full.us < 900 or sdpa.full.us < 900", scope()).holds
    for first, second, both, one in ((1, 1, 1, 1), (1, 0, 0, 1), (0, 1, 0, 1), (0, 0, 0, 0)):
        said = f"flash.full.us < {3000 * first} {{}} sdpa.full.us < {3000 * second}"
        assert judge(said.format("and"), scope()).support == both
        assert judge(said.format("or"), scope()).support == one


@pytest.mark.parametrize("condition", ["flash.full.us", "said", "said < 3"])
def test_a_claim_needs_a_comparison_of_numbers(condition):
    with pytest.raises(BadExpression):
        judge(condition, scope())


def test_what_a_trace_comes_to_differs_from_run_to_run():
    page = scope()
    page.terms = BetweenRuns()
    assert 0.01 < evaluate("power.power_w.max", page).spread < 0.1
    assert judge("power.power_w.max > 699", page).undecided
    assert judge("power.power_w.max > 500", page).holds
    lines = {"kind": "trace", "columns": {"line": [1, 2, 3], "lane": [0, 1, 2]}}
    assert evaluate("lines.line.max", scope(lines=lines)).spread is None  # places, which no clock moves


def test_a_claim_that_cannot_be_computed_is_a_line():
    with pytest.raises(BadExpression, match=r"^'flash.full.us / \(steps.m - 3\) > 1' cannot be computed: "):
        judge("flash.full.us / (steps.m - 3) > 1", scope())
