"""Checkpoints: a folder with Hugging Face's `config.json` and safetensors, read and written.

For the small models that the course trains and reads back: `pretrained` keeps them so. A model from elsewhere is read
by `downloaded`, which takes the same format, knows every key of it and looks at every number. The pages that were
measured with this file are measured with that one next, and then it goes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from course_models.config import Config, RopeScaling
from course_models.model import Model

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
FAMILIES = ("llama", "mixtral")
# The types of weights that are taken, as safetensors spells them; eight bits and fewer come with scales of their own.
TYPES = ("BF16", "F16", "F32")
# Old files carry RoPE's frequencies, which config.json says as well.
LEFT_ALONE = re.compile(r".*\.rotary_emb\.inv_freq")


class CheckpointRefused(ValueError):
    """A folder that is no checkpoint we can read; one line."""


# --- reading ---------------------------------------------------------------------------------------


def load(
    folder: Path | str, *, dtype: torch.dtype = torch.bfloat16, device: torch.device | str = "cpu"
) -> Model:
    """Return the model that lies in a folder.

    Args:
        folder: with config.json, and either one *.safetensors or several with model.safetensors.index.json.
        dtype: what the weights become; the files hold bfloat16, float16 or float32.
        device: where they go.
    Raises:
        CheckpointRefused: no such folder, another family of models, a file that is cut short, a tensor that is
            missing, not expected, of another shape or of a type that is not taken.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise CheckpointRefused(f"{folder}: no such folder: name the one that holds {CONFIG}")
    config = config_of(_json(folder / CONFIG), folder / CONFIG)
    wanted = {slot.name: slot for slot in slots(config)}
    found = _tensors(folder)
    for name, file in found.items():
        if name not in wanted and not LEFT_ALONE.fullmatch(name):
            raise CheckpointRefused(
                f"{file}: {name} is not expected: the model of {CONFIG} has no such weight; "
                "check that both files are of one model"
            )
    for name in wanted:
        if name not in found:
            raise CheckpointRefused(f"{folder}: {name} is missing: get the model's files again, all of them")
    _look_at(wanted, found)
    model = Model.empty(config, dtype=dtype, device=device)
    for file in dict.fromkeys(found.values()):
        with _opened(file) as tensors, torch.no_grad():
            for name, slot in wanted.items():
                if found[name] == file:
                    slot.of(model).copy_(tensors.get_tensor(name))
    return model


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


def _tensors(folder: Path) -> dict[str, Path]:
    """Return the file of every tensor, by the tensor's name."""
    index = folder / INDEX
    if index.is_file():
        listed = _json(index).get("weight_map")
        if not isinstance(listed, dict) or not listed:
            raise CheckpointRefused(f"{index}: has no weight_map: get the model's files again")
        names = {}
        for name, file in listed.items():
            if not isinstance(file, str) or Path(file).name != file:
                raise CheckpointRefused(f"{index}: {name} lies in {file!r}, expected a file of this folder")
            if not (folder / file).is_file():
                raise CheckpointRefused(
                    f"{folder / file}: is missing, and {INDEX} names it: get the model's files again"
                )
            names[name] = folder / file
        for file in dict.fromkeys(names.values()):
            with _opened(file) as tensors:
                there = set(tensors.keys())
            for name in (name for name, where in names.items() if where == file and name not in there):
                raise CheckpointRefused(f"{file}: {name} is missing, and {INDEX} says it is there")
            for name in sorted(there - set(names)):
                raise CheckpointRefused(f"{file}: {name} is not expected: {INDEX} does not name it")
        return names
    files = sorted(folder.glob("*.safetensors"))
    if len(files) != 1:
        said = "no *.safetensors" if not files else f"{len(files)} *.safetensors and no {INDEX}"
        raise CheckpointRefused(
            f"{folder}: has {said}: get the model in that format, all of its files; pickled weights are not read"
        )
    with _opened(files[0]) as tensors:
        return dict.fromkeys(tensors.keys(), files[0])


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    try:
        with safe_open(file, framework="pt") as tensors:
            yield tensors
    except (SafetensorError, OSError) as error:
        words = " ".join(str(error).split())
        raise CheckpointRefused(f"{file}: is cut short or no safetensors ({words}): get it again") from None


def _json(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointRefused(f"{file}: is missing: a checkpoint has {CONFIG} beside its weights") from None
    except (OSError, ValueError) as error:
        raise CheckpointRefused(f"{file}: cannot be read ({error}): get it again") from None
    if not isinstance(data, dict):
        raise CheckpointRefused(f"{file}: expected a JSON object, got {type(data).__name__}")
    return data


# --- config.json -----------------------------------------------------------------------------------


def config_of(data: Mapping[str, Any], where: Path | str = CONFIG) -> Config:
    """Return the sizes that a `config.json` says.

    Args:
        data: what stands in it.
        where: said at the head of a refusal.
    Raises:
        CheckpointRefused: another family, a key that is missing, or a part of a model that ours does not have.
    """

    def take(key: str) -> Any:
        if data.get(key) is None:
            raise CheckpointRefused(f"{where}: has no {key}: take the {CONFIG} that came with the weights")
        return data[key]

    family = take("model_type")
    if family not in FAMILIES:
        raise CheckpointRefused(
            f"{where}: model_type is {family!r}: only {' and '.join(FAMILIES)} are read, take a model of those"
        )
    # What would change the numbers and is not in our model: the value with which it is not there.
    for key, plain in (
        ("hidden_act", "silu"),
        ("attention_bias", False),
        ("mlp_bias", False),
        ("sliding_window", None),
        ("quantization_config", None),
        ("partial_rotary_factor", 1.0),
    ):
        if key in data and data[key] not in (plain, None):
            raise CheckpointRefused(
                f"{where}: {key} is {data[key]!r}: only {plain!r} is known here, take a model without it"
            )
    mixtral = family == "mixtral"
    heads, width = take("num_attention_heads"), take("hidden_size")
    turning = _rope_of(data, where)
    try:
        return Config(
            layers=take("num_hidden_layers"),
            width=width,
            heads=heads,
            kv_heads=data.get("num_key_value_heads") or heads,  # the first Llamas do not say it
            head_dim=data.get("head_dim") or width // heads,
            hidden=take("intermediate_size"),
            vocab=take("vocab_size"),
            rope_theta=turning[0],
            rope_scaling=turning[1],
            norm_eps=float(take("rms_norm_eps")),
            tied=bool(data.get("tie_word_embeddings", False)),
            experts=take("num_local_experts") if mixtral else 0,
            experts_per_token=take("num_experts_per_tok") if mixtral else 0,
            max_tokens=take("max_position_embeddings"),
        )
    except CheckpointRefused:
        raise
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise CheckpointRefused(f"{where}: its sizes do not fit together ({error})") from None


def _rope_of(data: Mapping[str, Any], where: Path | str) -> tuple[float, RopeScaling | None]:
    """RoPE's base and its scaling; newer files hold both in `rope_parameters`."""
    said = data.get("rope_parameters") or data.get("rope_scaling") or {}
    kind = said.get("rope_type", said.get("type", "default")) if isinstance(said, dict) else said
    try:
        theta = float(data.get("rope_theta") or (said.get("rope_theta") if said else None) or 10000.0)
        if kind == "default":
            return theta, None
        if kind == "llama3":
            return theta, RopeScaling(
                factor=float(said["factor"]),
                low_freq_factor=float(said["low_freq_factor"]),
                high_freq_factor=float(said["high_freq_factor"]),
                original_max_tokens=int(said["original_max_position_embeddings"]),
            )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CheckpointRefused(f"{where}: RoPE is not said in full ({error!r}): take the {CONFIG} that came "
                                "with the weights") from None  # fmt: skip
    raise CheckpointRefused(
        f"{where}: RoPE is scaled by {kind!r}: only llama3 is known here, take a model without it"
    )


def config_json(config: Config) -> dict[str, Any]:
    """Return what `config_of` reads back: the keys of Hugging Face."""
    data: dict[str, Any] = {
        "architectures": ["MixtralForCausalLM" if config.experts else "LlamaForCausalLM"],
        "model_type": "mixtral" if config.experts else "llama",
        "hidden_act": "silu",
        "num_hidden_layers": config.layers,
        "hidden_size": config.width,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "intermediate_size": config.hidden,
        "vocab_size": config.vocab,
        "rope_theta": config.rope_theta,
        "rms_norm_eps": config.norm_eps,
        "tie_word_embeddings": config.tied,
        "max_position_embeddings": config.max_tokens,
        "torch_dtype": "bfloat16",
    }
    if config.experts:
        data |= {"num_local_experts": config.experts, "num_experts_per_tok": config.experts_per_token}
    if config.rope_scaling:
        scaling = config.rope_scaling
        data["rope_scaling"] = {
            "rope_type": "llama3",
            "factor": scaling.factor,
            "low_freq_factor": scaling.low_freq_factor,
            "high_freq_factor": scaling.high_freq_factor,
            "original_max_position_embeddings": scaling.original_max_tokens,
        }
    return data


# --- whose weight is it ----------------------------------------------------------------------------

# The weights of a layer: our name, and Hugging Face's.
OF_A_LAYER = {
    "attention_norm": "input_layernorm",
    "query": "self_attn.q_proj",
    "key": "self_attn.k_proj",
    "value": "self_attn.v_proj",
    "output": "self_attn.o_proj",
    "block_norm": "post_attention_layernorm",
}
OF_A_BLOCK = {"gate": "mlp.gate_proj", "up": "mlp.up_proj", "down": "mlp.down_proj"}
OF_AN_EXPERT = {"gate": "w1", "up": "w3", "down": "w2"}


@dataclass(frozen=True)
class Slot:
    """One tensor of a file and its place in our model.

    Attributes:
        name: Hugging Face's.
        weight: ours, such as "layers.0.query".
        shape: of the tensor.
        expert: which part of our weight it is; None for the whole.
    """

    name: str
    weight: str
    shape: tuple[int, ...]
    expert: int | None = None

    def of(self, model: Model) -> Tensor:
        """Return the room for it in a model."""
        weight = model.get_parameter(self.weight).data
        return weight if self.expert is None else weight[self.expert]


def slots(config: Config) -> Iterator[Slot]:
    """Yield all tensors of a checkpoint, in their order."""
    with torch.device("meta"):
        shapes = {name: tuple(weight.shape) for name, weight in Model(config).named_parameters()}

    def whole(name: str, weight: str) -> Slot:
        return Slot(f"{name}.weight", weight, shapes[weight])

    yield whole("model.embed_tokens", "embedding")
    for i in range(config.layers):
        theirs, ours = f"model.layers.{i}", f"layers.{i}"
        for weight, name in OF_A_LAYER.items():
            yield whole(f"{theirs}.{name}", f"{ours}.{weight}")
        if not config.experts:
            for weight, name in OF_A_BLOCK.items():
                yield whole(f"{theirs}.{name}", f"{ours}.{weight}")
            continue
        yield whole(f"{theirs}.block_sparse_moe.gate", f"{ours}.router")
        for expert in range(config.experts):
            for weight, name in OF_AN_EXPERT.items():
                shape = shapes[f"{ours}.{weight}"][1:]
                tensor = f"{theirs}.block_sparse_moe.experts.{expert}.{name}.weight"
                yield Slot(tensor, f"{ours}.{weight}", shape, expert)
    yield whole("model.norm", "norm")
    if not config.tied:
        yield whole("lm_head", "head")


# --- writing ---------------------------------------------------------------------------------------


def save(model: Model, folder: Path | str) -> None:
    """Write a model's config.json and model.safetensors, in bfloat16; other files of the folder are left alone.

    Each is written under another name and then renamed: whoever stops it half-way leaves no half file. The same
    weights give the same bytes.

    Args:
        model: of any type and on any device.
        folder: made where it is not there.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {
        slot.name: slot.of(model).detach().to("cpu", torch.bfloat16).contiguous().clone()
        for slot in slots(model.config)
    }
    with _written(folder / WEIGHTS) as place:
        # One entry, which Hugging Face asks for: several would be written in an order that changes from run to run.
        save_file(tensors, place, metadata={"format": "pt"})
    with _written(folder / CONFIG) as place:
        place.write_text(json.dumps(config_json(model.config), indent=2) + "\n", encoding="utf-8")


@contextmanager
def _written(file: Path) -> Iterator[Path]:
    """Another name to write to; renamed when all went well, deleted when not."""
    place = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        yield place
        os.replace(place, file)
    finally:
        place.unlink(missing_ok=True)
