"""The GPUs of this machine, asked of the driver itself: no torch, no nvidia-smi, standard library only.

The noxfile imports this file before anything is installed, so what it imports must need nothing either.
"""

from __future__ import annotations

import ctypes
import json
import os
from dataclasses import dataclass

from course_kernels.measure.provenance import slug_of

NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE: the driver works and there is nothing to drive
CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*

# What usually helps, by the driver's error name. The fallback is in _advice.
ADVICE = {
    "CUDA_ERROR_STUB_LIBRARY": "libcuda.so.1 is the toolkit's stub: take it off LD_LIBRARY_PATH",
    "CUDA_ERROR_DEVICE_UNAVAILABLE": "another process holds the card exclusively: end it",
    "CUDA_ERROR_SYSTEM_NOT_READY": "start the service nvidia-fabricmanager",
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": "the driver was updated under a running kernel: restart the machine",
    "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE": "take the CUDA compat folder off LD_LIBRARY_PATH",
    "CUDA_ERROR_OPERATING_SYSTEM": "the device files in /dev/nvidia* may be missing or forbidden: check them",
}


class GpuUnusable(RuntimeError):
    """A driver is there but cannot be used; the message is one line that says what to do."""


@dataclass(frozen=True)
class Gpu:
    """A device as the driver numbers it.

    ``visible`` is what CUDA_VISIBLE_DEVICES must be for a child process to see this device alone; of the first of
    several that one page has together, all of them.
    """

    index: int
    name: str
    capability: tuple[int, int]
    memory_bytes: int
    visible: str

    @property
    def slug(self) -> str:
        """The name of this model's edition: "NVIDIA H200" is "nvidia-h200"."""
        return slug_of(self.name)


def find_gpus() -> list[Gpu]:
    """Return the devices a CUDA program would see here, in its order; an empty list where there are none.

    No driver library, no device, or CUDA_VISIBLE_DEVICES set to nothing (or -1) is an empty list.
    COURSE_FAKE_GPUS (JSON, a list of {"name", "capability", "memory_bytes"}, or {"error": "NAME"}) takes
    the driver's place in tests.

    Raises:
        GpuUnusable: a driver is there and fails.
    """
    fake = os.environ.get("COURSE_FAKE_GPUS")
    if fake:
        return _fake(fake)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and visible.strip() in ("", "-1"):
        return []
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return []
    return ask_driver(driver, visible)


def ask_driver(driver: ctypes.CDLL, visible: str | None = None) -> list[Gpu]:
    """Return the devices of a loaded libcuda; ``visible`` is the CUDA_VISIBLE_DEVICES it was loaded under.

    Raises:
        GpuUnusable: any answer but success, or "no device" on the first call.
    """
    status = driver.cuInit(0)
    if status == NO_DEVICE:
        return []
    _check(driver, status, "cuInit")
    count = ctypes.c_int()
    _check(driver, driver.cuDeviceGetCount(ctypes.byref(count)), "cuDeviceGetCount")
    names_in_environment = [part.strip() for part in visible.split(",")] if visible else []
    gpus = []
    for index in range(count.value):
        device = ctypes.c_int()
        _check(driver, driver.cuDeviceGet(ctypes.byref(device), index), "cuDeviceGet")
        name = ctypes.create_string_buffer(256)
        _check(driver, driver.cuDeviceGetName(name, len(name), device), "cuDeviceGetName")
        capability = []
        for attribute in (CAPABILITY_MAJOR, CAPABILITY_MINOR):
            number = ctypes.c_int()
            _check(
                driver,
                driver.cuDeviceGetAttribute(ctypes.byref(number), attribute, device),
                "cuDeviceGetAttribute",
            )
            capability.append(number.value)
        memory = ctypes.c_size_t()
        _check(driver, driver.cuDeviceTotalMem_v2(ctypes.byref(memory), device), "cuDeviceTotalMem")
        gpus.append(
            Gpu(
                index,
                name.value.decode(errors="replace"),
                (capability[0], capability[1]),
                memory.value,
                names_in_environment[index] if index < len(names_in_environment) else str(index),
            )
        )
    return gpus


def one_model(gpus: list[Gpu], said_by: str = "docs") -> list[Gpu]:
    """Return the devices of the first one's model: an edition belongs to one GPU model."""
    chosen = [gpu for gpu in gpus if gpu.name == gpus[0].name]
    for gpu in gpus:
        if gpu.name != gpus[0].name:
            left_out = f"GPU {gpu.index} ({gpu.name}) is left out"
            print(f"{said_by}: {left_out}: this edition is of the {gpus[0].name}", flush=True)
    return chosen


def _check(driver: ctypes.CDLL, status: int, call: str) -> None:
    if status == 0:
        return
    text = ctypes.c_char_p()
    known = driver.cuGetErrorName(status, ctypes.byref(text)) == 0 and text.value
    raise GpuUnusable(_line(call, text.value.decode() if known and text.value else "error", status))


def _line(call: str, name: str, status: int) -> str:
    advice = ADVICE.get(name, "see what nvidia-smi says; in a container, start it with access to the GPU")
    return (
        f"the NVIDIA driver is here but cannot be used: {call} answers {name} ({status}): {advice}; "
        "to build from the records all the same, set CUDA_VISIBLE_DEVICES=-1"
    )


def _fake(text: str) -> list[Gpu]:
    described = json.loads(text)
    if isinstance(described, dict):
        raise GpuUnusable(_line("cuInit", described["error"], described.get("status", 999)))
    return [
        Gpu(
            index,
            one["name"],
            tuple(one.get("capability", (9, 0))),  # type: ignore[arg-type]
            one.get("memory_bytes", 1 << 30),
            str(index),
        )
        for index, one in enumerate(described)
    ]
