"""A tiny Llama in the quantised forms of ModelOpt, compressed-tensors and torchao, written by the libraries themselves.

    python write_quantised.py FOLDER     one folder for each form; in its `due` the weights as the library decodes them

`test_quantised_by_libraries.py` runs it with the libraries of `PINNED` and holds our reader against what it wrote.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

PINNED = ("nvidia-modelopt==0.47.0", "compressed-tensors==0.20.1", "torchao==0.18.0", "transformers==5.8.1")


def a_model() -> Any:
    """Return a Llama of one layer whose matrices are whole tiles of cuBLAS' scales, several, or a quarter of one."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 1, "num_attention_heads": 4}
    more = {"num_key_value_heads": 1, "head_dim": 32, "vocab_size": 16, "max_position_embeddings": 8}
    # ModelOpt's export asks what the architecture is called.
    named = {"architectures": ["LlamaForCausalLM"], "tie_word_embeddings": False}
    return LlamaForCausalLM(LlamaConfig(**sizes, **more, **named)).to(torch.bfloat16)


def modules(folder: Path, part: str) -> Iterator[tuple[str, dict[str, torch.Tensor]]]:
    """Yield the modules of a file that have a part, with all their parts."""
    tensors = load_file(folder / "model.safetensors")
    for name in tensors:
        if name.endswith(f".{part}"):
            module = name.rpartition(".")[0]
            yield (
                module,
                {k.rpartition(".")[2]: v for k, v in tensors.items() if k.rpartition(".")[0] == module},
            )


def keep(folder: Path, due: dict[str, torch.Tensor]) -> None:
    """Write the numbers that are due."""
    (folder / "due").mkdir()
    save_file(
        {name: weight.contiguous().clone() for name, weight in due.items()}, folder / "due/w.safetensors"
    )


def modelopt(folder: Path, called: str) -> None:
    """Quantise with ModelOpt and export as for vLLM."""
    import modelopt.torch.quantization as mtq
    from modelopt.torch.export import export_hf_checkpoint
    from modelopt.torch.quantization.qtensor import MXFP4QTensor, NVFP4QTensor

    model = mtq.quantize(a_model(), getattr(mtq, called), forward_loop=lambda m: m(torch.arange(8)[None]))
    export_hf_checkpoint(model, export_dir=str(folder))
    due = {}
    for module, parts in modules(folder, "weight_scale"):
        codes, scale = parts["weight"], parts["weight_scale"]
        shape = torch.Size((*codes.shape[:-1], codes.shape[-1] * 2))
        if called.startswith("NVFP4"):
            how = {"scale": scale, "double_scale": parts["weight_scale_2"], "block_sizes": {-1: 16}}
            weight = NVFP4QTensor(shape, torch.float32, codes).dequantize(torch.float32, **how)
        elif "MXFP4" in called:
            how = {"scale": scale, "block_sizes": {-1: 32}}
            weight = MXFP4QTensor(shape, torch.float32, codes).dequantize(torch.float32, **how)
        else:
            weight = codes.float() * scale
        due[f"{module}.weight"] = weight
    keep(folder, due)


def compressed(folder: Path, called: str) -> None:
    """Quantise with compressed-tensors' own scales and compressors."""
    from compressed_tensors.compressors.base import BaseCompressor, compress_module
    from compressed_tensors.compressors.model_compressors.model_compressor import ModelCompressor
    from compressed_tensors.quantization import QuantizationConfig, apply_quantization_config
    from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam

    model = a_model()
    config = QuantizationConfig(config_groups={called: ["Linear"]}, ignore=["lm_head"])
    apply_quantization_config(model, config)
    due = {}
    for name, module in model.named_modules():
        scheme = getattr(module, "quantization_scheme", None)
        if scheme is None:
            continue
        args, w = scheme.weights, module.weight.data.float()
        blocks = w.unflatten(-1, (-1, args.group_size or w.shape[-1]))
        low, high = blocks.amin(-1), blocks.amax(-1)
        second = generate_gparam(w.min(), w.max()) if args.strategy == "tensor_group" else None
        scale, _ = calculate_qparams(low, high, args, second)
        module.weight_scale = torch.nn.Parameter(scale.to(module.weight_scale.dtype), requires_grad=False)
        if second is not None:
            module.weight_global_scale = torch.nn.Parameter(second, requires_grad=False)
        compress_module(module)
        compressor = BaseCompressor.get_value_from_registry(scheme.format.value)
        parts = {key: value.data for key, value in module.state_dict().items()}
        due[f"{name}.weight"] = compressor.decompress(parts, scheme)["weight"]
    # The writer of the config takes what stands on the modules.
    told = QuantizationConfig.from_pretrained(model, format=scheme_format(model))
    model.save_pretrained(folder)
    ModelCompressor(quantization_config=told).update_config(str(folder))
    keep(folder, due)


def scheme_format(model: Any) -> str:
    """Return the format of a compressed model's modules."""
    found = {
        module.quantization_scheme.format.value
        for module in model.modules()
        if hasattr(module, "quantization_scheme")
    }
    (only,) = found
    return str(only)


def torchao(folder: Path, called: str) -> None:
    """Quantise with torchao through transformers, which saves it."""
    from torchao.prototype.mx_formats import inference_workflow
    from torchao.quantization import Float8WeightOnlyConfig
    from transformers import AutoModelForCausalLM, TorchAoConfig

    a_model().save_pretrained(folder / "plain")
    kinds = {"FP8": Float8WeightOnlyConfig}
    how = kinds[called]() if called in kinds else getattr(inference_workflow, called)()
    model = AutoModelForCausalLM.from_pretrained(
        folder / "plain", quantization_config=TorchAoConfig(how), dtype=torch.bfloat16
    )
    model.save_pretrained(folder)
    due = {
        f"{name}.weight": module.weight.dequantize(torch.float32)
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear)
        and type(module.weight.data).__name__.endswith("Tensor")
        and hasattr(module.weight, "qdata")
    }
    keep(folder, due)


FORMS = {
    "modelopt NVFP4": (modelopt, "NVFP4_DEFAULT_CFG"),
    "modelopt FP8": (modelopt, "FP8_DEFAULT_CFG"),
    "modelopt MXFP4": (modelopt, "W4A8_MXFP4_FP8_CFG"),
    "compressed NVFP4": (compressed, "NVFP4A16"),
    "compressed MXFP4": (compressed, "MXFP4A16"),
    "compressed FP8": (compressed, "FP8_DYNAMIC"),
    "compressed INT4": (compressed, "W4A16"),
    "torchao NVFP4": (torchao, "NVFP4WeightOnlyConfig"),
    "torchao FP8": (torchao, "FP8"),
}


def main(place: Path, forms: list[str]) -> None:
    """Write every form, or those that are named."""
    for form in forms or FORMS:
        writer, called = FORMS[form]
        folder = place / form.replace(" ", "_")
        folder.mkdir(parents=True)
        writer(folder, called)
        with safe_open(folder / "model.safetensors", "pt") as tensors:
            print(form, len(list(tensors.keys())), "tensors")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
