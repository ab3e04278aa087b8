"""Compile the Triton kernels for cards that are not here; prints one JSON object. Run without TRITON_INTERPRET.

In a process of its own, since Triton decides at import whether it interprets or compiles.
"""

import inspect
import json
import re
import sys
from itertools import product

import triton
import triton.language as tl
from compiled import known
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource

from course_kernels.attention import k03_flash, k04_specialised
from course_kernels.attention_backward import k02_teaching as backward_teaching
from course_kernels.attention_backward import k03_one_pass as backward_one_pass
from course_kernels.attention_fp8 import k01_triton as attention_8_bits
from course_kernels.attention_fp8 import round_blocks
from course_kernels.attention_general import k01_teaching as general
from course_kernels.blackwell import dot_scaled
from course_kernels.conv2d import k01_implicit_gemm as convolution
from course_kernels.decode_attention import k01_one_program, k02_split
from course_kernels.gemm import in_gluon
from course_kernels.gemm import k05_triton as gemm_triton
from course_kernels.gemm_fp8 import k01_triton as fp8_triton
from course_kernels.grouped_gemm import k01_triton as grouped
from course_kernels.layer_norm import k02_row_split, k03_row_kept, k04_two_buffers
from course_kernels.mla_decode import k01_one_program as mla_one_program
from course_kernels.mla_decode import k02_split as mla_split
from course_kernels.moe import k02_sorted as moe_sorted
from course_kernels.moe import k03_fused as moe_fused
from course_kernels.moe import route as moe_route
from course_kernels.moe import tiles as moe_tiles
from course_kernels.nvfp4 import blocks as four_bit_blocks
from course_kernels.nvfp4 import dequantise, quantise
from course_kernels.paged_attention import k01_gather, k03_even, k04_prefill
from course_kernels.paged_attention import k02_split as paged_split
from course_kernels.qkv_rope import k02_fused
from course_kernels.reduction import k05_triton
from course_kernels.rms_norm import k02_one_read, k03_ahead
from course_kernels.sampling import k01_gumbel, k02_threshold
from course_kernels.silu import k01_fused as silu_fused
from course_kernels.skinny_gemm import k01_one_program as few_rows
from course_kernels.skinny_gemm import k02_shares, k03_dot_products
from course_kernels.skinny_gemm_fp4 import k01_one_program as few_rows_fp4
from course_kernels.skinny_gemm_fp8 import k01_one_program as few_rows_fp8
from course_kernels.skinny_gemm_fp8 import k02_shares as shares_fp8
from course_kernels.skinny_gemm_w4 import k01_triton as few_rows_w4
from course_kernels.sparse_attention import k01_dense, k02_in_pieces, k03_gathered, k04_chosen, parts
from course_kernels.speculative_sampling import k02_one_launch as accept
from course_kernels.swiglu import k01_fused as swiglu_fused
from course_kernels.vector_add import k02_triton

CAPABILITIES = (80, 89, 90, 100, 120)
SHORT = {2: "bf16", 4: "fp32"}
OF_INTEREST = (
    r"\b(USETMAXREG|HGMMA|QGMMA|UTCHMMA|HMMA|UTMALDG|UTMASTG|UTMAREDG|LDGSTS|LDG|STG|LDL|STL|ATOMG|RED|REDG|BAR|"
    r"ACQBULK|PREEXIT|CCTL)\b"
)
EVEN = ("M", "N", "K", "V", "W", "F", "apart", "outputs")  # lengths that are multiples of 16
WIDE = "LDGSTS.E.BYPASS.128"  # 16 bytes from memory to shared memory, past L1


def compiled(kernel, types, constants, capability, source=ASTSource, look=True, more_even=(), **options):
    """The counted instructions of a kernel, and the bytes of shared memory it takes.

    Args:
        more_even: lengths that are multiples of 16, beside the usual ones.
        look: at its instructions, for which the disassembler runs a third of a second.
    """
    names = kernel.arg_names
    signature = {n: types.get(n, "constexpr") for n in names}
    places = {(names.index(n),): value for n, value in constants.items()}
    # As at a launch: torch's addresses, and the lengths used here, are multiples of 16.
    lengths = (*EVEN, "each") if kernel is k01_gumbel.gumbel_kernel else (*EVEN, *more_even)
    even = [n for n, t in signature.items() if t[0] == "*" or (n in lengths and t != "constexpr")]
    attributes = {(names.index(n),): [["tt.divisibility", 16]] for n in even}
    given = source(kernel, signature, places, attributes)
    target = GPUTarget("cuda", capability, 32)
    return known(
        [
            given.hash(),
            capability,
            sorted(options.items()),
            look,
            inspect.getsource(looked_at),
            OF_INTEREST,
            WIDE,
        ],
        lambda: looked_at(triton.compile(given, target=target, options=options), look),
    )


def looked_at(result, look):
    """What `compiled` tells of a kernel."""
    if not look:
        return {"shared": result.metadata.shared}
    found = re.findall(OF_INTEREST, result.asm["sass"])
    registers = 1 + max(int(number) for number in re.findall(r"\bR(\d+)\b", result.asm["sass"]))
    room = {"shared": result.metadata.shared, "registers": registers, WIDE: result.asm["sass"].count(WIDE)}
    # Vectors of 16 bytes between memory and registers; what comes first, and how many loads before the first barrier.
    room["128"] = len(re.findall(r"\b(?:LDG|STG)\.E(?:\.EF)?\.128\b", result.asm["sass"]))
    room["order"] = list(dict.fromkeys(found))
    room["asked"] = found[: found.index("BAR")].count("LDG") if "BAR" in found else found.count("LDG")
    return room | {n: found.count(n) for n in sorted(set(found))}


SCALED_INSTRUCTION = r"\b(?:tcgen05\.(?:mma|cp|st)|mma\.sync|wgmma\.mma_async)\.[\w.:]+"


def scaled_product(form, capability):
    """What Triton makes of `tl.dot_scaled`: the instructions in its PTX, by their names; or its error."""
    given = dot_scaled.source_of(form)
    how = [given.hash(), capability, dot_scaled.WARPS, SCALED_INSTRUCTION]
    return known([*how, inspect.getsource(looked_at_product)], lambda: looked_at_product(form, capability))


def looked_at_product(form, capability):
    """What `scaled_product` tells."""
    try:
        made = dot_scaled.compiled(form, capability)
    except RuntimeError as error:
        return {"shared": 0, "error": str(error)}
    found = re.findall(SCALED_INSTRUCTION, made.ptx)
    # What tcgen05 is told of types and sizes: a product's fourth operand is a register with that number.
    named = re.findall(r"tcgen05\.mma\S* +\[[^]]*\], %rd\d+, %rd\d+, (%r\d+)", made.ptx)
    numbers = dict(re.findall(r"mov\.b32\s+(%r\d+), (\d+);", made.ptx))
    told = {"how": sorted({int(numbers[name]) for name in named}), "shared": made.shared_bytes}
    return told | {name: found.count(name) for name in sorted(set(found))}


def vector_add(capability):
    """The first Triton kernel."""
    types = dict.fromkeys(("x_ptr", "y_ptr", "z_ptr"), "*fp32") | {"N": "i32"}
    return compiled(k02_triton.vector_add_kernel, types, {"BLOCK": k02_triton.BLOCK}, capability, look=False)


def reduction(capability):
    """The sum of a vector."""
    types = {"x_ptr": "*fp32", "sums_ptr": "*fp32", "N": "i32"}
    constants = {"BLOCK": k05_triton.BLOCK, "STEPS": k05_triton.STEPS}
    options = {"num_warps": k05_triton.WARPS}
    return compiled(k05_triton.reduction_kernel, types, constants, capability, look=False, **options)


# What W3's page has counted of each language's kernel.
OF_THE_PAGE = ("HGMMA", "UTMALDG", "LDG", "LDGSTS", "SYNCS", "USETMAXREG", "STSM", "UTMASTG", "STG")


def rung(kernel, types, constants, even="", source=ASTSource, **options):
    """How often each instruction of W3's page is in a kernel of the ladder; `even`: sizes that are multiples of 16."""
    names = kernel.arg_names
    signature = {n: types.get(n, "constexpr") for n in names}
    places = {(names.index(n),): value for n, value in constants.items()}
    given = source(kernel, signature, places, {(names.index(n),): [["tt.divisibility", 16]] for n in even})

    def counts():
        made = triton.compile(given, target=GPUTarget("cuda", 90, 32), options=options)
        found = re.findall(r"\b[A-Z]+\b", made.asm["sass"])
        return {name: found.count(name) for name in OF_THE_PAGE}

    return known([given.hash(), sorted(options.items()), inspect.getsource(rung)], counts)


def rung_in_triton():
    """The multiply in Triton, as a launch at 4096 makes it."""
    tile, kernel = gemm_triton.HOPPER[2], gemm_triton.gemm_kernel
    blocks = {"A": (tile.block_m, tile.block_k), "B": (tile.block_k, tile.block_n)}
    blocks["C"] = (tile.block_m, tile.block_n // tile.strips)
    types = {name: f"tensordesc<bf16[{rows}, {columns}]>" for name, (rows, columns) in blocks.items()}
    constants = cut(tile) | {"STRIPS": tile.strips, "DTYPE": tl.bfloat16, "TURNED": False, "TMA": True}
    options = {"num_warps": tile.warps, "num_stages": tile.stages}
    return rung(kernel, types | dict.fromkeys("MNK", "i32"), constants, even="MNK", **options)


def rung_in_gluon():
    """The multiply in Gluon."""
    tile, kernel = in_gluon.BEST, in_gluon.gemm_kernel
    types = dict.fromkeys("MNK", "i32")
    for name, block in in_gluon._blocks(tile).items():
        lies = gl.NVMMASharedLayout.get_default_for(block, gl.bfloat16)
        types[name] = f"tensordesc<bf16{block},{lies!r}>"
    return rung(kernel, types, in_gluon._constants(tile), source=GluonASTSource, num_warps=4)


def cut(tile):
    """A tile of a matrix multiply as its kernel takes it."""
    return {
        "BLOCK_M": tile.block_m,
        "BLOCK_N": tile.block_n,
        "BLOCK_K": tile.block_k,
        "GROUP_M": tile.group_m,
    }


def gemm(capability, element_bytes):
    """The matrix multiply on tensor cores with the tile that such a card would get."""
    tma = capability == 90
    tile = (gemm_triton.HOPPER if tma else gemm_triton.GENERIC)[element_bytes]
    short = SHORT[element_bytes]
    m, n, k = tile.block_m, tile.block_n, tile.block_k
    turned = tma and element_bytes == 4
    blocks = {"A": (m, k), "B": (n, k) if turned else (k, n), "C": (m, n // tile.strips)}
    types = {x: f"tensordesc<{short}[{r}, {c}]>" if tma else f"*{short}" for x, (r, c) in blocks.items()}
    types |= dict.fromkeys("MNK", "i32")
    constants = cut(tile) | {"STRIPS": tile.strips, "TURNED": turned, "TMA": tma}
    constants["DTYPE"] = tl.bfloat16 if element_bytes == 2 else tl.float32
    options = {"num_warps": tile.warps, "num_stages": tile.stages}
    return compiled(gemm_triton.gemm_kernel, types, constants, capability, **options)


def gemm_fp8(capability):
    """The matrix multiply of 8-bit numbers with the tile that such a card would get."""
    tma = capability == 90
    tile = fp8_triton.HOPPER if tma else fp8_triton.GENERIC
    blocks = {"A": (tile.block_m, tile.block_k), "B": (tile.block_n, tile.block_k)}
    types = {x: f"tensordesc<fp8e4nv[{r}, {c}]>" if tma else "*fp8e4nv" for x, (r, c) in blocks.items()}
    types["C"] = f"tensordesc<bf16[{tile.block_m}, {tile.block_n}]>" if tma else "*bf16"
    types |= {"scale_a_ptr": "*fp32", "scale_b_ptr": "*fp32"} | dict.fromkeys("MNK", "i32")
    options = {"num_warps": tile.warps, "num_stages": tile.stages}
    return compiled(fp8_triton.gemm_fp8_kernel, types, cut(tile) | {"TMA": tma}, capability, **options)


def grouped_gemm(capability, masked):
    """The multiply of groups of rows, with the tile of one form of them."""
    tile = grouped.MASKED if masked else grouped.CONTIGUOUS
    types = (
        dict.fromkeys("AB", "*fp8e4nv") | {"C": "*bf16", "groups_ptr": "*i32"} | dict.fromkeys("MNK", "i32")
    )
    types |= dict.fromkeys(("scale_a_ptr", "scale_b_ptr"), "*fp32")
    constants = {"MASKED": masked, "BLOCK_M": tile.block_m, "BLOCK": 128, "GROUP_M": tile.group_m}
    options = {"num_warps": tile.warps, "num_stages": tile.stages}
    return compiled(grouped.grouped_gemm_kernel, types, constants, capability, **options)


def attention(capability, element_bytes, D, causal):
    """The tuned attention kernel with the tile that such a card would get."""
    tile = (k03_flash.HOPPER if capability == 90 else k03_flash.GENERIC)[element_bytes, D]
    short = SHORT[element_bytes]
    rows = {"Q": tile.block_m, "K": tile.block_n, "V": tile.block_n, "O": tile.block_m}
    types = {n: f"tensordesc<{short}[1, {r}, {D}]>" if tile.tma else f"*{short}" for n, r in rows.items()}
    types |= {"lse_ptr": "*fp32", "N": "i32", "scale": "fp32", "ln_2": "fp32"}
    constants = {"D": D, "CAUSAL": causal, "BLOCK_M": tile.block_m, "BLOCK_N": tile.block_n, "TMA": tile.tma}
    constants["PRECISION"] = "tf32x3" if element_bytes == 4 else "tf32"
    options = {"num_warps": tile.warps, "num_stages": tile.stages}
    options |= {"maxnreg": tile.registers} if tile.registers else {}
    return compiled(k03_flash.attention_kernel, types, constants, capability, **options)


def attention_fp8(capability, causal):
    """Attention of 8-bit numbers with the tile that such a card would get."""
    tile, D = attention_8_bits.HOPPER if capability == 90 else attention_8_bits.GENERIC, 128
    block, kernel = attention_8_bits.BLOCK, attention_8_bits.attention_fp8_kernel
    blocks = {"Q": (tile.block_m, D), "K": (block, D), "VT": (D, block), "O": (tile.block_m, D)}
    types = {}
    for name, (rows, columns) in blocks.items():
        short = "bf16" if name == "O" else "fp8e4nv"
        types[name] = f"tensordesc<{short}[1, {rows}, {columns}]>" if tile.tma else f"*{short}"
    types |= {f"scale_{x}_ptr": "*fp32" for x in "qkv"} | {"N": "i32", "scale": "fp32"}
    constants = {"D": D, "CAUSAL": causal, "BLOCK_M": tile.block_m, "BLOCK": block, "TMA": tile.tma}
    constants["SHIFT"] = attention_8_bits.SHIFT
    return compiled(kernel, types, constants, capability, num_warps=tile.warps, num_stages=tile.stages)


def rounded_blocks(capability, turned):
    """Rows as 8-bit numbers with a scale for each block, as they lay or transposed."""
    types = {"X": "*bf16", "Y": "*fp8e4nv", "scale_ptr": "*fp32", "N": "i32"}
    constants = {"D": 128, "BLOCK": round_blocks.BLOCK, "LARGEST": round_blocks.LARGEST, "TURNED": turned}
    return compiled(
        round_blocks.round_blocks_kernel, types, constants, capability, num_warps=round_blocks.WARPS
    )


def decode_attention(capability, kernel, element_bytes, share, D):
    """One of the kernels of a step of decoding: in one program a head, or in parts."""
    short = SHORT[element_bytes]
    types = dict.fromkeys("QKVO", f"*{short}") | {"lengths_ptr": "*i32", "N": "i32", "scale": "fp32"}
    constants = k01_one_program.constants_of(element_bytes, share, D)
    options = {name: constants.pop(name) for name in ("num_warps", "num_stages")}
    if kernel is k02_split.split_kernel:
        types |= {"parts": "*fp32", "tickets": "*i32"}
        constants |= k02_split.merge_constants_of(share)
    return compiled(kernel, types, constants, capability, **options)


def few_rows_of(capability, rows, bits, shares):
    """A few rows times a large matrix, with the tile for so many rows: one program a tile, or equal shares."""
    one, several = (few_rows, k02_shares) if bits == 16 else (few_rows_fp8, shares_fp8)
    kernel, tile = several.shares_kernel if shares else one.one_program_kernel, one.TILES[rows]
    types = dict.fromkeys("XW", "*bf16" if bits == 16 else "*fp8e4nv") | {"Y": "*bf16", "tickets": "*i32"}
    types |= dict.fromkeys(("scale_x_ptr", "scale_w_ptr", "parts"), "*fp32")
    types |= dict.fromkeys(("M", "N", "K", "each", "more"), "i32")
    types = {n: t for n, t in types.items() if n in kernel.arg_names}
    constants = {"ROWS": rows, "BLOCK_N": tile.block_n, "BLOCK_K": tile.block_k}
    return compiled(kernel, types, constants, capability, num_warps=tile.warps, num_stages=tile.stages)


def dot_products(capability, rows):
    """A few rows times a large matrix, without tensor cores."""
    tile = k03_dot_products.TILES[rows]
    types = dict.fromkeys("XWY", "*bf16") | dict.fromkeys("MNK", "i32")
    constants = {"ROWS": rows, "BLOCK_N": tile.block_n, "BLOCK_K": tile.block_k}
    return compiled(k03_dot_products.dot_products_kernel, types, constants, capability, num_warps=tile.warps)


def four_bits(capability, rows):
    """A few rows times 4-bit weights."""
    types = (
        dict.fromkeys(("X", "scales_ptr", "Y"), "*bf16") | {"words_ptr": "*i32"} | dict.fromkeys("MNK", "i32")
    )
    options = {"num_warps": few_rows_w4.WARPS, "num_stages": few_rows_w4.STAGES}
    pattern, less = few_rows_w4.PATTERNS[few_rows_w4.torch.bfloat16]
    constants = {"TILES": few_rows_w4.TILES, "ROWS": rows, "PATTERN": pattern, "LESS": less}
    return compiled(few_rows_w4.w4_kernel, types, constants, capability, **options)


def nvfp4_weights(capability, rows):
    """A few rows times NVFP4 weights."""
    types = dict.fromkeys("XY", "*bf16") | {"words_ptr": "*i32", "scales_ptr": "*u8", "second_ptr": "*fp32"}
    options = {"num_warps": few_rows_fp4.WARPS, "num_stages": few_rows_fp4.STAGES}
    constants = {"TILES": few_rows_fp4.TILES, "ROWS": rows, "MULTIPLIED": few_rows_fp4.MULTIPLIED}
    types |= dict.fromkeys("MNK", "i32")
    return compiled(few_rows_fp4.fp4_kernel, types, constants, capability, **options)


def blocks_of_four_bits(capability, module, form, short):
    """A matrix of such a type into blocks of four-bit numbers, or back."""
    kernel = quantise.quantise_kernel if module is quantise else dequantise.dequantise_kernel
    types = {
        "x_ptr": f"*{short}",
        "second_ptr": "*fp32",
        "codes_ptr": "*u8",
        "scales_ptr": "*u8",
        "BLOCKS": "i32",
    }
    constants = {"BLOCK": form.block, "PROGRAM": module.NUMBERS // form.block, "NV": form.has_second}
    return compiled(kernel, types, constants, capability, num_warps=module.WARPS)


def largest_of_all(capability):
    """The largest finite magnitude of a tensor."""
    types, constants = {"x_ptr": "*bf16", "largest_ptr": "*i32", "N": "i32"}, {"NUMBERS": quantise.NUMBERS}
    return compiled(quantise.largest_kernel, types, constants, capability, num_warps=quantise.WARPS)


def rms_norm(capability, kernel, N, warps, pdl=False):
    """The norm of rows of N numbers in bfloat16, with the residual, many rows."""
    types = dict.fromkeys(("x_ptr", "r_ptr", "g_ptr", "y_ptr", "s_ptr"), "*bf16")
    types |= {"N": "i32", "epsilon": "fp32"}
    constants = {"ADD": True, "BLOCK": N, "ONCE": k02_one_read.once_for(16384, N, 2)}
    if kernel is k03_ahead.ahead_kernel:
        return compiled(kernel, types | {"M": "i32"}, constants, capability, num_warps=warps)
    return compiled(kernel, types, constants | {"PDL": pdl}, capability, num_warps=warps, launch_pdl=pdl)


def layer_norm(capability):
    """A part of a long row."""
    types = {"x_ptr": "*fp32", "parts_ptr": "*fp32", "N": "i32", "PARTS": "i32", "LENGTH": "i32"}
    constants, options = {"BLOCK": k02_row_split.BLOCK}, {"num_warps": k02_row_split.WARPS}
    return compiled(k02_row_split.part_kernel, types, constants, capability, more_even=("LENGTH",), **options)


def rows_kept(capability, buffers):
    """A row that is read once: kept in registers, or brought while the one before is worked on."""
    types = dict.fromkeys(("x_ptr", "g_ptr", "b_ptr", "y_ptr"), "*fp32") | {"N": "i32", "epsilon": "fp32"}
    constants, kernel = {"BLOCK": 4096}, k03_row_kept.row_kept_kernel
    options = {"num_warps": 4096 // k03_row_kept.A_WARP}
    if buffers:
        types, kernel = types | {"M": "i32"}, k04_two_buffers.two_buffers_kernel
        constants |= {"STAGES": k04_two_buffers.STAGES if buffers > 1 else 1}
        options = {"num_warps": 4096 // k04_two_buffers.A_WARP}
    return compiled(kernel, types, constants, capability, **options)


def conv2d(capability, precision):
    """The first layer of a network of 2012: 96 filters of 11 x 11 over three channels."""
    types = dict.fromkeys(("x_ptr", "f_ptr", "bias_ptr", "y_ptr"), "*fp32")
    types |= dict.fromkeys(("B", "H", "W", "K", "P", "Q", "stride", "padding"), "i32")
    constants = {
        "C": 3,
        "R": 11,
        "S": 11,
        "FILTERS": 128,
        "PLACES": convolution.PLACES,
        "PRECISION": precision,
    }
    constants |= {"STEP": convolution.STEP[precision]}
    options = {"num_warps": convolution.WARPS, "num_stages": convolution.STAGES}
    return compiled(convolution.implicit_gemm_kernel, types, constants, capability, **options)


def silu(capability):
    """A number and its own gate."""
    types = dict.fromkeys(("x_ptr", "y_ptr"), "*bf16") | {"N": "i32"}
    options = {"num_warps": silu_fused.WARPS}
    return compiled(silu_fused.silu_kernel, types, {"BLOCK": silu_fused.BLOCK}, capability, **options)


def swiglu(capability, block, pdl=False):
    """The gate of a feed-forward block."""
    types = dict.fromkeys(("gate_ptr", "up_ptr", "y_ptr"), "*bf16") | {"F": "i32", "apart": "i32"}
    constants = {"BLOCK": block, "ONCE": "evict_first", "PDL": pdl}
    options = {"num_warps": swiglu_fused.WARPS, "launch_pdl": pdl}
    return compiled(swiglu_fused.swiglu_kernel, types, constants, capability, **options)


def qkv_rope(capability, element_bytes, B, splits, turned=False, pdl=False):
    """How a step of decoding begins a layer, into the cache."""
    constants = k02_fused.constants_of(element_bytes, B, 128, turned=turned)
    options = {name: constants.pop(name) for name in ("num_warps", "num_stages")}
    types = dict.fromkeys(("X", "G", "weights", "Q", "K", "V"), f"*{SHORT[element_bytes]}")
    types |= dict.fromkeys(("B", "W", "H", "KV", "P", "N"), "i32")
    types |= dict.fromkeys(("positions_ptr", "tickets"), "*i32") | {"epsilon": "fp32"}
    types |= dict.fromkeys(("cos_ptr", "sin_ptr", "parts"), "*fp32")
    constants |= {"SPLITS": splits, "INTO_CACHE": True, "PDL": pdl}
    options |= {"look": capability == 90, "launch_pdl": pdl}
    return compiled(k02_fused.fused_kernel, types, constants, capability, **options)


def paged_attention(capability, kernel, cache_bytes, share, D, page):
    """One of the kernels over pages: in one program a head, or in parts."""
    types = dict.fromkeys("QO", "*bf16") | {"MOST": "i32", "scale": "fp32"}
    types |= dict.fromkeys("KV", "*fp8e4nv" if cache_bytes == 1 else "*bf16")
    types |= dict.fromkeys(("table_ptr", "lengths_ptr"), "*i32")
    in_16_bits = k01_gather.LARGE if capability == 90 else k01_gather.SMALL
    loop = k01_gather.OF_8 if cache_bytes == 1 else in_16_bits
    constants = k01_gather.constants_of(loop, cache_bytes, share, D, page)
    options = {name: constants.pop(name) for name in ("num_warps", "num_stages")}
    if cache_bytes == 1:
        types |= dict.fromkeys(("k_scale_ptr", "v_scale_ptr"), "*fp32")
    else:
        constants |= dict.fromkeys(("k_scale_ptr", "v_scale_ptr"))
    if kernel is not k01_gather.gather_kernel:
        types |= {"parts": "*fp32", "tickets": "*i32"}
        constants |= paged_split.merge_constants_of(loop, share)
        options |= {"maxnreg": constants.pop("maxnreg")} if "maxnreg" in constants else {}
    if kernel is k03_even.even_kernel:
        types |= {"B": "i32", "heads": "i32"}
        constants["SEQUENCES"] = 64
    return compiled(kernel, types, constants, capability, **options)


def mla_decode(capability, kernel, H):
    """One row for all heads, over pages: in one program a block of heads, or in parts."""
    types = dict.fromkeys(("Q", "cache", "O"), "*bf16") | dict.fromkeys(("table_ptr", "lengths_ptr"), "*i32")
    types |= {"H": "i32", "MOST": "i32", "scale": "fp32"}
    if kernel is mla_split.split_kernel:
        types |= dict.fromkeys(("parts", "part_lse"), "*fp32")
    constants = mla_one_program.constants_of(H)
    options = {name: constants.pop(name) for name in ("num_warps", "num_stages")}
    return compiled(kernel, types, constants, capability, **options)


def paged_prefill(capability, cache_bytes):
    """Many new tokens over pages."""
    types = dict.fromkeys("QO", "*bf16") | {"MOST": "i32", "M": "i32", "scale": "fp32"}
    types |= dict.fromkeys("KV", "*fp8e4nv" if cache_bytes == 1 else "*bf16")
    types |= dict.fromkeys(("table_ptr", "lengths_ptr"), "*i32")
    scales = ("k_scale_ptr", "v_scale_ptr")
    constants = {"SHARE": 4, "ROWS": k04_prefill.ROWS, "D": 128, "PAGE": 16, "STEP": k04_prefill.STEP}
    constants["SHORT"] = cache_bytes == 1
    types, constants = (
        (types | dict.fromkeys(scales, "*fp32"), constants)
        if cache_bytes == 1
        else (types, constants | dict.fromkeys(scales))
    )
    options = {"num_warps": k04_prefill.WARPS, "num_stages": k04_prefill.STAGES}
    return compiled(k04_prefill.prefill_kernel, types, constants, capability, **options)


def sparse_attention(capability, kernel, loop=None, digit=None):
    """A kernel of attention over chosen tokens: one that attends, scores, merges, or chooses."""
    types = dict.fromkeys(("Q", "C", "O", "IQ", "IK"), "*bf16") | dict.fromkeys(("K", "N", "H", "H_I"), "i32")
    types |= dict.fromkeys(("W", "parts", "scores"), "*fp32") | {"scale": "fp32"}
    types |= dict.fromkeys(("tokens", "splits"), "i32")
    types |= dict.fromkeys(("counts", "larger", "found"), "*i32")
    types["chosen"] = "*i64" if kernel is k03_gathered.gathered_kernel else "*i32"
    options = {"num_warps": 4}
    if loop:
        constants = {"HEADS": loop.heads, "STEP": loop.step, "LATENT": 512, "POSITION": 64, "ALONE": False}
        options = {"num_warps": loop.warps, "num_stages": loop.stages}
    elif kernel is k02_in_pieces.scores_kernel:
        constants = {"HEADS": 64, "TILE": k02_in_pieces.TILE, "INDEX_WIDTH": 128}
        options = {"num_warps": k02_in_pieces.WARPS, "num_stages": k02_in_pieces.STAGES}
    elif kernel is parts.merge_kernel:
        constants = {"LATENT": 512, "MERGED": parts.MERGED}
    else:
        constants = {"CHUNK": k04_chosen.CHUNK, "ROWS": k04_chosen.ROWS}
        constants |= {"DIGITS": k04_chosen.DIGITS} if digit is None else {"DIGIT": digit}
        options = {"num_warps": k04_chosen.WARPS}
    types = {name: kind for name, kind in types.items() if name in kernel.arg_names}
    return compiled(kernel, types, constants, capability, look=capability == 90, **options)


def sampling(capability, kernel, short):
    """A kernel of sampling, for logits of such a type."""
    types = {"X": f"*{short}", "temperature_ptr": "*fp32", "seeds_ptr": "*i64", "steps_ptr": "*i32"}
    types |= {"tokens_ptr": "*i64", "V": "i32"}
    if kernel is k01_gumbel.gumbel_kernel:
        types |= {"scores": "*fp32", "places": "*i32", "tickets": "*i32", "each": "i32"}
        constants, warps = {"PARTS": 64, "BLOCK": k01_gumbel.BLOCK}, k01_gumbel.WARPS
    else:
        types |= {"top_k_ptr": "*i32", "top_p_ptr": "*fp32"}
        constants = {"HAS_K": True, "HAS_P": True, "BLOCK": k02_threshold.BLOCK}
        warps = k02_threshold.WARPS
    return compiled(kernel, types, constants, capability, num_warps=warps)


def speculative_sampling(capability, V):
    """The kernel that accepts drafts, of four drafted tokens."""
    pointers = {"drafted": "*i64", "tokens": "*i64", "accepted": "*i64"}
    pointers |= dict.fromkeys(("target", "draft", "temperature", "uniforms"), "*fp32")
    block = min(accept.BLOCK, max(triton.next_power_of_2(V), 128))
    constants = {"K": 4, "PLACES": 8, "BLOCK": block, "BLOCKS": triton.next_power_of_2(triton.cdiv(V, block))}
    kernel = accept.speculative_sampling_kernel
    return compiled(kernel, pointers | {"V": "i32"}, constants, capability, num_warps=accept.WARPS)


def attention_backward(capability, which, element_bytes, D, causal):
    """A kernel of attention's backward pass, with the tile that such a card would get: of keys, of rows, or in one."""
    module = backward_one_pass if which == "one_pass" else backward_teaching
    cut = (module.HOPPER if capability == 90 else module.GENERIC)[element_bytes, D]
    constants = {"D": D, "CAUSAL": causal, "PRECISION": "tf32x3" if element_bytes == 4 else "tf32"}
    if which == "one_pass":
        kernel, tile, tma = module.one_pass_kernel, cut, cut.tma
        constants |= {"KEYS": tile.keys, "ROWS": tile.rows, "SHORT": False, "TMA": tma}
    elif which == "keys":
        kernel, tile, tma = module.keys_kernel, cut[0], False
        constants |= {"KEYS": tile.owned, "ROWS": tile.passing}
    else:
        kernel, tile, tma = module.rows_kernel, cut[1], False
        constants |= {"ROWS": tile.owned, "KEYS": tile.passing}
    short, keys, rows = SHORT[element_bytes], constants["KEYS"], constants["ROWS"]
    blocks = {
        "Q": (short, rows),
        "K": (short, keys),
        "V": (short, keys),
        "dO": (short, rows),
        "dQ_sum": ("fp32", rows),
    }
    types = {n: f"tensordesc<{t}[1, {r}, {D}]>" if tma else f"*{t}" for n, (t, r) in blocks.items()}
    types |= dict.fromkeys(("dQ", "dK", "dV"), f"*{short}") | dict.fromkeys(("lse_ptr", "delta_ptr"), "*fp32")
    types |= dict.fromkeys(("scale", "log2_e", "of_scores"), "fp32") | {"N": "i32"}
    types = {n: t for n, t in types.items() if n in kernel.arg_names}
    return compiled(kernel, types, constants, capability, num_warps=tile.warps, num_stages=tile.stages)


def attention_general(capability, element_bytes, D):
    """Attention over packed sequences, causal and with a window."""
    columns = triton.next_power_of_2(D)
    tile = general.TILES[element_bytes, columns]
    types = dict.fromkeys("QKVO", f"*{SHORT[element_bytes]}") | {"lse_ptr": "*fp32"}
    types |= dict.fromkeys(("starts_q", "starts_k"), "*i32") | dict.fromkeys(("scale", "ln_2"), "fp32")
    types |= dict.fromkeys(("T", "heads", "kv_heads", "window"), "i32")
    constants = {"D": D, "COLUMNS": columns, "CAUSAL": True, "WINDOW": True}
    constants |= {"BLOCK_M": tile.block_m, "BLOCK_N": tile.block_n}
    constants["PRECISION"] = "tf32x3" if element_bytes == 4 else "tf32"
    options = {"num_warps": tile.warps, "num_stages": tile.stages}
    return compiled(general.attention_general_kernel, types, constants, capability, **options)


def specialised(D, causal):
    """The attention kernel whose warps have roles, for Hopper."""
    tile = k04_specialised.TILES[D]
    rows = {"Q": 64, "K": tile.block_n, "V": tile.block_n, "O": 64}
    types = {n: f"tensordesc<bf16[1, {r}, {D}],{layout(r, D)!r}>" for n, r in rows.items()}
    types |= {"lse_ptr": "*fp32", "N": "i32", "scale": "fp32", "ln_2": "fp32"}
    constants = {"D": D, "CAUSAL": causal, "CONSUMERS": tile.consumers, "BLOCK_N": tile.block_n}
    constants |= {"STAGES": tile.stages, "TAKE_TURNS": tile.take_turns, "REGISTERS": tile.registers}
    kernel = k04_specialised.attention_kernel
    return compiled(kernel, types, constants, 90, source=GluonASTSource, num_warps=4)


def moe(capability, kernel, rows):
    """A multiply over all experts of a mixture, with the tile of so many rows that such a card would get."""
    tma = capability == 90
    tile = (moe_tiles.HOPPER if tma else moe_tiles.GENERIC)[rows]
    of_gate = kernel is moe_fused.gate_up_kernel
    columns = tile.block_n // 2 if of_gate else tile.block_n
    blocks = dict.fromkeys("AH", (tile.block_m, tile.block_k)) | {"W": (columns, tile.block_k)}
    types = {x: f"tensordesc<bf16[{r}, {c}]>" if tma else "*bf16" for x, (r, c) in blocks.items()}
    types |= dict.fromkeys("CPX" + "H" * of_gate, "*bf16") | dict.fromkeys("EFDNK", "i32")
    types |= {"weights_ptr": "*fp32", "order_ptr": "*i32", "starts_ptr": "*i32"}
    constants = {"E_PAD": 128, "BLOCK_M": tile.block_m, "BLOCK_K": tile.block_k, "TMA": tma}
    constants |= {"TOP_K": 8, "BLOCK_F": columns} if of_gate else {"BLOCK_N": columns}
    types = {name: t for name, t in types.items() if name in kernel.arg_names}
    options = {"num_warps": tile.warps, "num_stages": tile.stages}
    return compiled(kernel, types, constants, capability, more_even="DE", **options)


def moe_router():
    """The router of a mixture of 128 experts, on Hopper."""
    types = {"X": "*bf16", "R": "*bf16", "who_ptr": "*i32", "weights_ptr": "*fp32"} | dict.fromkeys(
        "TDE", "i32"
    )
    constants = {"TOP_K": 8, "K_PAD": 8, "E_PAD": 128, "BLOCK_T": moe_route.BLOCK_T}
    constants["BLOCK_D"] = moe_route.ROUTER_TILE // 128
    options = {"num_warps": 4, "num_stages": moe_route.ROUTER_STAGES}
    return compiled(moe_route.router_kernel, types, constants, 90, more_even="DE", **options)


def layout(rows, D):
    """How a tile lies in shared memory."""
    return gl.NVMMASharedLayout.get_default_for([1, rows, D], gl.bfloat16)


if __name__ == "__main__":
    results = {"rung-triton": rung_in_triton(), "rung-gluon": rung_in_gluon()}
    for capability in CAPABILITIES:
        results[f"vector_add-{capability}"] = vector_add(capability)
        results[f"reduction-{capability}"] = reduction(capability)
        results[f"attention-2-128-causal-{capability}"] = attention(capability, 2, 128, True)
        for element_bytes in (2, 4):
            results[f"gemm-{element_bytes}-{capability}"] = gemm(capability, element_bytes)
        if capability >= 89:
            results[f"gemm_fp8-{capability}"] = gemm_fp8(capability)
            results[f"attention_fp8-causal-{capability}"] = attention_fp8(capability, True)
        for number, kernel in enumerate((k01_one_program.one_program_kernel, k02_split.split_kernel), 1):
            name = f"decode_attention-k0{number}-2-4-128-{capability}"
            results[name] = decode_attention(capability, kernel, 2, 4, 128)
    results["attention_fp8-full-90"] = attention_fp8(90, False)
    for turned in (False, True):
        results[f"round_blocks-{turned}-90"] = rounded_blocks(90, turned)
    for form in ("contiguous", "masked"):
        results[f"gemm_grouped-{form}-90"] = grouped_gemm(90, form == "masked")
    for element_bytes, share, D in (
        (2, 1, 128),
        (2, 8, 128),
        (2, 32, 128),
        (2, 64, 128),
        (2, 4, 64),
        (4, 4, 128),
    ):
        name = f"decode_attention-k02-{element_bytes}-{share}-{D}-90"
        results[name] = decode_attention(90, k02_split.split_kernel, element_bytes, share, D)
    for rows in few_rows.TILES:
        for bits in (16, 8):
            results[f"skinny_gemm-{bits}-k02-{rows}-90"] = few_rows_of(90, rows, bits, True)
    results["skinny_gemm-16-k01-16-90"] = few_rows_of(90, 16, 16, False)
    for rows in k03_dot_products.TILES:
        results[f"skinny_gemm-16-k03-{rows}-90"] = dot_products(90, rows)
    results["skinny_gemm-4-k01-16-90"] = four_bits(90, 16)
    results["skinny_gemm-nvfp4-k01-16-90"] = nvfp4_weights(90, 16)
    for form in (four_bit_blocks.NVFP4, four_bit_blocks.MXFP4):
        results[f"quantise-{form.name}-90"] = blocks_of_four_bits(90, quantise, form, "bf16")
    results["dequantise-NVFP4-90"] = blocks_of_four_bits(90, dequantise, four_bit_blocks.NVFP4, "bf16")
    results["largest-90"] = largest_of_all(90)
    for rows in (16, 128):
        results[f"moe-gate_up-{rows}-90"] = moe(90, moe_fused.gate_up_kernel, rows)
        results[f"moe-down-{rows}-90"] = moe(90, moe_fused.down_kernel, rows)
    results["moe-grouped-128-90"] = moe(90, moe_sorted.grouped_kernel, 128)
    results["moe-gate_up-128-89"] = moe(89, moe_fused.gate_up_kernel, 128)
    results["moe-router-90"] = moe_router()
    results["layer_norm-part-90"] = layer_norm(90)
    for buffers in (0, 1, 2):
        results[f"layer_norm-kept-{buffers}-90"] = rows_kept(90, buffers)
    for precision in ("tf32", "ieee"):
        results[f"conv2d-{precision}-90"] = conv2d(90, precision)
    results["rms_norm-k02-90"] = rms_norm(90, k02_one_read.one_read_kernel, 4096, 4)
    results["rms_norm-k02-pdl-90"] = rms_norm(90, k02_one_read.one_read_kernel, 4096, 16, pdl=True)
    results["rms_norm-k03-90"] = rms_norm(90, k03_ahead.ahead_kernel, 4096, 8)
    results["silu-90"] = silu(90)
    results["swiglu-90"] = swiglu(90, swiglu_fused.BLOCK)
    results["swiglu-pdl-90"] = swiglu(90, swiglu_fused.SMALL_BLOCK, pdl=True)
    results["qkv_rope-turned-90"] = qkv_rope(90, 2, 32, 1, turned=True)
    results["qkv_rope-pdl-90"] = qkv_rope(90, 2, 1, 1, pdl=True)
    for element_bytes, B, splits, capability in (
        (2, 1, 1, 90),
        (2, 32, 2, 90),
        (4, 32, 2, 90),
        (2, 32, 2, 89),
    ):
        name = f"qkv_rope-{element_bytes}-{B}-{splits}-{capability}"
        results[name] = qkv_rope(capability, element_bytes, B, splits)
    for kernel, cache_bytes, share, D, page, capability in (
        (k01_gather.gather_kernel, 2, 4, 128, 16, 90),
        (paged_split.split_kernel, 2, 4, 128, 16, 90),
        (paged_split.split_kernel, 2, 8, 64, 256, 90),
        (paged_split.split_kernel, 2, 32, 128, 8, 90),
        (paged_split.split_kernel, 1, 4, 128, 16, 90),
        (paged_split.split_kernel, 2, 4, 128, 16, 89),
        (k03_even.even_kernel, 2, 4, 128, 16, 90),
        (k03_even.even_kernel, 1, 4, 128, 16, 90),
    ):
        name = f"paged_attention-{kernel.__name__}-{cache_bytes}-{share}-{D}-{page}-{capability}"
        results[name] = paged_attention(capability, kernel, cache_bytes, share, D, page)
    for kernel, H in (
        (mla_one_program.one_program_kernel, 128),
        (mla_split.split_kernel, 128),
        (mla_split.split_kernel, 16),
    ):
        results[f"mla_decode-{kernel.__name__}-{H}-90"] = mla_decode(90, kernel, H)
    for cache_bytes, capability in ((2, 90), (1, 90), (2, 89)):
        results[f"paged_prefill-{cache_bytes}-{capability}"] = paged_prefill(capability, cache_bytes)
    for kernel, loop, capability in (
        (k01_dense.dense_kernel, parts.WIDE, 90),
        (k03_gathered.gathered_kernel, parts.WIDE, 90),
        (k03_gathered.gathered_kernel, parts.NARROW, 90),
        (k03_gathered.gathered_kernel, parts.NARROW, 89),
        (k02_in_pieces.scores_kernel, None, 90),
        (k02_in_pieces.scores_kernel, None, 89),
        (parts.merge_kernel, None, 90),
        (k04_chosen.place_kernel, None, 90),
    ):
        name = f"sparse_attention-{kernel.__name__}-{loop.heads if loop else 0}-{capability}"
        results[name] = sparse_attention(capability, kernel, loop)
    last = k04_chosen.DIGITS - 1
    results["sparse_attention-digit_kernel-90"] = sparse_attention(90, k04_chosen.digit_kernel, digit=last)
    for kernel in (k01_gumbel.gumbel_kernel, k02_threshold.threshold_kernel):
        for short in ("bf16", "fp32"):
            results[f"sampling-{kernel.__name__}-{short}-90"] = sampling(90, kernel, short)
    for V in (128256, 264):
        results[f"speculative_sampling-{V}-90"] = speculative_sampling(90, V)
    for element_bytes, D, capability in ((2, 96, 90), (4, 256, 89)):
        name = f"attention_general-{element_bytes}-{D}-{capability}"
        results[name] = attention_general(capability, element_bytes, D)
    for which, element_bytes, D, capability in (
        ("keys", 2, 128, 90),
        ("rows", 2, 128, 90),
        ("one_pass", 2, 128, 90),
        ("one_pass", 2, 64, 90),
        ("one_pass", 4, 128, 89),
    ):
        name = f"attention_backward-{which}-{element_bytes}-{D}-{capability}"
        results[name] = attention_backward(capability, which, element_bytes, D, True)
    for D, causal in ((128, False), (64, True), (64, False)):
        name = f"attention-2-{D}-{'causal' if causal else 'full'}-90"
        results[name] = attention(90, 2, D, causal)
    for D, causal in ((128, False), (128, True), (64, False), (64, True)):
        results[f"specialised-{D}-{'causal' if causal else 'full'}-90"] = specialised(D, causal)
    for capability, D in ((90, 64), (90, 128), (80, 64), (80, 128)):
        results[f"attention-4-{D}-full-{capability}"] = attention(capability, 4, D, False)
    for form, capability in product(dot_scaled.FORMS, (90, 100, 120)):
        results[f"dot_scaled-{form}-{capability}"] = scaled_product(form, capability)
    json.dump(results, sys.stdout)
