"""What transformers itself writes: the config.json of tiny models of many families, by two of its versions.

`config_forms.json` holds them as they were written. Those that we take gave transformers' logits to a millionth.
"""

import json
from pathlib import Path

import pytest

from course_models.config import Config, RopeScaling
from course_models.hugging_face import CheckpointRefused, config_of

FORMS = json.loads(Path(__file__).with_name("config_forms.json").read_text())
STRETCHED = RopeScaling(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_tokens=64)
FURTHER = RopeScaling(factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_tokens=64)


def sizes(**others):
    same = {"layers": 2, "width": 32, "heads": 4, "kv_heads": 2, "head_dim": 8, "hidden": 48, "vocab": 64}
    return Config(**same | {"max_tokens": 128} | others)


TAKEN = {
    "llama1": sizes(kv_heads=4, norm_eps=1e-6),
    "llama2": sizes(kv_heads=4),
    "llama3.1": sizes(rope_theta=500000.0, rope_scaling=STRETCHED),
    "llama3.2": sizes(rope_theta=500000.0, rope_scaling=FURTHER, tied=True, head_dim=16),
    "smollm2": sizes(rope_theta=100000.0, tied=True),
    "mixtral": sizes(rope_theta=1e6, experts=4, experts_per_token=2),
}
REFUSED = {
    "llama_bias": "attention_bias is True: only False is known here, take a model without it",
    "llama_yarn": "rope_parameters: RoPE is scaled by 'yarn': only llama3 is known here, take a model without it",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_config_of_transformers_is_read_right_or_refused(form):
    name = form.split(",")[0]
    if name in TAKEN:
        assert config_of(FORMS[form]) == TAKEN[name]
        return
    family = f"model_type is {name!r}: only llama and mixtral are read, take a model of those"
    with pytest.raises(CheckpointRefused) as refused:
        config_of(FORMS[form])
    assert str(refused.value) == f"config.json: {REFUSED.get(name, family)}"


def test_both_versions_are_asked_for_every_form_that_is_taken():
    assert {(form.split(",")[0], form.split()[1][0]) for form in FORMS} >= {
        (n, v) for n in TAKEN for v in "45"
    }


# OLMo 2 has the keys of a Llama and weights of its own, which are refused by their names.
@pytest.mark.parametrize(
    "family", ["mistral", "qwen2", "qwen3", "phi3", "gemma2", "granite", "cohere", "gpt_neox"]
)
def test_keys_of_another_family_are_refused_where_it_calls_itself_a_llama(family):
    other = next(form for form in FORMS if form.startswith(f"{family}, "))
    named = {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}
    with pytest.raises(
        CheckpointRefused, match=r"take a model without it|take the config.json that came with the weights"
    ):
        config_of(FORMS[other] | named)
