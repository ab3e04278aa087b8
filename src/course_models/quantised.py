"""Quantised checkpoints, read: three libraries' names for the same numbers, for models of the Llama family.

    model = quantised.load(folder)

The weights become what their codes stand for, in bfloat16 or another type; nothing here multiplies with four bits. What
a library writes for a matrix `X.weight` of M rows and K columns:

    NVFP4   ModelOpt             X.weight          uint8 (M, K/2)   two codes a byte, the first in the low four bits
                                 X.weight_scale    E4M3  (M, K/16)
                                 X.weight_scale_2  float32 ()       number = code * scale * this
            compressed-tensors   X.weight_packed, X.weight_scale    the same
                                 X.weight_global_scale  float32 (1,)  number = code * (scale / this)
            torchao              X._weight_qdata, X._weight_scale   the same, its scales in cuBLAS' order: `_plain`
                                 X._weight_per_tensor_scale  float32 ()  number = code * scale * this; may be absent: 1
    MXFP4   the same names without a second scale, scales in E8M0 (M, K/32): as uint8, in torchao as float8_e8m0fnu
    FP8     X.weight, in torchao X._weight_qdata, in E4M3, and a scale of the tensor or of each row
    INT4    compressed-tensors   X.weight_packed int32 (M, K/8), codes 0 to 15 for -8 to 7, the first in the low bits;
                                 X.weight_scale (M, K/group), X.weight_shape

So compressed-tensors alone divides by the second scale: it keeps 2688 / largest, the others largest / 2688. Read the
wrong way, a model is wrong by a factor of millions, without a word; such a scale is refused here.

Scales of activations and of the cache are known and not used: both stay as they are. What else would change the numbers
of a model (zero points, scales before a product, rotations) is refused by name.

Source  the code of nvidia-modelopt 0.47.0 (torch/export/unified_export_hf.py, quant_utils.py, convert_hf_config.py),
        compressed-tensors 0.20.1 (compressors/, quantization/lifecycle/forward_helpers.py), torchao 0.18.0
        (prototype/safetensors/safetensors_support.py, prototype/mx_formats/)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from course_kernels.nvfp4 import formats
from course_kernels.nvfp4.formats import E2M1
from course_models import downloaded
from course_models.checkpoint import CONFIG, CheckpointRefused, Slot
from course_models.downloaded import (
    EMBEDDING,
    HEAD,
    _finite,
    _look_at,
    _look_at_copies,
    _look_at_names,
    _opened,
    _read,
    _tensors,
    _wanted,
    _within,
)
from course_models.hugging_face import QUANTISED, bare, config_of, in_a_line, read_json
from course_models.model import Model

MODELOPT, COMPRESSED, TORCHAO = "modelopt", "compressed-tensors", "torchao"
BESIDE = "hf_quant_config.json"  # ModelOpt writes it, too; its first versions wrote it alone
BETWEEN = ("BF16", "F16", "F32")  # types of a scale that is no code


@dataclass(frozen=True)
class Layout:
    """Names, types and blocks of a rounded matrix in a file.

    Attributes:
        form: the number format.
        numbers, kind: what the tensor of the codes is called behind the module's name, and its type in safetensors.
        scale, scale_kinds: the same of the scales; one of several types.
        block: numbers of a row that share a scale; 0 where the whole matrix or each row has one, -1 where the shape
            says it.
        second: what the tensor's own scale is called; "" without one.
        divides: whether the scales are divided by it.
        optional: whether it may be absent.
    """

    form: str
    numbers: str
    kind: str
    scale: str
    scale_kinds: tuple[str, ...]
    block: int
    second: str = ""
    divides: bool = False
    optional: bool = False


LAYOUTS = {
    MODELOPT: (
        Layout("NVFP4", "weight", "U8", "weight_scale", ("F8_E4M3",), 16, "weight_scale_2"),
        Layout("MXFP4", "weight", "U8", "weight_scale", ("U8",), 32),
        Layout("FP8", "weight", "F8_E4M3", "weight_scale", BETWEEN, 0),
    ),
    COMPRESSED: (
        Layout(
            *("NVFP4", "weight_packed", "U8", "weight_scale", ("F8_E4M3",), 16, "weight_global_scale"),
            divides=True,
        ),
        Layout("MXFP4", "weight_packed", "U8", "weight_scale", ("U8",), 32),
        Layout("FP8", "weight", "F8_E4M3", "weight_scale", BETWEEN, 0),
        Layout("INT4", "weight_packed", "I32", "weight_scale", BETWEEN, -1),
    ),
    TORCHAO: (
        Layout(
            *("NVFP4", "_weight_qdata", "U8", "_weight_scale", ("F8_E4M3",), 16, "_weight_per_tensor_scale"),
            optional=True,
        ),
        Layout("MXFP4", "_weight_qdata", "U8", "_weight_scale", ("F8_E8M0",), 32),
        Layout("FP8", "_weight_qdata", "F8_E4M3", "_weight_scale", BETWEEN, 0),
    ),
}
# What each library calls its formats.
CALLED = {
    MODELOPT: {
        "NVFP4": "NVFP4",
        "W4A16_NVFP4": "NVFP4",
        "W4A8_NVFP4_FP8": "NVFP4",
        "W4A8_MXFP4_FP8": "MXFP4",
        "mxfp4": "MXFP4",
        "FP8": "FP8",
        "FP8_PER_CHANNEL_PER_TOKEN": "FP8",
    },
    COMPRESSED: {
        "nvfp4-pack-quantized": "NVFP4",
        "mxfp4-pack-quantized": "MXFP4",
        "float-quantized": "FP8",
        "pack-quantized": "INT4",
    },
    TORCHAO: {"NVFP4Tensor": "NVFP4", "MXTensor": "MXFP4", "Float8Tensor": "FP8"},
}
# Tensors that are known and not used: scales of activations, of keys and values; a shape that config.json says as well.
UNUSED = {
    MODELOPT: frozenset({"input_scale", "k_scale", "v_scale"}),
    COMPRESSED: frozenset({"input_scale", "input_global_scale", "k_scale", "v_scale", "weight_shape"}),
    TORCHAO: frozenset({"_weight_act_per_tensor_scale"}),
}
# The parts that a library writes beside plain weights.
PARTS = {
    maker: UNUSED[maker]
    | {part for layout in layouts for part in (layout.numbers, layout.scale, layout.second)} - {"", "weight"}
    for maker, layouts in LAYOUTS.items()
}
# Keys of compressed-tensors that change what a model computes, unless they are empty.
CHANGING = ("transform_config", "sparsity_config", "moe_sparsity_config")


def load(
    folder: Path | str,
    *,
    dtype: torch.dtype = torch.bfloat16,
    device: torch.device | str = "cpu",
    max_tokens: int | None = None,
) -> Model:
    """Return the model that lies in a folder, quantised or not: arguments as for `downloaded.load`.

    Raises:
        CheckpointRefused: what `downloaded.load` refuses; names of two libraries or weights of two formats; a format
            that is not read; a part of a weight that is missing, or of another shape or type; a scale that is no number
            above zero, or a second scale that is inverted.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise CheckpointRefused(f"{folder}: no such folder: name the one that holds {CONFIG}")
    said = read_json(folder / CONFIG)
    found = _tensors(folder)
    maker, how = _maker_of(said, folder)
    _look_for_a_mixture(maker, found)
    if not maker:
        return downloaded.load(folder, dtype=dtype, device=device, max_tokens=max_tokens)

    plain_keys = {key: value for key, value in said.items() if key not in QUANTISED}
    config = _within(config_of(plain_keys, folder / CONFIG), max_tokens, folder / CONFIG)
    notes = _notes(found) if maker == TORCHAO else {}
    layout = _layout_of(maker, how, notes, folder)
    wanted = _wanted(config, found, folder)
    rounded = {name: slot for name, slot in wanted.items() if _is_rounded(name, layout, found)}
    if not rounded:
        raise CheckpointRefused(
            f"{folder}: {CONFIG} says {maker} and {layout.form}, and no weight is of that form: check that both are of "
            "one model"
        )
    for name in rounded:
        if layout.numbers != "weight" and name in found:
            raise CheckpointRefused(
                f"{found[name]}: {name} is there plain and, as {_beside(name, layout.numbers)}, quantised: a mixture "
                "is not read, take out the wrong one"
            )
        if maker == TORCHAO and name not in notes:
            raise CheckpointRefused(
                f"{found[_any_of(name, found)]}: its head does not say how {name} is quantised: get the file again"
            )
    parts = {part for name in rounded for part in _parts(name, layout, maker) if part in found}
    as_plain = {name: file for name, file in found.items() if name not in parts}
    as_plain |= {name: found[_any_of(name, found)] for name in rounded}
    _look_at_names(config, wanted, as_plain, folder)
    _look_at({name: slot for name, slot in wanted.items() if name not in rounded}, as_plain)
    if config.tied and HEAD in as_plain and EMBEDDING in rounded:
        raise CheckpointRefused(
            f"{folder}: {EMBEDDING} is quantised and {HEAD} is there too, and {CONFIG} says tie_word_embeddings: write "
            "false there where the head is one of its own, else take the tensor out"
        )
    _look_at_copies(config, as_plain)

    model = Model.empty(config, dtype=dtype, device=device)
    with torch.no_grad():
        for name, slot in wanted.items():
            weight = _decoded(name, slot, layout, found, notes) if name in rounded else _read(found, name)
            slot.of(model).copy_(_finite(weight, dtype, f"{as_plain[name]}: {name}"))
    return model


# --- whose it is -------------------------------------------------------------------------------------


def _maker_of(said: Mapping[str, Any], folder: Path) -> tuple[str, dict[str, Any]]:
    """Return which library wrote the checkpoint and what it says of it; "" where nothing is quantised."""
    keys = [key for key in QUANTISED if said.get(key) is not None]
    beside = folder / BESIDE
    if not keys:
        if not beside.exists():
            return "", {}
        inner = read_json(beside).get("quantization")
        if not isinstance(inner, dict):
            raise CheckpointRefused(f"{beside}: has no quantization: get the model's files again")
        return MODELOPT, inner
    how = said[keys[0]]
    if len(keys) > 1 or not isinstance(how, dict):
        raise CheckpointRefused(
            f"{folder / CONFIG}: {keys[-1]} is {in_a_line(said[keys[-1]])}: expected one object that says how the "
            "weights are quantised"
        )
    maker = how.get("quant_method")
    if maker not in LAYOUTS:
        raise CheckpointRefused(
            f"{folder / CONFIG}: quant_method is {in_a_line(maker)}: only {', '.join(LAYOUTS)} are read, get the model "
            "in one of those forms or without quantisation"
        )
    if beside.exists() and maker != MODELOPT:
        raise CheckpointRefused(
            f"{folder}: {CONFIG} says {maker}, and {BESIDE} is of {MODELOPT}: a mixture is not read, take the files of "
            "one model"
        )
    return maker, how


def _look_for_a_mixture(maker: str, found: Mapping[str, Path]) -> None:
    """Refuse the parts of another library than the one that config.json names, or of any where it names none."""
    known = PARTS.get(maker, frozenset())
    for name, file in found.items():
        part = name.rpartition(".")[2]
        owners = [other for other, parts in PARTS.items() if part in parts]
        if owners and part not in known:
            says = (
                f"says {maker}: a mixture is not read" if maker else "does not say how weights are quantised"
            )
            raise CheckpointRefused(
                f"{file}: {bare(name)} is of {' or '.join(owners)}, and {CONFIG} {says}; take the files of one model"
            )


def _layout_of(
    maker: str, how: Mapping[str, Any], notes: Mapping[str, dict[str, Any]], folder: Path
) -> Layout:
    """Return how the weights of a checkpoint are written: one layout for all of them."""
    if maker == TORCHAO:
        kinds = sorted({str(note.get("_type")) for note in notes.values()})
        if len(kinds) > 1:
            raise CheckpointRefused(
                f"{folder}: its weights are of {' and '.join(map(bare, kinds))}: a mixture is not read, get the model "
                "in one format"
            )
        key, called = "_type", kinds[0] if kinds else None
    else:
        key = "quant_algo" if maker == MODELOPT else "format"
        called = how.get(key)
    for changing in CHANGING if maker == COMPRESSED else ():
        if how.get(changing):
            raise CheckpointRefused(
                f"{folder / CONFIG}: {changing} is {in_a_line(how[changing])}: it changes what the model computes and "
                "is not read, get the model without"
            )
    form = CALLED[maker].get(called) if isinstance(called, str) else None
    for layout in LAYOUTS[maker]:
        if layout.form == form:
            return layout
    raise CheckpointRefused(
        f"{folder}: {key} of {maker} is {in_a_line(called)}: only {', '.join(CALLED[maker])} are read, get the model "
        "in one of those forms or without quantisation"
    )


def _notes(found: Mapping[str, Path]) -> dict[str, dict[str, Any]]:
    """Return what torchao writes into the heads of the files: by a weight's name its type and attributes."""
    notes: dict[str, dict[str, Any]] = {}
    for file in dict.fromkeys(found.values()):
        with _opened(file) as tensors:
            for name, text in (tensors.metadata() or {}).items():
                try:
                    note = json.loads(text)
                except (ValueError, RecursionError):
                    continue  # "format" says "pt"
                if isinstance(note, dict) and note.get("_type") != "Tensor" and "_data" in note:
                    notes[name] = note
    return notes


# --- the parts of a weight ---------------------------------------------------------------------------


def _beside(name: str, part: str) -> str:
    """Return the name of a part of `X.weight`."""
    return f"{name.rpartition('.')[0]}.{part}"


def _parts(name: str, layout: Layout, maker: str) -> Iterator[str]:
    for part in (layout.numbers, layout.scale, layout.second, *sorted(UNUSED[maker])):
        if part:
            yield _beside(name, part)


def _is_rounded(name: str, layout: Layout, found: Mapping[str, Path]) -> bool:
    """Return whether a weight has any part that a plain one does not have."""
    own = {layout.numbers, layout.scale, layout.second} - {"", "weight"}
    return any(_beside(name, part) in found for part in own)


def _part(name: str, part: str, kinds: tuple[str, ...], found: Mapping[str, Path]) -> Tensor:
    """Return a part of a weight, or refuse a missing one and one of another type."""
    whole = _beside(name, part)
    if whole not in found:
        raise CheckpointRefused(
            f"{found[_any_of(name, found)]}: {whole} is missing: get the model's files again, all of them"
        )
    with _opened(found[whole]) as tensors:
        kind = tensors.get_slice(whole).get_dtype()
        if kind not in kinds:
            raise CheckpointRefused(
                f"{found[whole]}: {whole} is of type {kind}, expected {', '.join(kinds)}: a mixture of formats is not "
                "read"
            )
        tensor: Tensor = tensors.get_tensor(whole)
        return tensor


def _any_of(name: str, found: Mapping[str, Path]) -> str:
    """Return the name of one part of a weight, whichever is there."""
    module = name.rpartition(".")[0]
    return next(other for other in found if other.rpartition(".")[0] == module)


def _decoded(
    name: str, slot: Slot, layout: Layout, found: Mapping[str, Path], notes: Mapping[str, dict[str, Any]]
) -> Tensor:
    """Return what the codes of a weight stand for: float32, of the slot's shape."""
    M, K = slot.shape
    numbers = _part(name, layout.numbers, (layout.kind,), found)
    per_word = {"U8": 2, "I32": 8, "F8_E4M3": 1}[layout.kind]
    _check_shape(name, layout.numbers, numbers, [(M, K // per_word)], found, K % per_word)
    scale = _part(name, layout.scale, layout.scale_kinds, found)
    if layout.block > 0:
        note = notes.get(name, {}).get("_data", {})
        if note.get("is_swizzled_scales"):
            padded = (-(-M // 128) * 32, -(-K // (4 * layout.block)) * 16)
            _check_shape(name, layout.scale, scale, [padded], found, K % layout.block)
            scale = _plain(scale, M, K // layout.block)
        _check_shape(name, layout.scale, scale, [(M, K // layout.block)], found, K % layout.block)
    elif layout.block == 0:
        _check_shape(name, layout.scale, scale, [(), (1,), (1, 1), (M,), (M, 1)], found)
        scale = scale.reshape(-1, 1)
    else:
        groups = scale.shape[-1] if scale.dim() == 2 else 0
        _check_shape(name, layout.scale, scale, [(M, groups)], found, not groups or K % groups)

    step = _scales(scale)
    if not (step.isfinite() & (step >= 0)).all():
        raise CheckpointRefused(
            f"{found[_beside(name, layout.scale)]}: {_beside(name, layout.scale)} holds NaN, infinity or numbers below "
            "zero: get it again"
        )
    if layout.second and not (layout.optional and _beside(name, layout.second) not in found):
        second = _second(name, layout, found)
        step = step / second if layout.divides else step * second
    # In the order of `blocks.decode`: the scales first. A scale of the whole tensor is one for every row.
    blocks = _values(numbers, layout.kind).reshape(M, step.shape[1], -1)
    return (blocks * step[:, :, None]).reshape(M, K)


def _second(name: str, layout: Layout, found: Mapping[str, Path]) -> Tensor:
    """Return a tensor's own scale, or refuse one that cannot be meant."""
    whole = _beside(name, layout.second)
    second = _part(name, layout.second, ("F32",), found)
    _check_shape(name, layout.second, second, [(), (1,)], found)
    second = second.reshape(())
    if not (second.isfinite() and second > 0):
        raise CheckpointRefused(
            f"{found[whole]}: {whole} is {float(second):g}: expected a number above zero, get it again"
        )
    # The largest weight is 2688 times it, or 2688 divided by it: no model has weights of thousands.
    by = "divided" if layout.divides else "multiplied"
    if second < 1 if layout.divides else second > 1:
        raise CheckpointRefused(
            f"{found[whole]}: {whole} is {float(second):g}, and scales are {by} by it: "
            "it is the inverse of what this form keeps, or of another form"
        )
    return second


def _check_shape(
    name: str,
    part: str,
    tensor: Tensor,
    shapes: list[tuple[int, ...]],
    found: Mapping[str, Path],
    remainder: int | bool = 0,
) -> None:
    if tuple(tensor.shape) not in shapes or remainder:
        whole = _beside(name, part)
        raise CheckpointRefused(
            f"{found[whole]}: {whole} has shape {tuple(tensor.shape)}, expected "
            f"{' or '.join(map(str, shapes))} for the sizes in {CONFIG}: check that both are of one model"
        )


def _scales(scale: Tensor) -> Tensor:
    """Return scales in float32; bytes are codes of E8M0."""
    return (scale.view(torch.float8_e8m0fnu) if scale.dtype == torch.uint8 else scale).float()


def _values(numbers: Tensor, kind: str) -> Tensor:
    """Return what codes stand for without their scales: float32, (M, K)."""
    if kind == "F8_E4M3":
        return numbers.float()
    if kind == "I32":
        nibbles = numbers[..., None] >> torch.arange(0, 32, 4, dtype=torch.int32) & 15
        return (nibbles.flatten(-2) - 8).float()
    of_codes = torch.tensor(formats.values(E2M1), dtype=torch.float32)
    codes = torch.stack([numbers & 15, numbers >> 4], dim=-1).flatten(-2)
    return of_codes[codes.long()]


def _plain(scale: Tensor, rows: int, columns: int) -> Tensor:
    """Return scales row by row that lie as cuBLAS has them: (rows, columns).

    Tiles of 128 rows and 4 columns, padded with zeros, one tile after the other along the row; in a tile of 512 bytes
    row r and column c have place 16 * (r % 32) + 4 * (r // 32) + c.
    """
    tiles = scale.reshape(-(-rows // 128), -(-columns // 4), 32, 4, 4)
    return tiles.permute(0, 3, 2, 1, 4).reshape(tiles.shape[0] * 128, -1)[:rows, :columns].contiguous()
