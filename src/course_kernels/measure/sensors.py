"""The state of the card while it is measured: clocks, power, temperature, and what slows it down.

Read through NVML, the driver's management library, from the package nvidia-ml-py. Nothing here changes a setting.
"""

from __future__ import annotations

import threading
import time
from functools import lru_cache
from types import TracebackType
from typing import Any

# Bits of NVML's clock event reasons, in words. "idle" is no throttling: the clocks rest.
REASONS = {
    0x1: "idle",
    0x2: "clock setting",
    0x4: "power limit",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal",
    0x40: "hardware thermal",
    0x80: "power brake",
    0x100: "display clock setting",
}


class SensorsUnavailable(RuntimeError):
    """Clocks and power cannot be read here; the message is one line that says what to do."""


def snapshot() -> dict[str, Any]:
    """Return the state of torch's current device now.

    Returns:
        sm_mhz, memory_mhz, power_w, temperature_c (None where the card does not tell), and throttle, the
        reasons the clocks are below their maximum, in words.
    Raises:
        SensorsUnavailable: no nvidia-ml-py, or no NVML.
    """
    nvml, card = _card()
    return {
        "sm_mhz": _read(nvml, lambda: nvml.nvmlDeviceGetClockInfo(card, nvml.NVML_CLOCK_SM)),
        "memory_mhz": _read(nvml, lambda: nvml.nvmlDeviceGetClockInfo(card, nvml.NVML_CLOCK_MEM)),
        "power_w": _read(nvml, lambda: _power_w(nvml, card)),
        "temperature_c": _read(nvml, lambda: nvml.nvmlDeviceGetTemperature(card, nvml.NVML_TEMPERATURE_GPU)),
        "throttle": _read(nvml, lambda: throttle_words(_reasons(nvml, card))) or [],
    }


def throttle_words(bits: int) -> list[str]:
    """NVML's clock event reasons in words; an unknown bit by its number."""
    known = [word for bit, word in REASONS.items() if bits & bit]
    rest = bits & ~sum(REASONS)
    return known + ([f"reason {rest:#x}"] if rest else [])


class Sampler:
    """Records power and clocks in the background while a block runs.

        with Sampler() as sampler:
            work()
        record(limit=trace(sampler.columns))

    Attributes:
        columns: "t_s" since the block began, "power_w", "sm_mhz", "temperature_c"; equally long. A column that
            the card does not tell is gone when the block ends.
    """

    def __init__(self, period_s: float = 0.02) -> None:
        self.period_s = period_s
        self.columns: dict[str, list[Any]] = {"t_s": [], "power_w": [], "sm_mhz": [], "temperature_c": []}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="power sampler", daemon=True)
        self._failure: Exception | None = None

    def __enter__(self) -> Sampler:
        _card()  # a missing library is an error here, not in the thread
        self._start = time.perf_counter()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self.columns = {name: column for name, column in self.columns.items() if None not in column}
        if self._failure is not None and error is None:
            raise SensorsUnavailable(f"the card stopped telling its power and clocks: {self._failure}")

    def _run(self) -> None:
        try:
            while True:
                t, now = time.perf_counter() - self._start, snapshot()
                self.columns["t_s"].append(round(t, 4))
                for name in ("power_w", "sm_mhz", "temperature_c"):
                    self.columns[name].append(now[name])
                if self._stop.wait(self.period_s):
                    return
        except Exception as failure:  # handed to the thread that waits for us
            self._failure = failure


@lru_cache(maxsize=1)
def _library() -> Any:
    try:
        import pynvml
    except ImportError:
        raise SensorsUnavailable(
            "clocks and power cannot be read: the package nvidia-ml-py is missing; pip install nvidia-ml-py"
        ) from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise SensorsUnavailable(
            f"clocks and power cannot be read: NVML does not start ({error}); check that nvidia-smi works"
        ) from None
    return pynvml


@lru_cache(maxsize=8)
def _handle(device: int) -> Any:
    """NVML's handle of a torch device: found by UUID, since the two libraries count cards differently."""
    import torch

    nvml = _library()
    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    try:
        if uuid is None:
            return nvml.nvmlDeviceGetHandleByIndex(device)
        return nvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}".encode())
    except nvml.NVMLError as error:
        raise SensorsUnavailable(
            f"clocks and power cannot be read: NVML does not know this card ({error})"
        ) from None


def _card() -> tuple[Any, Any]:
    import torch

    nvml = _library()
    return nvml, _handle(torch.cuda.current_device())


def _read(nvml: Any, reading: Any) -> Any:
    try:
        return reading()
    except nvml.NVMLError:  # this card does not tell
        return None


def _power_w(nvml: Any, card: Any) -> float:
    """Power now; on cards that average it over a second, the field value is the instant one."""
    instant = getattr(nvml, "NVML_FI_DEV_POWER_INSTANT", None)
    if instant is not None:
        value = nvml.nvmlDeviceGetFieldValues(card, [instant])[0]
        if value.nvmlReturn == nvml.NVML_SUCCESS and value.value.uiVal:
            return value.value.uiVal / 1e3
    return nvml.nvmlDeviceGetPowerUsage(card) / 1e3


def _reasons(nvml: Any, card: Any) -> int:
    ask = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
    if ask is not None:
        try:
            return int(ask(card))
        except nvml.NVMLError:  # a driver from before the name changed
            pass
    return int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(card))
