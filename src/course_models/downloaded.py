"""Checkpoints, read: a folder with Hugging Face's `config.json` and safetensors, of the course or from elsewhere.

`hugging_face` says which models are known. Everything is looked at before memory is taken, but for the numbers
themselves: what does not fit is refused in one line that says what, where, and what to do.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from course_models.checkpoint import CONFIG, INDEX, TYPES, WEIGHTS, CheckpointRefused, Slot, slots
from course_models.config import Config
from course_models.hugging_face import bare, config_of, in_a_line, read_json
from course_models.model import Model, rope_frequencies

# A fine-tuning that was not worked into the weights lies in files of these names.
ADAPTER = ("adapter_config.json", "adapter_model.safetensors", "adapter_model.bin")
EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
# Old files carry RoPE's frequencies, which config.json says as well.
FREQUENCIES = re.compile(r"model\.(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq")
# Positions for which RoPE's tables are made without being asked: as many as the longest models of the family promise.
LONGEST = 131072


# --- reading ---------------------------------------------------------------------------------------


def load(
    folder: Path | str,
    *,
    dtype: torch.dtype = torch.bfloat16,
    device: torch.device | str = "cpu",
    max_tokens: int | None = None,
) -> Model:
    """Return the model that lies in a folder.

    Args:
        folder: with config.json, and either one *.safetensors or several with model.safetensors.index.json.
        dtype: what the weights become; the files hold bfloat16, float16 or float32.
        device: where they go.
        max_tokens: how many positions will be used, at most those that config.json promises, which are taken without
            it. RoPE's tables are as long as that: of a promise of a million they are gigabytes.
    Raises:
        CheckpointRefused: no such folder, another family of models, a file that is cut short, a tensor that is
            missing, not expected, of another shape or of a type that is not taken, a number that is not finite.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise CheckpointRefused(f"{folder}: no such folder: name the one that holds {CONFIG}")
    config = _within(config_of(read_json(folder / CONFIG), folder / CONFIG), max_tokens, folder / CONFIG)
    for name in ADAPTER:
        if (folder / name).exists():
            raise CheckpointRefused(
                f"{folder / name}: an adapter changes the weights and is not read: merge it into them, or move it away"
            )
    found = _tensors(folder)
    wanted = _wanted(config, found, folder)
    _look_at_names(config, wanted, found, folder)
    _look_at(wanted, found)
    _look_at_copies(config, found)
    model = Model.empty(config, dtype=dtype, device=device)
    for file in dict.fromkeys(found.values()):
        with _opened(file) as tensors, torch.no_grad():
            for name, slot in wanted.items():
                if found[name] == file:
                    slot.of(model).copy_(_finite(tensors.get_tensor(name), dtype, f"{file}: {name}"))
    return model


def _within(config: Config, max_tokens: int | None, where: Path) -> Config:
    """Return the config with as many positions as are asked for."""
    promised = config.max_tokens
    if max_tokens is None and promised > LONGEST:
        raise CheckpointRefused(
            f"{where}: promises {promised} positions, and RoPE's tables would be as long: "
            f"say how many you use, such as load(folder, max_tokens={LONGEST})"
        )
    if max_tokens is not None and not 1 <= max_tokens <= promised:
        raise CheckpointRefused(
            f"{where}: max_tokens: expected 1 to {promised}, which it promises, got {max_tokens}"
        )
    return config if max_tokens is None else dataclasses.replace(config, max_tokens=max_tokens)


def _wanted(config: Config, found: Mapping[str, Path], folder: Path) -> dict[str, Slot]:
    """Return the tensors of a model by their names; a config of a billion layers is not written out first."""
    at_odds = CheckpointRefused(
        f"{folder / CONFIG}: {config.layers} layers of {max(config.experts, 1)} blocks of {config.width} x "
        f"{config.hidden}, and the files hold {len(found)} tensors: check that both are of one model"
    )
    if config.layers * max(config.experts, 1) > len(found):
        raise at_odds
    try:
        return {slot.name: slot for slot in slots(config)}
    except RuntimeError:  # more bytes than can be counted
        raise at_odds from None


def _look_at_names(
    config: Config, wanted: Mapping[str, Slot], found: Mapping[str, Path], folder: Path
) -> None:
    """Refuse what is missing and what is not expected."""
    for name, file in found.items():
        known = name in wanted or FREQUENCIES.fullmatch(name) or (name == HEAD and config.tied)
        if not known:
            raise CheckpointRefused(
                f"{file}: {bare(name)} is not expected: the model of {CONFIG} has no such weight; "
                "check that both files are of one model"
            )
    missing = [name for name in wanted if name not in found]
    if missing == [HEAD]:
        raise CheckpointRefused(
            f"{folder}: {HEAD} is missing, and {CONFIG} does not say that the embedding serves as the head: where it "
            'does, write "tie_word_embeddings": true there; else get the model\'s files again'
        )
    for name in missing:
        raise CheckpointRefused(f"{folder}: {name} is missing: get the model's files again, all of them")


def _look_at(wanted: Mapping[str, Slot], found: Mapping[str, Path]) -> None:
    """Refuse shapes and types that do not fit, from the heads of the files alone."""
    for file in dict.fromkeys(found.values()):
        with _opened(file) as tensors:
            for name, slot in wanted.items():
                if found[name] != file:
                    continue
                piece = tensors.get_slice(name)
                shape, kind = tuple(piece.get_shape()), piece.get_dtype()
                if shape != slot.shape:
                    raise CheckpointRefused(
                        f"{file}: {name} has shape {shape}, {CONFIG} says {slot.shape}: "
                        "check that both files are of one model"
                    )
                if kind not in TYPES:
                    raise CheckpointRefused(
                        f"{file}: {name} is of type {kind}, expected {', '.join(TYPES)}: "
                        "get the model without quantisation"
                    )


def _look_at_copies(config: Config, found: Mapping[str, Path]) -> None:
    """Hold what the files say a second time against the first: a tied head, and RoPE's frequencies."""
    if (
        config.tied
        and HEAD in found
        and not torch.equal(*(_read(found, n).float() for n in (EMBEDDING, HEAD)))
    ):
        raise CheckpointRefused(
            f"{found[HEAD]}: {HEAD} differs from {EMBEDDING}, and {CONFIG} says tie_word_embeddings: where the head "
            "was trained by itself write false there, else take the tensor out"
        )
    for name in filter(FREQUENCIES.fullmatch, found):
        said, ours = _read(found, name), rope_frequencies(config)
        # As exact as their type: half of them keep three digits, and float16 no more than so many places.
        digits = max(1e-5, 4 * torch.finfo(said.dtype).eps) if said.is_floating_point() else 0.0
        if said.shape != ours.shape or not torch.allclose(said.double(), ours, rtol=digits, atol=2**-24):
            raise CheckpointRefused(
                f"{found[name]}: {name} holds other frequencies than those of RoPE in {CONFIG} (rope_theta "
                f"{config.rope_theta:g}): check that both files are of one model"
            )


def _read(found: Mapping[str, Path], name: str) -> Tensor:
    with _opened(found[name]) as tensors:
        return tensors.get_tensor(name)


def _finite(tensor: Tensor, dtype: torch.dtype, where: str) -> Tensor:
    """Return a tensor in another type, or refuse one that makes every logit NaN."""
    taken = tensor.to(dtype)
    if not taken.isfinite().all():
        told = "get it again" if not tensor.isfinite().all() else "load it in a type of a larger range"
        raise CheckpointRefused(f"{where} holds NaN or infinity as {dtype}: {told}")
    return taken


def _tensors(folder: Path) -> dict[str, Path]:
    """Return the file of every tensor, by the tensor's name."""
    index, whole = folder / INDEX, folder / WEIGHTS
    if index.is_file():
        names = _map_of(index)
        shards = [file for file in dict.fromkeys(names.values()) if file != whole and file.is_file()]
        if not whole.is_file() or whole in names.values():
            return _shards(index, names)
        if shards:
            raise CheckpointRefused(
                f"{folder}: holds {WEIGHTS}, and {shards[0].name}, which {INDEX} names: nobody can say which of them "
                "are the weights; move one kind away"
            )
        files = [whole]  # the index is of another cut and was left over
    else:
        files = sorted(folder.glob("*.safetensors"))
    if len(files) != 1:
        said = "no *.safetensors" if not files else f"{len(files)} *.safetensors and no {INDEX}"
        raise CheckpointRefused(
            f"{folder}: has {said}: get the model in that format, all of its files; pickled weights are not read"
        )
    with _opened(files[0]) as tensors:
        return dict.fromkeys(tensors.keys(), files[0])


def _map_of(index: Path) -> dict[str, Path]:
    """Return where an index says that each tensor lies."""
    listed = read_json(index).get("weight_map")
    if not isinstance(listed, dict) or not listed:
        raise CheckpointRefused(f"{index}: has no weight_map: get the model's files again")
    for name, file in listed.items():
        if not isinstance(file, str) or Path(file).name != file:
            raise CheckpointRefused(
                f"{index}: {bare(name)} lies in {in_a_line(file)}, expected a file of this folder"
            )
    return {name: index.parent / file for name, file in listed.items()}


def _shards(index: Path, names: dict[str, Path]) -> dict[str, Path]:
    """Return the map of an index, held against its files."""
    files = list(dict.fromkeys(names.values()))
    for file in files:
        if not file.is_file():
            raise CheckpointRefused(f"{file}: is missing, and {INDEX} names it: get the model's files again")
    for file in files:
        with _opened(file) as tensors:
            there = set(tensors.keys())
            for name in (name for name, where in names.items() if where == file and name not in there):
                raise CheckpointRefused(
                    f"{file}: {bare(name)} is missing, and {INDEX} says it is there: get the model's files "
                    "again"
                )
            for name in sorted(there):
                if name not in names:
                    raise CheckpointRefused(
                        f"{file}: {bare(name)} is not expected: {INDEX} does not name it; get the model's "
                        "files again"
                    )
                if names[name] != file and not torch.equal(tensors.get_tensor(name), _read(names, name)):
                    raise CheckpointRefused(
                        f"{file}: {bare(name)} has other numbers than in {names[name].name}, which {INDEX} "
                        "names: get the model's files again"
                    )
    return names


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    try:
        with safe_open(file, framework="pt") as tensors:
            yield tensors
    except (SafetensorError, OSError) as error:
        words = " ".join(str(error).split())
        raise CheckpointRefused(f"{file}: is cut short or no safetensors ({words}): get it again") from None
