"""Checkpoints: a folder with Hugging Face's `config.json` and safetensors: what lies where in it; how it is written.

`downloaded` reads one, of the course or from elsewhere; `hugging_face` says which models are known.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from course_models.config import Config
from course_models.model import Model

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
# The types of weights that are read, as safetensors spells them; eight bits and fewer come with scales of their own.
TYPES = ("BF16", "F16", "F32")


class CheckpointRefused(ValueError):
    """A folder that is no checkpoint we can read; one line."""


# --- config.json -----------------------------------------------------------------------------------


def config_json(config: Config) -> dict[str, Any]:
    """Return what `hugging_face.config_of` reads back: the keys of Hugging Face."""
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
