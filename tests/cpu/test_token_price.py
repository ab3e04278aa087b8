"""The calculator of a token's price, and what it is given: chips, models, and the bill of one that was measured."""

import tomllib
from pathlib import Path

import pytest

from course_chips.offers import MODELS, OFFERS, USABLE, chips_for, offered, to_serve
from course_kernels.measure.machine import MACHINES
from course_models.config import LLAMA_8B, Config, cache_bytes, decode_floor_us, decode_flops, parameters
from course_site.charts.explorables import token_price
from course_site.charts.explorables.token_price import READERS

ROOT = Path(__file__).parents[2]
SHAPES = {
    "m7": Config(32, 4096, 32, 32, 128, 11008, 32000),
    "m8": LLAMA_8B,
    "m70": Config(80, 8192, 64, 8, 128, 28672, 128256),
}
START = {
    "chip": "h200", "model": "m8", "bits": 16, "readers": 7, "held": 8, "share": 42, "busy": 100, "drawn": 58,
    "prices": [3, 300],
}  # fmt: skip


def data(card="h200"):
    said = {
        name: {key: {"value": one.value, "html": ""} for key, one in values.items()}
        for name, values in (offered() | to_serve()).items()
    }
    rates = {"alone": 240.0, "engine": 1750.0, "together": 4930.0, "joules": 0.24}
    said |= {name: {"value": value, "html": ""} for name, value in rates.items()}
    return said | {"card": card, "words": {"ms": {"html": "ms"}}, "given": token_price.given()}


def shown(card="h200", **turned):
    return token_price.work(START | turned, data(card))


def number(text):
    return float(text.replace(",", ""))


@pytest.mark.parametrize("name", MODELS)
def test_weights_and_caches_are_those_of_the_course_s_models(name):
    model, shape = MODELS[name], SHAPES[name]
    norms = (2 * shape.layers + 1) * shape.width  # which the bill leaves out
    assert model.stored + norms == parameters(shape)
    assert model.token_bytes == cache_bytes(shape, 1, 1)
    attention = 4 * shape.layers * shape.heads * shape.head_dim
    assert 2 * model.read + attention == decode_flops(shape, 1, 0)


def test_chips_are_those_of_the_menu_and_each_number_has_its_source():
    assert set(OFFERS) == set(token_price.CHIPS)
    assert set(MODELS) == set(token_price.MODELS)
    assert token_price.USABLE == USABLE
    assert [chips_for(need, "h100") for need in (1, 72, 73, 145)] == [1, 1, 2, 3]
    known = tomllib.loads((ROOT / "docs/bibliography.toml").read_text(encoding="utf-8"))
    for one in (*OFFERS.values(), *MODELS.values()):
        assert one.sources
        assert set(one.sources) <= set(known)
    for machine in MACHINES:
        assert OFFERS[machine.slug].bf16_tflops == machine.peak_tflops["bf16"]
    assert set(offered("h100", "a10g")["peak"]) == {"h100", "a10g"}
    assert "a10g" not in offered("h100", "a10g")["watts"]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.slug)
@pytest.mark.parametrize(("readers", "held"), [(0, 10), (7, 8), (10, 12)])
def test_a_step_left_of_the_ridge_takes_its_bytes(machine, readers, held):
    found = shown(chip=machine.slug, readers=readers, held=held, share=100)
    assert found.says[0] == "bytes"
    floor = decode_floor_us(LLAMA_8B, READERS[readers], 2**held, machine.bandwidth_gb_per_s) / 1e3
    assert number(found.texts["ms"]) == pytest.approx(floor, rel=0.01)
    assert number(found.texts["rate"]) == pytest.approx(
        1e3 * READERS[readers] / number(found.texts["ms"]), rel=0.01
    )


def test_a_step_right_of_the_ridge_takes_its_operations():
    found = shown(readers=20, held=7, share=100)
    assert found.says[0] == "arithmetic"
    floor = decode_flops(LLAMA_8B, 1024, 0) / 989e12 * 1e3
    assert number(found.texts["ms"]) == pytest.approx(floor, rel=0.01)


def test_the_bill_is_hours_over_tokens_and_each_knob_does_what_it_says():
    found = shown()
    rate = number(found.texts["rate"])
    assert number(found.texts["rent"]) == pytest.approx(3e6 / 3600 / rate, rel=0.01)
    assert number(found.texts["joules"]) == pytest.approx(700 * 0.58 / rate, rel=0.01)
    assert number(found.texts["power"]) == pytest.approx(1e6 * 700 * 0.58 / rate / 3.6e6 * 0.3, rel=0.01)
    assert number(shown(busy=50).texts["rent"]) == pytest.approx(2 * number(found.texts["rent"]), rel=0.01)
    assert number(shown(share=21).texts["ms"]) == pytest.approx(2 * number(found.texts["ms"]), rel=0.01)
    assert number(shown(prices=[6, 0]).texts["bill"]) == pytest.approx(
        2 * number(found.texts["rent"]), rel=0.01
    )
    assert shown(prices=[-1, 0]).says == ("not_prices",)
    assert shown(prices=[1, 2e6]).says == ("not_prices",)


def test_what_does_not_fit_takes_more_chips():
    assert shown(chip="h100", model="m70").texts["cards"] == "2"  # 141 GB, of 72 usable each
    assert shown(chip="h100", model="m70", bits=8).says[1] == "one"
    assert shown(chip="groq").texts["cards"] == "81"
    assert shown(chip="rtx4090").says[2] == "without_power"
    assert number(shown(chip="h100", model="m70", bits=16).texts["rent"]) == pytest.approx(
        2 * number(shown(chip="h100", model="m70", bits=16, prices=[1.5, 300]).texts["rent"]), rel=0.01
    )


def test_what_was_measured_is_said_where_it_was_measured_and_nowhere_else():
    assert shown().says[-1] == "engine"
    assert shown(readers=0, held=10).texts["seen"] == ["alone"]
    assert shown(readers=10, held=10).texts["seen"] == ["together"]
    for other in (
        {"chip": "h100"},
        {"model": "m7"},
        {"bits": 8},
        {"readers": 5},
        {"held": 9},
        {"card": "h100"},
    ):
        assert shown(**other).says[-1] == "with_power", other
    assert (
        shown(share=10, drawn=10).texts["paid"] == shown().texts["paid"]
    )  # whatever is assumed of the floor
