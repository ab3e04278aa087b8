"""Quantised checkpoints: tiny files in the forms of three libraries, read number by number, or refused in one line."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from course_kernels.nvfp4 import blocks
from course_kernels.nvfp4.blocks import MXFP4, NVFP4
from course_models import downloaded, quantised
from course_models.checkpoint import CheckpointRefused, config_json, save, slots
from course_models.config import Config
from course_models.model import Model

pytestmark = pytest.mark.kept

# More than one of cuBLAS' tiles of 128 rows and 4 scales, and none of them full.
SIZES = Config(layers=1, width=96, heads=3, kv_heads=1, head_dim=32, hidden=160, vocab=16, max_tokens=8)
Q = "model.layers.0.self_attn.q_proj"
GATE = "model.layers.0.mlp.gate_proj"


def a_matrix(name, shape):
    """Weights of one slot, the same in every form, of sizes that differ from matrix to matrix."""
    seed = sum(name.encode())
    return (np.random.default_rng(seed).standard_normal(shape) * 2.0 ** (seed % 5 - 6)).astype(np.float32)


def fp8(codes):
    return torch.from_numpy(codes).view(torch.float8_e4m3fn)


def in_tiles(scales):
    """Scales where torchao and cuBLAS have them, place by place."""
    rows, columns = scales.shape
    high, wide = -(-rows // 128), -(-columns // 4)
    flat = np.zeros(high * wide * 512, np.uint8)
    for r in range(rows):
        for c in range(columns):
            tile = r // 128 * wide + c // 4
            flat[512 * tile + 16 * (r % 32) + 4 * (r % 128 // 32) + c % 4] = scales[r, c]
    return flat.reshape(32 * high, 16 * wide)


# --- what each library writes: the parts of a weight by their names, and the numbers that are due -----


def modelopt_nvfp4(module, w):
    e = blocks.encode(w)
    return {
        f"{module}.weight": torch.from_numpy(blocks.pack(e.codes)),
        f"{module}.weight_scale": fp8(e.scales),
        f"{module}.weight_scale_2": torch.tensor(float(e.second)),
        f"{module}.input_scale": torch.tensor(0.25),
    }, blocks.decode(e)


def modelopt_mxfp4(module, w):
    e = blocks.encode(w, MXFP4)
    return {
        f"{module}.weight": torch.from_numpy(blocks.pack(e.codes)),
        f"{module}.weight_scale": torch.from_numpy(e.scales),
    }, blocks.decode(e, MXFP4)


def modelopt_fp8(module, w):
    scale = np.float32(np.abs(w).max() / 448)
    codes = torch.from_numpy(w / scale).to(torch.float8_e4m3fn)
    parts = {f"{module}.weight": codes, f"{module}.weight_scale": torch.tensor(float(scale))}
    return parts, codes.float().numpy() * scale


def compressed_nvfp4(module, w):
    e = blocks.encode(w)
    inverse = np.float32(1) / e.second
    step = blocks.decode(e._replace(codes=np.full_like(e.codes, 2), second=np.float32(1)))  # the scales alone
    codes = blocks.decode(
        e._replace(scales=np.full_like(e.scales, 0x38), second=np.float32(1))
    )  # at a scale of 1
    return {
        f"{module}.weight_packed": torch.from_numpy(blocks.pack(e.codes)),
        f"{module}.weight_scale": fp8(e.scales),
        f"{module}.weight_global_scale": torch.tensor([float(inverse)]),
        f"{module}.input_global_scale": torch.tensor([64.0]),
    }, codes * (step / inverse)


def compressed_mxfp4(module, w):
    parts, due = modelopt_mxfp4(module, w)
    parts[f"{module}.weight_packed"] = parts.pop(f"{module}.weight")
    return parts, due


def compressed_fp8(module, w):
    scale = torch.from_numpy(np.abs(w).max(axis=1, keepdims=True) / 448).bfloat16()  # one for each row
    codes = (torch.from_numpy(w) / scale.float()).to(torch.float8_e4m3fn)
    due = (codes.float() * scale.float()).numpy()
    return {f"{module}.weight": codes, f"{module}.weight_scale": scale}, due


def compressed_int4(module, w):
    groups = w.reshape(len(w), -1, 32)
    scale = torch.from_numpy(np.abs(groups).max(axis=-1) / 7).bfloat16()
    q = np.rint(groups / scale.float().numpy()[..., None]).clip(-8, 7)
    words = np.zeros((len(w), w.shape[1] // 8), np.int64)
    for k, column in enumerate((q.reshape(w.shape) + 8).astype(np.int64).T):
        words[:, k // 8] |= column << 4 * (k % 8)
    return {
        f"{module}.weight_packed": torch.from_numpy(words.astype(np.uint32).view(np.int32)),
        f"{module}.weight_scale": scale,
        f"{module}.weight_shape": torch.tensor(w.shape),
    }, (q * scale.float().numpy()[..., None]).reshape(w.shape).astype(np.float32)


def torchao_nvfp4(module, w):
    e = blocks.encode(w)
    return {
        f"{module}._weight_qdata": torch.from_numpy(blocks.pack(e.codes)),
        f"{module}._weight_scale": fp8(in_tiles(e.scales)),
        f"{module}._weight_per_tensor_scale": torch.tensor(float(e.second)),
    }, blocks.decode(e)


def torchao_without_second(module, w):
    e = blocks.encode(w, second=1.0)
    return {
        f"{module}._weight_qdata": torch.from_numpy(blocks.pack(e.codes)),
        f"{module}._weight_scale": fp8(e.scales),
    }, blocks.decode(e)


def torchao_mxfp4(module, w):
    e = blocks.encode(w, MXFP4)
    return {
        f"{module}._weight_qdata": torch.from_numpy(blocks.pack(e.codes)),
        f"{module}._weight_scale": torch.from_numpy(in_tiles(e.scales)).view(torch.float8_e8m0fnu),
    }, blocks.decode(e, MXFP4)


def torchao_fp8(module, w):
    parts, due = compressed_fp8(module, w)
    return {
        f"{module}._weight_qdata": parts[f"{module}.weight"],
        f"{module}._weight_scale": parts[f"{module}.weight_scale"].float(),
    }, due


MODELOPT = {"quant_method": "modelopt", "producer": {"name": "modelopt"}, "ignore": ["lm_head"]}
COMPRESSED = {"quant_method": "compressed-tensors", "transform_config": {}, "sparsity_config": {}}
TORCHAO = {"quant_method": "torchao", "quant_type": {"default": {}}, "modules_to_not_convert": None}


def note(kind, **attributes):
    return {"_type": kind, "_data": attributes, "_tensor_data_names": ["qdata", "scale"]}


# By form: the writer, what config.json says, and what torchao's heads say of each weight.
FORMS = {
    "modelopt NVFP4": (modelopt_nvfp4, MODELOPT | {"quant_algo": "NVFP4"}, None),
    "modelopt NVFP4 weights only": (modelopt_nvfp4, MODELOPT | {"quant_algo": "W4A16_NVFP4"}, None),
    "modelopt MXFP4": (modelopt_mxfp4, MODELOPT | {"quant_algo": "W4A8_MXFP4_FP8"}, None),
    "modelopt FP8": (modelopt_fp8, MODELOPT | {"quant_algo": "FP8"}, None),
    "compressed NVFP4": (compressed_nvfp4, COMPRESSED | {"format": "nvfp4-pack-quantized"}, None),
    "compressed MXFP4": (compressed_mxfp4, COMPRESSED | {"format": "mxfp4-pack-quantized"}, None),
    "compressed FP8": (compressed_fp8, COMPRESSED | {"format": "float-quantized"}, None),
    "compressed INT4": (compressed_int4, COMPRESSED | {"format": "pack-quantized"}, None),
    "torchao NVFP4": (torchao_nvfp4, TORCHAO, note("NVFP4Tensor", is_swizzled_scales=True, block_size=16)),
    "torchao NVFP4 plain": (
        torchao_without_second,
        TORCHAO,
        note("NVFP4Tensor", is_swizzled_scales=False, block_size=16),
    ),
    "torchao MXFP4": (torchao_mxfp4, TORCHAO, note("MXTensor", is_swizzled_scales=True, block_size=32)),
    "torchao FP8": (torchao_fp8, TORCHAO, note("Float8Tensor")),
}


@functools.cache
def made(form):
    """Return the tensors of a checkpoint, the weights that are due, and the notes in its head; all by name."""
    writer, _, of_each = FORMS[form]
    tensors, due, notes = {}, {}, {"format": "pt"}
    for slot in slots(SIZES):
        w = a_matrix(slot.name, slot.shape)
        if "_proj" in slot.name:
            parts, due[slot.name] = writer(slot.name.removesuffix(".weight"), w)
            tensors |= parts
            if of_each:
                notes[slot.name] = json.dumps(of_each)
        else:
            tensors[slot.name] = torch.from_numpy(w).bfloat16()
            due[slot.name] = tensors[slot.name].float().numpy()
            if of_each:
                notes[slot.name] = json.dumps({"_type": "Tensor"})
    if of_each:
        notes["tensor_names"] = json.dumps([slot.name for slot in slots(SIZES)])
    return tensors, due, notes


def write(folder, form, change=None, say=None):
    """Write a checkpoint; `change` spoils its tensors, `say` its config. Returns the weights that are due, by name."""
    tensors, due, notes = made(form)
    tensors, notes = dict(tensors), dict(notes)
    if change:
        change(tensors, notes)
    save_file(tensors, folder / "model.safetensors", metadata=notes)
    data = config_json(SIZES) | {"quantization_config": dict(FORMS[form][1])}
    if say:
        say(data)
    (folder / "config.json").write_text(json.dumps(data))
    return due


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read_number_by_number(tmp_path, form):
    due = write(tmp_path, form)
    model = quantised.load(tmp_path, dtype=torch.float32)
    for slot in slots(SIZES):
        np.testing.assert_array_equal(slot.of(model).numpy(), due[slot.name], err_msg=slot.name)
        near = a_matrix(slot.name, slot.shape)
        # MXFP4 keeps 6 of what is just below 8.
        assert np.abs(slot.of(model).numpy() - near).max() < 0.26 * np.abs(near).max()
    shorter = quantised.load(tmp_path)
    assert shorter.dtype == torch.bfloat16
    assert torch.equal(shorter.layers[0].query, model.layers[0].query.bfloat16())


def test_eight_numbers_by_hand(tmp_path):
    """The byte 0x27 has the codes 7 and 2: 6 and 1. With a scale of 0.5 and a second one of 0.25, 0.75 and 0.125."""

    def change(second, part):
        def spoil(tensors, _):
            numbers = Q + (".weight" if part == "weight_scale_2" else ".weight_packed")
            tensors[numbers] = torch.full((96, 48), 0x27, dtype=torch.uint8)
            tensors[f"{Q}.weight_scale"] = torch.full((96, 6), 0.5).to(torch.float8_e4m3fn)
            tensors[f"{Q}.{part}"] = torch.tensor(second).reshape(tensors[f"{Q}.{part}"].shape)

        return spoil

    for form, part, second in (
        ("modelopt NVFP4", "weight_scale_2", 0.25),
        ("compressed NVFP4", "weight_global_scale", 4.0),
    ):
        write(tmp_path, form, change(second, part))
        row = quantised.load(tmp_path, dtype=torch.float32).layers[0].query[5]
        assert row.tolist() == [0.75, 0.125] * 48


def test_a_plain_checkpoint_is_read_as_ever(tmp_path):
    model = Model.random(SIZES, seed=3)
    save(model, tmp_path)
    again = quantised.load(tmp_path, max_tokens=4)
    assert again.config.max_tokens == 4
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), model.parameters(), strict=True))
    assert all(
        torch.equal(a, b)
        for a, b in zip(again.parameters(), downloaded.load(tmp_path).parameters(), strict=True)
    )


def test_modelopt_s_first_versions_say_it_in_a_file_of_its_own(tmp_path):
    due = write(tmp_path, "modelopt NVFP4", say=lambda data: data.pop("quantization_config"))
    beside = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "group_size": 16}}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(beside))
    model = quantised.load(tmp_path, dtype=torch.float32)
    np.testing.assert_array_equal(model.layers[0].query.detach().numpy(), due[f"{Q}.weight"])


def test_some_weights_may_be_plain_and_files_may_be_several(tmp_path):
    plain = torch.ones(96, 96).bfloat16()

    def change(tensors, _):
        for part in ("weight_scale", "weight_scale_2", "input_scale"):
            del tensors[f"{Q}.{part}"]
        tensors[f"{Q}.weight"] = plain

    due = write(tmp_path, "modelopt NVFP4", change)
    whole = tmp_path / "model.safetensors"
    tensors = load_file(whole)
    whole.unlink()
    names = sorted(tensors)
    halves = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}  # the parts of a weight lie in both
    for file, some in halves.items():
        save_file({name: tensors[name] for name in some}, tmp_path / file)
    index = {"weight_map": {name: file for file, some in halves.items() for name in some}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    model = quantised.load(tmp_path, dtype=torch.float32)
    assert torch.equal(model.layers[0].query, plain.float())
    np.testing.assert_array_equal(model.layers[0].gate.detach().numpy(), due[f"{GATE}.weight"])


# --- refusals ----------------------------------------------------------------------------------------


def put(name, tensor):
    return lambda tensors, _: tensors.__setitem__(name, tensor)


def drop(name):
    return lambda tensors, _: tensors.__delitem__(name)


def say(**entries):
    return lambda data: data["quantization_config"].update(entries)


def noted(name, text):
    return lambda _, notes: notes.__setitem__(name, text)


ONE = torch.tensor(0.5)
# By case: the form, what is spoiled, what config.json says instead, and words of the refusal.
REFUSED = {
    "modelopt says it, compressed-tensors' scale": (
        "modelopt NVFP4",
        put(f"{Q}.weight_global_scale", ONE),
        None,
        f"{Q}.weight_global_scale is of compressed-tensors, and config.json says modelopt: a mixture is not read",
    ),
    "compressed-tensors says it, modelopt's scale": (
        "compressed NVFP4",
        put(f"{Q}.weight_scale_2", ONE),
        None,
        f"{Q}.weight_scale_2 is of modelopt, and config.json says compressed-tensors: a mixture is not read",
    ),
    "torchao says it, modelopt's scale": (
        "torchao NVFP4",
        put(f"{Q}.weight_scale_2", ONE),
        None,
        f"{Q}.weight_scale_2 is of modelopt, and config.json says torchao: a mixture is not read",
    ),
    "modelopt says it, torchao's codes": (
        "modelopt NVFP4",
        put(f"{Q}._weight_qdata", ONE),
        None,
        f"{Q}._weight_qdata is of torchao, and config.json says modelopt: a mixture is not read",
    ),
    "another library's config": (
        "modelopt NVFP4",
        None,
        lambda data: data.update(quantization_config=COMPRESSED | {"format": "nvfp4-pack-quantized"}),
        "is of modelopt, and config.json says compressed-tensors: a mixture is not read",
    ),
    "no config": (
        "compressed NVFP4",
        None,
        lambda data: data.pop("quantization_config"),
        "and config.json does not say how weights are quantised; take the files of one model",
    ),
    "one weight in FP8": (
        "modelopt NVFP4",
        put(f"{Q}.weight", torch.zeros(96, 48).to(torch.float8_e4m3fn)),
        None,
        f"{Q}.weight is of type F8_E4M3, expected U8: a mixture of formats is not read",
    ),
    "scales of MXFP4": (
        "modelopt NVFP4",
        put(f"{Q}.weight_scale", torch.zeros(96, 6, dtype=torch.uint8)),
        None,
        f"{Q}.weight_scale is of type U8, expected F8_E4M3: a mixture of formats is not read",
    ),
    "two formats by name": (
        "modelopt NVFP4",
        None,
        say(quant_algo="MIXED_PRECISION"),
        "quant_algo of modelopt is 'MIXED_PRECISION': only NVFP4, W4A16_NVFP4,",
    ),
    "a scale before the product": (
        "modelopt NVFP4",
        put(f"{Q}.pre_quant_scale", torch.ones(96)),
        None,
        f"{Q}.pre_quant_scale is not expected",
    ),
    "two types of torchao": (
        "torchao NVFP4",
        noted(f"{Q}.weight", json.dumps(note("MXTensor", is_swizzled_scales=True))),
        None,
        "its weights are of MXTensor and NVFP4Tensor: a mixture is not read",
    ),
    "a head that says nothing": (
        "torchao NVFP4",
        noted(f"{Q}.weight", "{}"),
        None,
        f"its head does not say how {Q}.weight is quantised",
    ),
    "an unknown type of torchao": (
        "torchao FP8",
        lambda _, notes: notes.update(
            {name: text.replace("Float8Tensor", "Int8Tensor") for name, text in notes.items()}
        ),
        None,
        "_type of torchao is 'Int8Tensor': only NVFP4Tensor, MXTensor, Float8Tensor are read",
    ),
    "an unknown library": (
        "modelopt NVFP4",
        None,
        say(quant_method="awq"),
        "quant_method is 'awq': only modelopt, compressed-tensors, torchao are read",
    ),
    "a rotation": (
        "compressed NVFP4",
        None,
        say(transform_config={"config_groups": {"u": {}}}),
        "transform_config is {'config_groups': {'u': {}}}: it changes what the model computes and is not read",
    ),
    "zero points": (
        "compressed INT4",
        put(f"{Q}.weight_zero_point", torch.zeros(12, 3, dtype=torch.int32)),
        None,
        f"{Q}.weight_zero_point is not expected",
    ),
    "plain and quantised": (
        "compressed NVFP4",
        put(f"{Q}.weight", torch.ones(96, 96)),
        None,
        f"{Q}.weight is there plain and, as {Q}.weight_packed, quantised: a mixture is not read",
    ),
    "no second scale": (
        "modelopt NVFP4",
        drop(f"{Q}.weight_scale_2"),
        None,
        f"{Q}.weight_scale_2 is missing",
    ),
    "no scale": ("modelopt NVFP4", drop(f"{Q}.weight_scale"), None, f"{Q}.weight_scale is missing"),
    "no codes": ("compressed NVFP4", drop(f"{Q}.weight_packed"), None, f"{Q}.weight_packed is missing"),
    "an inverted second scale": (
        "modelopt NVFP4",
        put(f"{Q}.weight_scale_2", torch.tensor(4096.0)),
        None,
        f"{Q}.weight_scale_2 is 4096, and scales are multiplied by it: it is the inverse of what this form keeps",
    ),
    "a second scale that is not inverted": (
        "compressed NVFP4",
        put(f"{Q}.weight_global_scale", torch.tensor([0.001])),
        None,
        f"{Q}.weight_global_scale is 0.001, and scales are divided by it: it is the inverse of what this form keeps",
    ),
    "a second scale of zero": (
        "modelopt NVFP4",
        put(f"{Q}.weight_scale_2", torch.tensor(0.0)),
        None,
        f"{Q}.weight_scale_2 is 0: expected a number above zero",
    ),
    "a second scale for each row": (
        "modelopt NVFP4",
        put(f"{Q}.weight_scale_2", torch.ones(96)),
        None,
        f"{Q}.weight_scale_2 has shape (96,), expected () or (1,)",
    ),
    "a scale that is no number": (
        "modelopt NVFP4",
        put(f"{Q}.weight_scale", torch.full((96, 6), torch.nan).to(torch.float8_e4m3fn)),
        None,
        f"{Q}.weight_scale holds NaN, infinity or numbers below zero",
    ),
    "a scale below zero": (
        "compressed NVFP4",
        put(f"{Q}.weight_scale", torch.full((96, 6), -1.0).to(torch.float8_e4m3fn)),
        None,
        f"{Q}.weight_scale holds NaN, infinity or numbers below zero",
    ),
    "blocks of 32": (
        "modelopt NVFP4",
        put(f"{Q}.weight_scale", torch.ones(96, 3).to(torch.float8_e4m3fn)),
        None,
        f"{Q}.weight_scale has shape (96, 3), expected (96, 6)",
    ),
    "scales that do not lie in tiles": (
        "torchao NVFP4",
        put(f"{Q}._weight_scale", torch.ones(96, 6).to(torch.float8_e4m3fn)),
        None,
        f"{Q}._weight_scale has shape (96, 6), expected (32, 32)",
    ),
    "codes that are not packed": (
        "modelopt NVFP4",
        put(f"{Q}.weight", torch.ones(96, 96, dtype=torch.uint8)),
        None,
        f"{Q}.weight has shape (96, 96), expected (96, 48)",
    ),
    "eight bits where four are meant": (
        "compressed INT4",
        put(f"{Q}.weight_packed", torch.zeros(96, 24, dtype=torch.int32)),
        None,
        f"{Q}.weight_packed has shape (96, 24), expected (96, 12)",
    ),
    "nothing is quantised": (
        "modelopt NVFP4",
        lambda tensors, _: [tensors.pop(name) for name in list(tensors) if "_scale" in name],
        None,
        "config.json says modelopt and NVFP4, and no weight is of that form",
    ),
    "a head beside a quantised embedding that is the head": (
        "compressed NVFP4",
        lambda tensors, _: tensors.update(
            compressed_nvfp4("model.embed_tokens", tensors.pop("model.embed_tokens.weight").float().numpy())[
                0
            ]
        ),
        lambda data: data.update(tie_word_embeddings=True),
        "model.embed_tokens.weight is quantised and lm_head.weight is there too",
    ),
    "a key that nobody knows": (
        "modelopt NVFP4",
        None,
        lambda data: data.update(new_attention=True),
        "new_attention is True: this key is not known here",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_of_one_form_is_refused_in_one_line(tmp_path, case):
    form, change, saying, words = REFUSED[case]
    write(tmp_path, form, change, saying)
    with pytest.raises(CheckpointRefused) as refused:
        quantised.load(tmp_path)
    line = str(refused.value)
    assert words in line
    assert line.startswith(str(tmp_path))
    assert "\n" not in line


def test_a_file_of_modelopt_beside_another_library_is_refused(tmp_path):
    write(tmp_path, "compressed NVFP4")
    (tmp_path / "hf_quant_config.json").write_text('{"quantization": {"quant_algo": "NVFP4"}}')
    with pytest.raises(
        CheckpointRefused, match=r"says compressed-tensors, and hf_quant_config\.json is of modelopt"
    ):
        quantised.load(tmp_path)


def test_a_plain_load_refuses_them_all(tmp_path):
    for form in FORMS:
        write(tmp_path, form)
        with pytest.raises(CheckpointRefused, match="quantised weights are not read"):
            downloaded.load(tmp_path)


def test_the_blocks_are_those_of_the_formats():
    of_form = {NVFP4.name: NVFP4.block, MXFP4.name: MXFP4.block}
    for layouts in quantised.LAYOUTS.values():
        assert all(layout.block == of_form.get(layout.form, layout.block) for layout in layouts)
