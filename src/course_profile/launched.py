"""Triton kernels that a call launches, as the compiler made them. Only ever in a process of its own.

Without a card nothing is launched: tensors that hold nothing say that they are on an H100, a stand-in for the driver
says so too, and every launch ends when its kernel is compiled.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from course_kernels.rungs import Compiled

CAPABILITY = 90  # of the card that is compiled for; Triton makes sm_90a of it
H100 = SimpleNamespace(
    major=9, minor=0, multi_processor_count=132, name="H100", total_memory=80 * 10**9, warp_size=32
)  # what a launcher may ask of its card


class _NoCard:
    """Driver of a card that is not here: it knows what to compile for, and nothing else."""

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", CAPABILITY, 32)


class _AsOnACard(TorchFunctionMode):
    """Tensors without memory that say they are on a card; those that are made on one hold nothing either."""

    def __torch_function__(
        self, called: Any, types: Any, arguments: Any = (), keywords: dict[str, Any] | None = None
    ) -> Any:
        keywords = dict(keywords or {})
        if called == torch.Tensor.is_cuda.__get__:
            return True
        if called == torch.Tensor.device.__get__:
            return torch.device("cuda", 0)
        if called == torch.Tensor.get_device:
            return 0
        if called == torch.Tensor.cuda:
            return arguments[0]
        if _is_a_card(keywords.get("device")):
            keywords["device"] = "meta"
        if called in (torch.randn, torch.rand):
            called = torch.empty  # to draw what is not kept would load a second's worth of torch
            keywords.pop("generator", None)
        arguments = tuple("meta" if _is_a_card(one) else one for one in arguments)
        return called(*arguments, **keywords)


def _is_a_card(device: object) -> bool:
    return str(device).startswith("cuda") if isinstance(device, str | torch.device) else False


@contextlib.contextmanager
def as_on_a_card() -> Iterator[None]:
    """Let a launcher believe that it has an H100, for as long as it looks at sizes and places and at no number."""
    answers: dict[str, Callable[..., Any]] = {
        "is_available": lambda: True,
        "current_device": lambda: 0,
        "device_count": lambda: 1,
        "get_device_capability": lambda *_: (H100.major, H100.minor),
        "get_device_properties": lambda *_: H100,
        "get_device_name": lambda *_: H100.name,
        "synchronize": lambda *_: None,
    }
    real = {name: getattr(torch.cuda, name) for name in answers}
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
    try:
        with _AsOnACard():
            yield
    finally:
        for name, function in real.items():
            setattr(torch.cuda, name, function)


def ready(on_the_card: bool) -> None:
    """Have Triton compile without a card, before a file is loaded; autotuned kernels take their first configuration."""
    if on_the_card:
        return
    from triton.runtime import driver

    from course_judge.worker.interpreter import take_the_first_configuration

    driver.set_active(_NoCard())
    take_the_first_configuration()


@contextlib.contextmanager
def noted(on_the_card: bool) -> Iterator[dict[str, Compiled]]:
    """Yield a table that fills with every kernel launched meanwhile, by its name; of several launches the last."""
    from triton.runtime import JITFunction

    found: dict[str, Compiled] = {}
    run = JITFunction.run

    def run_noted(kernel: Any, *arguments: Any, grid: Any, warmup: bool, **keywords: Any) -> Any:
        made = run(kernel, *arguments, grid=grid, warmup=warmup or not on_the_card, **keywords)
        if made is not None:
            found.pop(made.metadata.name, None)
            found[made.metadata.name] = Compiled(
                made.asm["cubin"], made.asm["ptx"], shared_bytes=made.metadata.shared
            )
        return made

    JITFunction.run = run_noted
    try:
        yield found
    finally:
        JITFunction.run = run
