"""Clocks and power without a card: the words, what is missing, and the sampler, on a made-up NVML."""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace

import pytest
import torch

from course_kernels.measure import sensors
from course_kernels.measure.sensors import Sampler, SensorsUnavailable, snapshot, throttle_words


class MadeUpError(Exception):
    pass


def made_up_nvml(**changes):
    def unsupported(*arguments):
        raise MadeUpError("Not Supported")

    instant = SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(uiVal=123_000))
    return SimpleNamespace(
        **{
            "NVMLError": MadeUpError,
            "NVML_SUCCESS": 0,
            "NVML_CLOCK_SM": 1,
            "NVML_CLOCK_MEM": 2,
            "NVML_TEMPERATURE_GPU": 0,
            "NVML_FI_DEV_POWER_INSTANT": 186,
            "nvmlInit": lambda: None,
            "nvmlDeviceGetHandleByUUID": lambda uuid: uuid,
            "nvmlDeviceGetClockInfo": lambda card, which: 1000 * which,
            "nvmlDeviceGetFieldValues": lambda card, fields: [instant],
            "nvmlDeviceGetPowerUsage": lambda card: 99_000,
            "nvmlDeviceGetTemperature": lambda card, which: 40,
            "nvmlDeviceGetCurrentClocksEventReasons": lambda card: 0x4 | 0x40,
            "nvmlDeviceGetCurrentClocksThrottleReasons": unsupported,
            "unsupported": unsupported,
            **changes,
        }
    )


@pytest.fixture
def card(monkeypatch):
    def put(nvml):
        monkeypatch.setitem(sys.modules, "pynvml", nvml)
        monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(uuid="1-2"))
        sensors._library.cache_clear()
        sensors._handle.cache_clear()
        return nvml

    yield put
    sensors._library.cache_clear()
    sensors._handle.cache_clear()


def test_snapshot(card):
    card(made_up_nvml())

    assert snapshot() == {
        "sm_mhz": 1000,
        "memory_mhz": 2000,
        "power_w": 123.0,
        "temperature_c": 40,
        "throttle": ["power limit", "hardware thermal"],
    }


def test_the_card_is_found_by_uuid(card):
    nvml = card(made_up_nvml())

    assert sensors._card() == (nvml, b"GPU-1-2")


def test_what_a_card_does_not_tell_is_none(card):
    nvml = made_up_nvml()
    card(made_up_nvml(nvmlDeviceGetClockInfo=nvml.unsupported, nvmlDeviceGetFieldValues=nvml.unsupported))

    found = snapshot()

    assert (found["sm_mhz"], found["power_w"], found["temperature_c"]) == (None, None, 40)


def test_power_of_a_card_without_the_instant_field(card):
    missing = SimpleNamespace(nvmlReturn=3, value=SimpleNamespace(uiVal=0))
    card(made_up_nvml(nvmlDeviceGetFieldValues=lambda card, fields: [missing]))

    assert snapshot()["power_w"] == 99.0


def test_reasons_of_an_older_driver(card):
    nvml = made_up_nvml()
    card(
        made_up_nvml(
            nvmlDeviceGetCurrentClocksEventReasons=nvml.unsupported,
            nvmlDeviceGetCurrentClocksThrottleReasons=lambda card: 0x1,
        )
    )

    assert snapshot()["throttle"] == ["idle"]


def test_throttle_words():
    assert throttle_words(0) == []
    assert throttle_words(0x4 | 0x80) == ["power limit", "power brake"]
    assert throttle_words(0x1 | 0x1000) == ["idle", "reason 0x1000"]


def test_a_missing_package_is_one_line(card):
    card(None)  # None in sys.modules: the import fails

    with pytest.raises(SensorsUnavailable, match=r"nvidia-ml-py is missing; pip install nvidia-ml-py$"):
        snapshot()


def test_a_driver_that_does_not_answer_is_one_line(card):
    nvml = made_up_nvml()
    card(made_up_nvml(nvmlInit=nvml.unsupported))

    with pytest.raises(SensorsUnavailable, match=r"NVML does not start \(Not Supported\)"):
        snapshot()


def test_sampler(card):
    card(made_up_nvml())

    with Sampler(period_s=0.001) as sampler:
        time.sleep(0.05)

    columns = sampler.columns
    assert list(columns) == ["t_s", "power_w", "sm_mhz", "temperature_c"]
    assert len({len(column) for column in columns.values()}) == 1
    assert len(columns["t_s"]) > 2
    assert columns["t_s"] == sorted(columns["t_s"])
    assert set(columns["power_w"]) == {123.0}


def test_sampler_leaves_out_what_the_card_does_not_tell(card):
    nvml = made_up_nvml()
    card(made_up_nvml(nvmlDeviceGetTemperature=nvml.unsupported))

    with Sampler(period_s=0.001) as sampler:
        time.sleep(0.01)

    assert list(sampler.columns) == ["t_s", "power_w", "sm_mhz"]


def test_sampler_hands_its_failure_over(card):
    def broken(card, which):
        raise OSError("gone")

    card(made_up_nvml(nvmlDeviceGetTemperature=broken))

    with pytest.raises(SensorsUnavailable, match="stopped telling its power and clocks: gone"), Sampler():
        time.sleep(0.01)
