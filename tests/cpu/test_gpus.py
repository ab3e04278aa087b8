"""Devices through the driver, with a driver made up here."""

import ctypes
import json

import pytest

from course_site.records import gpus


class Driver:
    """A libcuda of two devices whose cuInit answers `status`."""

    def __init__(self, status=0, failing=None):
        self.status, self.failing = status, failing
        self.names = [b"NVIDIA H200", b"NVIDIA A100-SXM4-80GB"]

    def cuInit(self, flags):
        return self.status

    def cuDeviceGetCount(self, count):
        count._obj.value = len(self.names)
        return 999 if self.failing == "cuDeviceGetCount" else 0

    def cuDeviceGet(self, device, index):
        device._obj.value = index
        return 0

    def cuDeviceGetName(self, text, length, device):
        text.value = self.names[device.value]
        return 0

    def cuDeviceGetAttribute(self, number, attribute, device):
        number._obj.value = {75: (9, 8), 76: (0, 0)}[attribute][device.value]
        return 0

    def cuDeviceTotalMem_v2(self, memory, device):
        memory._obj.value = 150_000_000_000
        return 0

    def cuGetErrorName(self, status, text):
        names = {803: b"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", 999: b"CUDA_ERROR_UNKNOWN"}
        text._obj.value = names.get(status)
        return 0 if status in names else 1


def test_devices_are_read_from_the_driver():
    found = gpus.ask_driver(Driver())
    assert [(g.name, g.capability, g.slug, g.visible) for g in found] == [
        ("NVIDIA H200", (9, 0), "nvidia-h200", "0"),
        ("NVIDIA A100-SXM4-80GB", (8, 0), "nvidia-a100-sxm4-80gb", "1"),
    ]
    assert found[0].memory_bytes == 150_000_000_000


def test_a_child_sees_what_the_environment_already_chose():
    assert [gpu.visible for gpu in gpus.ask_driver(Driver(), "GPU-a, 5")] == ["GPU-a", "5"]


def test_no_device_is_no_gpu():
    assert gpus.ask_driver(Driver(status=gpus.NO_DEVICE)) == []


@pytest.mark.parametrize(
    ("driver", "said"),
    [
        (
            Driver(status=803),
            "cuInit answers CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803): the driver was updated",
        ),
        (Driver(status=999), "cuInit answers CUDA_ERROR_UNKNOWN (999): see what nvidia-smi says"),
        (Driver(status=4711), "cuInit answers error (4711): see what nvidia-smi says"),
        (Driver(failing="cuDeviceGetCount"), "cuDeviceGetCount answers CUDA_ERROR_UNKNOWN (999)"),
    ],
)
def test_a_driver_that_fails_is_one_clear_line(driver, said):
    with pytest.raises(gpus.GpuUnusable) as caught:
        gpus.ask_driver(driver)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_library_is_no_gpu(monkeypatch):
    def missing(name):
        raise OSError(name)

    monkeypatch.delenv("COURSE_FAKE_GPUS", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert gpus.find_gpus() == []


def test_hiding_every_device_is_a_choice_and_never_asks_the_driver(monkeypatch):
    def broken(name):
        return Driver(status=999)

    monkeypatch.delenv("COURSE_FAKE_GPUS", raising=False)
    monkeypatch.setattr(ctypes, "CDLL", broken)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert gpus.find_gpus() == []
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    with pytest.raises(gpus.GpuUnusable):
        gpus.find_gpus()


def test_fake_devices_stand_in_for_the_driver(monkeypatch):
    monkeypatch.setenv("COURSE_FAKE_GPUS", json.dumps([{"name": "NVIDIA T4", "capability": [7, 5]}]))
    assert [(gpu.slug, gpu.capability) for gpu in gpus.find_gpus()] == [("nvidia-t4", (7, 5))]
