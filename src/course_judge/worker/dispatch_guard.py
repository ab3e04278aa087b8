"""Tensors in a student's hands: which operators they call, and whether they stay inside their memory."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import course_kernels
from course_judge.protocol.layout import GUARD_BYTES
from course_judge.protocol.tensors import touched
from course_judge.worker.forbidden_calls import Watch

# Two fills that no kernel stores by accident. They differ, so that copying one into the other shows.
INPUT_FILL, OUTPUT_FILL = 0x4B, 0xFF  # the second is NaN in every floating-point type


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ALLOCATIONS = _words(
    "empty empty_like empty_strided empty_permuted new_empty new_empty_strided zeros zeros_like new_zeros "
    "ones ones_like new_ones full full_like new_full"
)
# Room, and other ways to look at it. Nothing here reads or works out a number.
HOUSE_LIST = ALLOCATIONS | _words(
    "fill_ fill zero_ arange view _unsafe_view _reshape_alias reshape view_as slice select narrow squeeze unsqueeze "
    "expand as_strided t transpose permute detach alias unbind split split_with_sizes chunk lift_fresh "
    "sym_size sym_stride sym_numel sym_storage_offset is_same_size"
)
# Ways out of torch that no operator shows.
WAYS_OUT = frozenset({"numpy", "__array__", "tolist", "__dlpack__"})

_TORCH = str(Path(torch.__file__).parent)
_TRUSTED = [str(Path(course_kernels.__file__).parent / "cuda")]
_UNGUARDED: list[str] = []  # of the trusted, those whose memory is their own affair


def trust(path: Path | str, *, guarded: bool) -> None:
    """Trust files below a path: operators called from there, Triton's or our launcher's, are not the student's doing.

    Args:
        guarded: give tensors made there guard zones too.
    """
    for trusted in (_TRUSTED,) if guarded else (_TRUSTED, _UNGUARDED):
        if str(path) not in trusted:
            trusted.append(str(path))


def _caller() -> str:
    """Return the file of the innermost frame outside of torch and of this file."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((_TORCH, "<")) and name != __file__ and "contextlib" not in name:
            return name
        frame = frame.f_back  # type: ignore[assignment]
    return ""


def _trusted(caller: str) -> bool:
    return caller.startswith(tuple(_TRUSTED))


class Zones:
    """Memory around tensors that nobody may store to."""

    def __init__(self) -> None:
        self._guarded: list[tuple[str, int, torch.Tensor, torch.Tensor]] = []

    def forget(self) -> None:
        """Let go of all tensors."""
        self._guarded.clear()

    def around(self, tensor: torch.Tensor, name: str, fill: int) -> torch.Tensor:
        """Return the same values in memory that has guard zones.

        A tensor of a strange layout is given back as it is.
        """
        if not tensor.is_contiguous():
            return tensor
        size = tensor.numel() * tensor.element_size()
        buffer = torch.full((size + 2 * GUARD_BYTES,), fill, dtype=torch.uint8, device=tensor.device)
        inside = buffer[GUARD_BYTES : GUARD_BYTES + size].view(tensor.dtype).view(tensor.shape)
        inside.copy_(tensor)
        self._guarded.append((name, fill, buffer, inside))
        return inside

    def broken(self) -> str:
        """Describe stores past an end in words; empty if there are none."""
        for name, fill, buffer, inside in self._guarded:
            for where, zone in (
                ("past the end", buffer[-GUARD_BYTES:]),
                ("before the start", buffer[:GUARD_BYTES]),
            ):
                if count := touched(zone, fill, inside.element_size()):
                    return f"{count} element{'s' * (count > 1)} stored {where} of {name}"
        return ""


class _Operators(TorchDispatchMode):
    def __init__(self, watch: Watch, zones: Zones, allow: Iterable[str], refuse: Iterable[str]) -> None:
        super().__init__()
        self._watch, self._zones = watch, zones
        plain = {name.removeprefix("aten.") for name in allow}
        self._allowed = (HOUSE_LIST | plain) - {name.removeprefix("aten.") for name in refuse}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        namespace, name = func._schema.name.split("::")
        caller = _caller()
        ours = _trusted(caller)
        if not ours and (namespace != "aten" or name not in self._allowed):
            shown = f"torch.{name.rstrip('_')}" if namespace == "aten" else f"torch.ops.{namespace}.{name}"
            self._watch.refuse(f"calls torch's own operator: {shown} ({func})")
        result = func(*args, **(kwargs or {}))
        if (
            namespace == "aten"
            and name in ALLOCATIONS
            and isinstance(result, torch.Tensor)
            and result.numel()
        ):
            if caller.startswith(tuple(_UNGUARDED)):
                return result
            if name.startswith(("empty", "new_empty")) and result.dtype.is_floating_point:
                result.fill_(float("nan"))  # what is never written shows, in every call
            return self._zones.around(result, "an output", OUTPUT_FILL)
        return result


class _Methods(TorchFunctionMode):
    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in WAYS_OUT and not _trusted(_caller()):
            self._watch.refuse(f"takes the numbers out of torch with Tensor.{name}()")
        return func(*args, **(kwargs or {}))


def watched(
    function: Callable[..., Any], watch: Watch, zones: Zones, allow: Iterable[str], refuse: Iterable[str]
) -> Callable[..., Any]:
    """Return the student's function, with everything it calls looked at."""

    def call(*inputs: Any, **options: Any) -> Any:
        with _Operators(watch, zones, allow, refuse), _Methods(watch), watch.watching():
            return function(*inputs, **options)

    return call
