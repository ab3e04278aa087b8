"""Hugging Face's `config.json`: the sizes of a model, read.

Two families are known, `llama` and `mixtral`. A key that nobody here knows may change what a model computes, and a
reader that skips it gets other numbers without a word: so each key is read, or known to change nothing, or refused by
name. A key whose value is null counts as not there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from course_models.checkpoint import CONFIG, CheckpointRefused
from course_models.config import Config, RopeScaling

# The families, and the architectures of each: a language model, no classifier. The first Llamas spell it with two As.
ARCHITECTURES = {"llama": ("LlamaForCausalLM", "LLaMAForCausalLM"), "mixtral": ("MixtralForCausalLM",)}
# RoPE's base where a file says nothing of RoPE at all, as those of Llama 1 and 2. Mixtral's files all say it.
FIRST_THETA = {"llama": 10000.0}

# Keys with one value at which they change nothing: what they name is not in our model.
PLAIN: dict[str, Any] = {
    "add_cross_attention": False,
    "attention_bias": False,
    "hidden_act": "silu",
    "is_encoder_decoder": False,
    "mlp_bias": False,
    "partial_rotary_factor": 1.0,
    "pruned_heads": {},
    "rope_interleaved": False,
    "sliding_window": None,
    "tie_encoder_decoder": False,
}
QUANTISED = ("quantization_config", "quantization", "compression_config")
_READ = """
    architectures head_dim hidden_size intermediate_size layer_types max_position_embeddings max_sequence_length
    model_type num_attention_heads num_hidden_layers num_key_value_heads rms_norm_eps rope_parameters rope_scaling
    rope_theta tie_word_embeddings vocab_size
"""
OF_EXPERTS = frozenset({"num_local_experts", "num_experts_per_tok"})
# Keys that change no number of a forward pass: who wrote the file, how weights are kept in memory, which tokens are
# special, how text is chosen, what is returned, what counts in training alone.
_MEANINGLESS = """
    _attn_implementation_autoset _commit_hash _name_or_path is_llama_config transformers.js_config
    transformers_version unsloth_fixed unsloth_version

    chunk_size_feed_forward dtype is_decoder pretraining_tp tf_legacy_loss torch_dtype torchscript use_bfloat16

    begin_suppress_tokens bos_token_id decoder_start_token_id eos_token_id forced_bos_token_id forced_eos_token_id
    pad_token_id prefix sep_token_id suppress_tokens tokenizer_class

    bad_words_ids diversity_penalty do_sample early_stopping encoder_no_repeat_ngram_size
    exponential_decay_length_penalty length_penalty max_length min_length no_repeat_ngram_size num_beam_groups num_beams
    num_return_sequences remove_invalid_values repetition_penalty temperature top_k top_p typical_p

    output_attentions output_hidden_states output_scores return_dict return_dict_in_generate use_cache

    attention_dropout finetuning_task id2label initializer_range label2id output_router_logits problem_type
    router_aux_loss_coef router_jitter_noise task_specific_params
"""
KNOWN = frozenset({*_READ.split(), *_MEANINGLESS.split(), *PLAIN})

# What may stand in RoPE's own object, by its type.
OF_ROPE = {
    "default": frozenset({"rope_type", "type", "rope_theta", "partial_rotary_factor"}),
    "llama3": frozenset(
        {
            *("rope_type", "type", "rope_theta", "partial_rotary_factor"),
            *("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
        }
    ),
}
# The largest size that is taken for one: past it, a slip of the keyboard.
LARGEST = 2**24


def in_a_line(value: Any, most: int = 60) -> str:
    """Return a value as JSON's reader gave it, on one short line."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deep, or a number of thousands of digits
        text = type(value).__name__
    return text if len(text) <= most else f"{text[:most]}…"


def bare(name: str) -> str:
    """Return a key's or a tensor's name as it is, unless it would not stay on one short line."""
    return name if name.isprintable() and len(name) <= 120 else in_a_line(name, 120)


def read_json(file: Path) -> dict[str, Any]:
    """Return the object that a JSON file holds.

    Raises:
        CheckpointRefused: no such file, no JSON, no object, nested too deep, or a key that stands there twice.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise CheckpointRefused(f"{file}: {bare(key)} stands there twice: take out the wrong one")
            found[key] = value
        return found

    try:
        data = json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=once)
    except CheckpointRefused:
        raise
    except FileNotFoundError:
        raise CheckpointRefused(f"{file}: is missing: a checkpoint has {CONFIG} beside its weights") from None
    except RecursionError:
        raise CheckpointRefused(f"{file}: cannot be read (it is nested too deep): get it again") from None
    except (OSError, ValueError) as error:
        raise CheckpointRefused(f"{file}: cannot be read ({error}): get it again") from None
    if not isinstance(data, dict):
        raise CheckpointRefused(f"{file}: expected a JSON object, got {type(data).__name__}")
    return data


# --- reading ---------------------------------------------------------------------------------------


def config_of(data: Mapping[str, Any], where: Path | str = CONFIG) -> Config:
    """Return the sizes that a `config.json` says.

    Args:
        data: what stands in it.
        where: said at the head of a refusal.
    Raises:
        CheckpointRefused: another family, a key that is missing or not known, two keys at odds, a number out of
            range, or a part of a model that ours does not have.
    """
    said = {key: value for key, value in data.items() if value is not None}
    take = _Taker(said, where)
    family = take.any("model_type")
    if not isinstance(family, str) or family not in ARCHITECTURES:
        raise CheckpointRefused(
            f"{where}: model_type is {in_a_line(family)}: only {' and '.join(ARCHITECTURES)} are read, "
            "take a model of those"
        )
    mixtral = family == "mixtral"
    _look_at_keys(said, where, family)
    heads, width = take.whole("num_attention_heads"), take.whole("hidden_size")
    layers = take.whole("num_hidden_layers")
    if said.get("layer_types", ["full_attention"] * layers) != ["full_attention"] * layers:
        raise CheckpointRefused(
            f"{where}: layer_types is {in_a_line(said['layer_types'])}: only full_attention is known here, for each "
            "of the layers; take a model without it"
        )
    theta, scaling = _rope_of(said, where, family)
    try:
        return Config(
            layers=layers,
            width=width,
            heads=heads,
            # The first Llamas do not say it.
            kv_heads=take.whole("num_key_value_heads", None if mixtral else heads),
            head_dim=take.whole("head_dim", width // heads),
            hidden=take.whole("intermediate_size"),
            vocab=take.whole("vocab_size"),
            rope_theta=theta,
            rope_scaling=scaling,
            norm_eps=take.number("rms_norm_eps", above=0.0, below=1.0),
            tied=take.flag("tie_word_embeddings"),
            experts=take.whole("num_local_experts") if mixtral else 0,
            experts_per_token=take.whole("num_experts_per_tok") if mixtral else 0,
            max_tokens=_reach_of(said, take, where),
        )
    except CheckpointRefused:
        raise
    except ValueError as error:
        raise CheckpointRefused(f"{where}: its sizes do not fit together ({error})") from None


class _Taker:
    """Values of a JSON object, each of the kind that is asked for, or a refusal that names the key."""

    def __init__(self, said: Mapping[str, Any], where: Path | str) -> None:
        self.said, self.where = said, where

    def any(self, key: str) -> Any:
        if key not in self.said:
            raise CheckpointRefused(
                f"{self.where}: has no {key}: take the {CONFIG} that came with the weights; if that is this one, add "
                "the line, from the model's own documentation"
            )
        return self.said[key]

    def _refuse(self, key: str, expected: str) -> CheckpointRefused:
        value = in_a_line(self.said[key])
        return CheckpointRefused(
            f"{self.where}: {key} is {value}: expected {expected}, take the {CONFIG} that came with the weights"
        )

    def whole(self, key: str, without: int | None = None, most: int = LARGEST) -> int:
        if key not in self.said and without is not None:
            return without
        value = self.any(key)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise self._refuse(key, f"a whole number from 1 to {most}")
        return value

    def number(self, key: str, above: float, below: float = 1e300) -> float:
        value = self.any(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not above < value < below:
            raise self._refuse(key, f"a number above {above:g} and below {below:g}")
        return float(value)

    def flag(self, key: str) -> bool:
        if not isinstance(self.said.get(key, False), bool):
            raise self._refuse(key, "true or false")
        return bool(self.said.get(key, False))


def _look_at_keys(said: Mapping[str, Any], where: Path | str, family: str) -> None:
    """Refuse what our model does not have, and what nobody here knows."""
    named = said.get("architectures", [ARCHITECTURES[family][0]])
    if not isinstance(named, list) or len(named) != 1 or named[0] not in ARCHITECTURES[family]:
        raise CheckpointRefused(
            f"{where}: architectures is {in_a_line(named)}: only {ARCHITECTURES[family][0]} is known here, take a "
            "model of that"
        )
    for key in QUANTISED:
        if key in said:
            raise CheckpointRefused(
                f"{where}: {key} is {in_a_line(said[key])}: quantised weights are not read, get the model without"
            )
    known = KNOWN | (OF_EXPERTS if family == "mixtral" else frozenset())
    for key, value in said.items():
        if key in PLAIN and value != PLAIN[key]:
            raise CheckpointRefused(
                f"{where}: {key} is {in_a_line(value)}: only {PLAIN[key]!r} is known here, take a model "
                "without it"
            )
        if key not in known:
            raise CheckpointRefused(
                f"{where}: {bare(key)} is {in_a_line(value)}: this key is not known here and may change "
                "what the model computes; take out the line if it does not, or take a model without it"
            )


def _reach_of(said: Mapping[str, Any], take: _Taker, where: Path | str) -> int:
    """Return how many positions there are; the first Llamas say it under another key."""
    old, new = "max_sequence_length", "max_position_embeddings"
    reach = [take.whole(key, most=2**62) for key in (old, new) if key in said]
    if len(set(reach)) > 1:
        raise CheckpointRefused(f"{where}: {old} is {reach[0]} and {new} {reach[1]}: take out the wrong one")
    return reach[0] if reach else take.whole(new)


def _rope_of(said: Mapping[str, Any], where: Path | str, family: str) -> tuple[float, RopeScaling | None]:
    """RoPE's base and its scaling.

    transformers 4 has the base at the top and the scaling in `rope_scaling`, transformers 5 both in `rope_parameters`,
    and files that passed through both have several of them: then all must say the same.
    """
    thetas: dict[str, float] = {}
    scalings: dict[str, RopeScaling | None] = {}
    if "rope_theta" in said:
        thetas["rope_theta"] = _Taker(said, where).number("rope_theta", above=1.0)
    for place in ("rope_parameters", "rope_scaling"):
        if place not in said:
            continue
        own = _for_all_layers(said[place], f"{where}: {place}")
        scalings[place] = _scaling_of(own, f"{where}: {place}")
        if "rope_theta" in own:
            thetas[f"{place}.rope_theta"] = _Taker(own, f"{where}: {place}").number("rope_theta", above=1.0)
    if len(set(scalings.values())) > 1:
        raise CheckpointRefused(
            f"{where}: rope_parameters and rope_scaling say different things: take out the one that is not the model's"
        )
    if len(set(thetas.values())) > 1:
        both = " and ".join(f"{place} is {value:g}" for place, value in thetas.items())
        raise CheckpointRefused(f"{where}: {both}: take out the one that is not the model's")
    if not thetas and (scalings or family not in FIRST_THETA):
        raise CheckpointRefused(
            f"{where}: has no rope_theta, RoPE's base: take the {CONFIG} that came with the weights; if that is this "
            "one, add the line, from the model's own documentation"
        )
    theta = next(iter(thetas.values())) if thetas else FIRST_THETA[family]
    return theta, next(iter(scalings.values()), None)


def _for_all_layers(own: Any, where: str) -> dict[str, Any]:
    """RoPE's object, one for all layers. Where there is one for each type of layer, transformers takes none of them."""
    if not isinstance(own, dict):
        raise CheckpointRefused(f"{where}: expected an object, got {in_a_line(own)}")
    if own and all(isinstance(part, dict) for part in own.values()):
        raise CheckpointRefused(
            f"{where}: has RoPE by type of layer ({bare(', '.join(own))}): one for all layers is known here; where "
            "they are the same, write it once"
        )
    return {key: value for key, value in own.items() if value is not None}


def _scaling_of(own: Mapping[str, Any], where: str) -> RopeScaling | None:
    kinds = [own[key] for key in ("rope_type", "type") if key in own]
    if not kinds and set(own) <= {"rope_theta", "partial_rotary_factor"} and own:
        kinds = ["default"]
    if not kinds:
        raise CheckpointRefused(
            f"{where}: has no rope_type, so nobody knows how RoPE is scaled: take the {CONFIG} that came with "
            "the weights"
        )
    if kinds[0] != kinds[-1]:
        raise CheckpointRefused(
            f"{where}: rope_type is {in_a_line(kinds[0])} and type {in_a_line(kinds[-1])}: take out the "
            "wrong one"
        )
    kind = kinds[0]
    if not isinstance(kind, str) or kind not in OF_ROPE:
        raise CheckpointRefused(
            f"{where}: RoPE is scaled by {in_a_line(kind)}: only llama3 is known here, take a model without it"
        )
    for key, value in own.items():
        if key not in OF_ROPE[kind] or (key == "partial_rotary_factor" and value != 1.0):
            raise CheckpointRefused(
                f"{where}: {bare(key)} is {in_a_line(value)}: is not known here for RoPE of type {kind}, "
                "take a model without it"
            )
    if kind == "default":
        return None
    take = _Taker(own, where)
    low = take.number("low_freq_factor", above=0.0)
    high = take.number("high_freq_factor", above=0.0)
    if low >= high:
        raise CheckpointRefused(
            f"{where}: low_freq_factor is {low:g} and high_freq_factor {high:g}: expected the first below the second, "
            f"take the {CONFIG} that came with the weights"
        )
    return RopeScaling(
        factor=take.number("factor", above=0.0),
        low_freq_factor=low,
        high_freq_factor=high,
        original_max_tokens=take.whole("original_max_position_embeddings"),
    )
