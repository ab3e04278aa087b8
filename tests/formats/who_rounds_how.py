"""Who rounds how: ask every library that is installed what it makes of the same numbers, and write down the answers.

    python tests/formats/who_rounds_how.py              prints what the libraries installed here answer, as JSON
    python tests/formats/who_rounds_how.py --anew       asks the pinned versions of all of them, in a folder of their
                                                        own, and writes src/course_kernels/nvfp4/who_rounds_how.json

An answer is a text: a code and what it stands for, or `refused` and the name of the error. Nothing here says what is
right: no library is wrong that keeps to its own rule, and a program that uses two of them has to know both.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from course_kernels.nvfp4 import blocks, formats
from course_kernels.nvfp4.formats import BF16, E2M1, E4M3, E8M0, Minifloat

TABLE = Path(formats.__file__).with_name("who_rounds_how.json")
PINNED = (
    "torch==2.13.0",
    "triton==3.7.1",
    "numpy==2.4.6",
    "ml_dtypes==0.6.0",
    "jax==0.10.2",
    "safetensors==0.8.0",
    "gguf==0.19.0",
    "onnx==1.23.2",
    "nvidia-cuda-runtime==13.5.37",  # cuda_fp8.h, cuda_fp4.h
    "nvidia-cuda-crt==13.5.37",
    "nvidia-cuda-cccl==13.3.5.0.6",  # nv/target, which those include
)

INF, NAN = float("inf"), float("nan")
TO = {
    E4M3: (17.0, 1.97, 0.001, 1.5 * 2.0**-9, 2.0**-10, -0.0, 460.0, 464.0, 465.0, 480.0, 1e6, INF, -INF, NAN),
    E8M0: (
        3.0,
        0.7,
        1.25,
        1.5,
        6.0,
        2.0**-127,
        1.5 * 2.0**-127,
        2.0**-130,
        1.9 * 2.0**127,
        0.0,
        -0.0,
        -2.0,
        INF,
        NAN,
    ),
    E2M1: (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, -0.1, 7.0, INF, -INF, NAN, -NAN),
    BF16: (1.01171875, 2 / 3),
}
ORDER = "which elements byte 0 holds"
HALVES = "the same of NVFP4"
SIZES = "numbers and bytes of a block"
SHAPE = "shape in the file of 2 by 8 bytes of E2M1"
SLICE = "a slice of it"
BYTES = "a file in memory"
WAY = "instruction for E4M3"
Answers = dict[str, str]


def name_of(x: float, form: Minifloat) -> str:
    """The name of a question: a number and the format that it is rounded to."""
    text = f"{x:.6g}"
    if x != x:
        text = "-nan" if np.signbit(x) else "nan"
    elif 0 < x < 1e-2 or 1e38 < x < INF:
        power = int(np.floor(np.log2(x)))
        share = f"{x / 2.0**power:.4g} * ".removeprefix("1 * ")
        text = f"{share}2^{power}" if len(share) < 8 else text
    return f"{text} to {form.name}"


def said(code: int, form: Minifloat) -> str:
    """A code, and what it stands for."""
    number = formats.values(form)[code]
    powers = form is E8M0 and np.isfinite(number)
    digits = 2 + 2 * (form.bits > 8)
    text = f"2^{int(np.log2(number))}" if powers else f"{number:.6g}"
    return f"0x{code:0{digits}x} = {text}"


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No warnings about the numbers that are asked for on purpose."""
    with np.errstate(all="ignore"):
        yield


def one_by_one(form: Minifloat, convert: Callable[[float], int | str]) -> Answers:
    """The answers to all questions about a format; each number alone, for one that is refused takes no other along."""
    found = {}
    for x in TO[form]:
        try:
            with quiet():
                answer = convert(x)
            found[name_of(x, form)] = answer if isinstance(answer, str) else said(int(answer), form)
        except Exception as error:  # whatever a library raises is its answer
            found[name_of(x, form)] = f"refused: {type(error).__name__}"
    return found


def byte_0(holds: dict[str, int]) -> str:
    """Which element lies in which half of the first byte."""
    return f"element {holds['low']} low, element {holds['high']} high"


def of_packing(pack: Callable[[np.ndarray], bytes], block: int) -> str:
    """Which elements byte 0 holds, by what writes them: each code alone is not zero."""
    holds = {}
    for element in range(block):
        codes = np.zeros(block, np.uint8)
        codes[element] = 2
        first = pack(codes)[0]
        holds |= {"low": element} if first & 15 else {"high": element} if first >> 4 else {}
    return byte_0(holds)


def of_unpacking(unpack: Callable[[np.ndarray], np.ndarray], size: int, at: int = 0) -> str:
    """Which elements byte 0 holds, by what reads them."""
    holds = {}
    for half, byte in (("low", 0x02), ("high", 0x20)):
        given = np.zeros(size, np.uint8)
        given[at] = byte
        (holds[half],) = np.flatnonzero(unpack(given))
    return byte_0(holds)


def ask_ours() -> Answers:
    """This course's encoder."""
    found: Answers = {}
    for form in TO:
        found |= one_by_one(form, lambda x, form=form: formats.encode(np.float32([x]), form)[0])
    return found | {ORDER: of_packing(lambda codes: blocks.pack(codes).tobytes(), 32)}


def ask_torch() -> Answers:
    """torch on the CPU."""
    import torch

    types = {
        E4M3: torch.float8_e4m3fn,
        E8M0: torch.float8_e8m0fnu,
        E2M1: torch.float4_e2m1fn_x2,
        BF16: torch.bfloat16,
    }
    found: Answers = {}
    for form, kind in types.items():
        bits = torch.uint16 if form is BF16 else torch.uint8
        found |= one_by_one(
            form, lambda x, kind=kind, bits=bits: torch.tensor([x]).to(kind).view(bits).item()
        )
    with contextlib.suppress(ImportError):
        from torch.onnx._internal.exporter._type_casting import unpack_float4x2_as_uint8 as unpack

        packed = lambda given: torch.from_numpy(given).view(torch.float4_e2m1fn_x2)  # noqa: E731
        found[ORDER] = of_unpacking(lambda given: np.asarray(unpack(packed(given))).reshape(-1), 16)
    return found


def ask_ml_dtypes() -> Answers:
    """ml_dtypes, NumPy's small types."""
    import ml_dtypes

    types = {E4M3: "float8_e4m3fn", E8M0: "float8_e8m0fnu", E2M1: "float4_e2m1fn", BF16: "bfloat16"}
    found: Answers = {}
    for form, kind in types.items():
        bits = np.uint16 if form is BF16 else np.uint8
        kind = getattr(ml_dtypes, kind)
        found |= one_by_one(form, lambda x, kind=kind, bits=bits: np.float32([x]).astype(kind).view(bits)[0])
    return found


def ask_jax() -> Answers:
    """JAX on the CPU, compiled."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax
    import jax.numpy as jnp

    types = {E4M3: jnp.float8_e4m3fn, E8M0: jnp.float8_e8m0fnu, E2M1: jnp.float4_e2m1fn, BF16: jnp.bfloat16}
    found: Answers = {}
    for form, kind in types.items():
        cast = jax.jit(lambda x, kind=kind: x.astype(kind))
        bits = np.uint16 if form is BF16 else np.uint8
        found |= one_by_one(
            form, lambda x, cast=cast, bits=bits: np.asarray(cast(np.float32([x]))).view(bits)[0]
        )

    def pack(codes: np.ndarray) -> bytes:
        numbers = (
            jnp.asarray(formats.values(E2M1)[codes], jnp.float32).astype(jnp.float4_e2m1fn).reshape(-1, 2)
        )
        return np.asarray(jax.lax.bitcast_convert_type(numbers, jnp.uint8)).tobytes()

    return found | {ORDER: of_packing(pack, 32)}


def ask_onnx() -> Answers:
    """The operator Cast of ONNX as its reference runs it, and its tensors."""
    from onnx import TensorProto, helper, numpy_helper
    from onnx.reference import ReferenceEvaluator

    def cast(x: float, kind: int) -> np.ndarray:
        node = helper.make_node("Cast", ["x"], ["y"], to=kind)
        graph = helper.make_graph(
            [node],
            "cast",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
            [helper.make_tensor_value_info("y", kind, [1])],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)])
        return ReferenceEvaluator(model).run(None, {"x": np.float32([x])})[0]

    types = {
        E4M3: TensorProto.FLOAT8E4M3FN,
        E8M0: TensorProto.FLOAT8E8M0,
        E2M1: TensorProto.FLOAT4E2M1,
        BF16: TensorProto.BFLOAT16,
    }
    found: Answers = {}
    for form, kind in types.items():
        bits = np.uint16 if form is BF16 else np.uint8
        found |= one_by_one(form, lambda x, kind=kind, bits=bits: cast(x, kind).view(bits)[0])

    def pack(codes: np.ndarray) -> bytes:
        import ml_dtypes

        numbers = formats.values(E2M1)[codes].astype(np.float32).astype(ml_dtypes.float4_e2m1fn)
        return numpy_helper.from_array(numbers).raw_data

    return found | {ORDER: of_packing(pack, 32)}


def ask_gguf() -> Answers:
    """GGUF's quantisers. MXFP4 rounds a block whose largest is 4 or more, and below 8, with a scale of 1."""
    from gguf import GGMLQuantizationType as Kind
    from gguf import quants
    from gguf.constants import GGML_QUANT_SIZES

    def to_e2m1(x: float) -> int | str:
        block = np.zeros(32, np.float32)
        block[:2] = x, 4.0 if abs(x) < 8 else 0.0
        packed = quants.quantize(block, Kind.MXFP4)
        if not np.isfinite(x):
            return "all of the block is 0" if not packed.any() else "the block has another scale"
        assert packed[0] == 127  # a scale of 1
        return int(packed[1]) & 15

    def mxfp4(codes: np.ndarray) -> bytes:
        numbers = formats.values(E2M1)[codes].astype(np.float32)
        return quants.quantize(numbers, Kind.MXFP4).tobytes()[1:]  # the scale comes first

    def of_nvfp4(given: np.ndarray) -> np.ndarray:
        given[:4] = 0x38  # four scales of 1
        return quants.dequantize(given, Kind.NVFP4)

    to_e4m3 = quants.NVFP4.fp32_to_ue4m3
    sizes = {kind: GGML_QUANT_SIZES[kind] for kind in (Kind.MXFP4, Kind.NVFP4)}
    return {
        **one_by_one(E4M3, lambda x: np.ravel(to_e4m3(np.float32([x])))[0]),
        **one_by_one(E2M1, to_e2m1),
        ORDER: of_packing(mxfp4, 32),
        HALVES: of_unpacking(of_nvfp4, 36, at=4),
        SIZES: "; ".join(f"{kind.name} {n} in {size}" for kind, (n, size) in sizes.items()),
    }


def ask_safetensors() -> Answers:
    """Files of safetensors with four-bit numbers of torch in them."""
    import torch
    from safetensors import safe_open
    from safetensors.torch import load, save

    data = save({"w": torch.zeros(2, 8, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)})
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])["w"]
    found = {SHAPE: f"{header['dtype']} {header['shape']}"}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "w.safetensors")
        file.write_bytes(data)
        with safe_open(file, "pt") as opened:
            found["read back, the same"] = str(list(opened.get_tensor("w").shape))
            for question, ask in {
                SLICE: lambda: opened.get_slice("w")[:],
                BYTES: lambda: load(data)["w"],
            }.items():
                try:
                    found[question] = str(list(ask().shape))
                except Exception as error:
                    found[question] = f"refused: {type(error).__name__}"
    return found


CUDA = r"""
#include <cstdio>
#include <cstring>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
int main(int count, char **given) {
  for (int i = 1; i < count; i++) {
    unsigned bits;
    std::sscanf(given[i], "%x", &bits);
    float x;
    std::memcpy(&x, &bits, 4);
    std::printf("%d %d %d %d\n", WHAT);
  }
  __nv_fp4x2_storage_t two = __nv_cvt_float2_to_fp4x2(float2{1.0f, 6.0f}, __NV_E2M1, cudaRoundNearest);
  std::printf("%d\n", two);
}
"""
WHAT = (
    "__nv_fp8_e4m3(x).__x, __nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_E4M3), __nv_fp4_e2m1(x).__x, 0",
    "__nv_fp8_e8m0(x).__x, __nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cudaRoundZero), 0, 0",
    "__nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cudaRoundNearest), 0, 0, 0",
)


def ask_cuda() -> Answers:
    """CUDA's headers on the host: their classes, `__nv_fp8_e4m3(x)` and so on, saturate."""
    return _in_cuda()[0]


def ask_cuda_otherwise() -> Answers:
    """The same headers' functions, not saturating for E4M3 and toward zero for E8M0."""
    return _in_cuda()[1]


def ask_cuda_nearest() -> Answers:
    """The same headers' function to E8M0, to nearest; in CUDA 13.0 it had only the two other ways."""
    return _in_cuda()[2]


@functools.cache
def _in_cuda() -> tuple[Answers, Answers, Answers]:
    include = Path(str(metadata.distribution("nvidia-cuda-runtime").locate_file("nvidia/cu13/include")))

    def printed(what: str, form: Minifloat) -> list[list[int]]:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "ask.cpp").write_text(CUDA.replace("WHAT", what))
            flags = ["-O0", "-I", str(include), "-I", str(include / "cccl")]
            subprocess.run(
                ["g++", *flags, "ask.cpp", "-o", "ask"], cwd=folder, check=True, capture_output=True
            )
            bits = [f"{np.float32(x).view(np.uint32):x}" for x in TO[form]]
            done = subprocess.run([f"{folder}/ask", *bits], check=True, capture_output=True, text=True)
        return [list(map(int, line.split())) for line in done.stdout.splitlines()]

    e4m3, e2m1, e8m0 = printed(WHAT[0], E4M3), printed(WHAT[0], E2M1), printed(WHAT[1], E8M0)
    by_class, otherwise = {}, {}
    for form, rows, column in ((E4M3, e4m3, 0), (E8M0, e8m0, 0), (E2M1, e2m1, 2)):
        by_class |= {
            name_of(x, form): said(row[column], form) for x, row in zip(TO[form], rows, strict=False)
        }
    for form, rows in ((E4M3, e4m3), (E8M0, e8m0)):
        otherwise |= {name_of(x, form): said(row[1], form) for x, row in zip(TO[form], rows, strict=False)}
    by_class[ORDER] = byte_0({"low": 0, "high": 1} if e2m1[-1] == [0x72] else {"low": 1, "high": 0})
    try:
        rows = printed(WHAT[2], E8M0)
        nearest = {name_of(x, E8M0): said(row[0], E8M0) for x, row in zip(TO[E8M0], rows, strict=False)}
    except subprocess.CalledProcessError as error:  # CUDA 13.0 stops the program
        nearest = dict.fromkeys((name_of(x, E8M0) for x in TO[E8M0]), f"refused: signal {-error.returncode}")
    return by_class, otherwise, nearest


def ask_interpreter() -> Answers:
    """Triton's interpreter, `.to(tl.float8e4nv)` and `.to(tl.bfloat16)`."""
    import torch
    import triton
    import triton.language as tl

    if os.environ.get("TRITON_INTERPRET") != "1":
        raise ImportError("Triton interprets nothing here")
    to_e4m3, to_bf16 = _casts(triton, tl)

    def asked(kernel: Any, x: float, kind: Any) -> int:
        y = torch.zeros(1, dtype=kind)
        kernel[(1,)](torch.tensor([x]), y)
        return int(y.view(torch.uint8 if y.element_size() == 1 else torch.uint16).item())

    return one_by_one(E4M3, lambda x: asked(to_e4m3, x, torch.uint8)) | one_by_one(
        BF16, lambda x: asked(to_bf16, x, torch.bfloat16)
    )


def ask_compiler() -> Answers:
    """Triton's compiler for sm_90: what it makes of `.to(tl.float8e4nv)` and `.to(tl.bfloat16)`, read in PTX."""
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import who_rounds_how as w; w.print_ptx()"
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
    )
    fp8, bf16 = done.stdout.split()
    return {WAY: fp8, "instruction for BF16": bf16}


def print_ptx() -> None:
    """Print the two conversions' instructions."""
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    for kernel, short in zip(_casts(triton, tl), ("*u8", "*bf16"), strict=True):
        source = ASTSource(kernel, {"x_ptr": "*fp32", "y_ptr": short}, {})
        ptx = triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"]
        print(*set(re.findall(r"\bcvt\.\S*f32\b", ptx)))


def _casts(triton: Any, tl: Any) -> tuple[Any, Any]:
    """The two kernels, in a module of their own: Triton looks their names up where they are written."""
    import triton_casts

    return triton_casts.to_e4m3, triton_casts.to_bf16


# Who is asked: the columns of the table, what each needs, and whose version stands there.
ASKED: dict[str, tuple[str, Callable[[], Answers]]] = {
    "ours": ("", ask_ours),
    "torch": ("torch", ask_torch),
    "ml_dtypes": ("ml_dtypes", ask_ml_dtypes),
    "JAX": ("jax", ask_jax),
    "CUDA headers": ("nvidia-cuda-runtime", ask_cuda),
    "CUDA headers, otherwise": ("nvidia-cuda-runtime", ask_cuda_otherwise),
    "CUDA headers, to nearest": ("nvidia-cuda-runtime", ask_cuda_nearest),
    "ONNX": ("onnx", ask_onnx),
    "GGUF": ("gguf", ask_gguf),
    "safetensors": ("safetensors", ask_safetensors),
    "Triton, interpreted": ("triton", ask_interpreter),
    "Triton, compiled for sm_90": ("triton", ask_compiler),
}
# What stands in the CI's environment, and takes no second; the compiler is asked outside.
IN_CI = ("ours", "torch", "safetensors", "Triton, interpreted")


def ask(names: tuple[str, ...] = tuple(ASKED)) -> dict[str, Any]:
    """What those answer that are installed: versions, and for each question the answers by who was asked."""
    versions: Answers = {}
    table: dict[str, Answers] = {}
    for name in names:
        package, asked = ASKED[name]
        try:
            version = metadata.version(package).partition("+")[0] if package else ""
            answers = asked()
        except (metadata.PackageNotFoundError, ImportError) as error:
            print(f"{name}: not asked, {error}", file=sys.stderr)
            continue
        if version:
            versions[name] = f"{package} {version}"
        for question, answer in answers.items():
            table.setdefault(question, {})[name] = answer
    questions = [name_of(x, form) for form in TO for x in TO[form]]
    order = {question: number for number, question in enumerate(questions)}
    rows = sorted(table.items(), key=lambda row: order.get(row[0], len(order)))
    return {"versions": versions, "answers": dict(rows)}


def ask_pinned(folder: Path) -> dict[str, Any]:
    """The same of the pinned versions, installed into a folder."""
    python = folder / "venv/bin/python"
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    quietly = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*quietly, *PINNED], check=True)
    environment = os.environ | {"PYTHONPATH": str(TABLE.parents[2]), "TRITON_INTERPRET": "1"}
    here = [str(python), str(Path(__file__).resolve())]
    done = subprocess.run(here, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def write(table: dict[str, Any], file: Path = TABLE) -> None:
    """Write the table, whole or not at all."""
    new = file.with_suffix(".new")
    new.write_text(
        json.dumps({"made_by": "tests/formats/who_rounds_how.py"} | table, indent=1) + "\n", encoding="utf-8"
    )
    new.replace(file)


def main() -> None:
    """Print or write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--anew", action="store_true", help="ask the pinned versions and write the table")
    if parser.parse_args().anew:
        with tempfile.TemporaryDirectory() as folder:
            write(ask_pinned(Path(folder)))
    else:
        os.environ["TRITON_INTERPRET"] = "1"
        json.dump(ask(), sys.stdout, indent=1)


if __name__ == "__main__":
    main()
