"""Listings of compilers, as lines that can be counted: a TPU's bundles, AMD's and NVIDIA's instructions.

A line is one instruction, on a TPU one bundle: all that is begun in the same cycle. Comments, directives and whatever
names a folder of the machine that compiled are left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from course_kernels.gemm.listing import instructions

# What multiplies matrices, by how its name begins.
MATRIX = ("vmatmul", "v_mfma", "v_wmma", "HMMA", "HGMMA", "UTCHMMA", "dpas")

_INNERMOST_COMMENT = re.compile(r"/\*(?:(?!/\*|\*/).)*\*/", re.DOTALL)
_BUNDLE = re.compile(r"^ *(?:0x)?[0-9a-f]+ +(?:[A-Z]{2})?: ", re.MULTILINE)
_OPERATION = re.compile(r"(?:[%\w, ]+ = )?(?P<name>[a-z][\w.]*)")
_AMD = re.compile(r"^\s+(?P<name>(?:v|s|ds|buffer|global|flat|scratch|tensor|image)_\w+)")
_AMD_LABEL = re.compile(r"^(?:\.L\w+|\w+):")


def lines_of_tpu(text: str) -> list[str]:
    """Return the bundles of a final_bundles.txt, one a line: "0x95 : > { %1 = vmatmul… ;; %2 = vld… }".

    Raises:
        ValueError: there is none, or a bundle does not end.
    """
    while (shorter := _INNERMOST_COMMENT.sub("", text)) != text:
        text = shorter
    begins = [found.start() for found in _BUNDLE.finditer(text)]
    bundles = [" ".join(text[a:b].split()) for a, b in zip(begins, [*begins[1:], None], strict=True)]
    if not bundles or not all("{" in bundle and "}" in bundle for bundle in bundles):
        raise ValueError(f"no whole bundles in {len(text)} characters")
    # A region's name may stand behind a bundle, as a comment that the compiler does not close.
    return [bundle[: bundle.rindex("}") + 1].replace(" */ }", " }") for bundle in bundles]


def names_of_tpu(line: str) -> list[str]:
    """Return what a bundle begins: ["vmatmul.bf16.gmra.mxu0", "vld"]."""
    inside = line[line.index("{") + 1 : line.rindex("}")]
    found = [_OPERATION.match(part.strip()) for part in inside.split(";;") if part.strip()]
    return [one["name"] for one in found if one]


def lines_of_amd(text: str) -> list[str]:
    """Return the instructions and labels of an assembly text for AMD's GPUs."""
    lines = [line.split(";", 1)[0].rstrip() for line in text.splitlines()]
    return [line.strip() for line in lines if _AMD.match(line) or _AMD_LABEL.match(line)]


def names_of_amd(line: str) -> list[str]:
    """Return the instruction of a line: ["v_mfma_f32_16x16x16_bf16"]; [] for a label."""
    found = _AMD.match(f" {line}")
    return [found["name"]] if found else []


def lines_of_nvidia(text: str, kernel: str = "") -> list[str]:
    """Return the instructions of a text of nvdisasm."""
    return [str(line).strip() for line in instructions(text, kernel)]


def names_of_nvidia(line: str) -> list[str]:
    """Return the instruction of a line: ["HMMA.16816.F32.BF16"]."""
    first, _, rest = line.partition(" ")
    return [rest.split(" ", 1)[0] if first.startswith("@") else first]


LINES = {"tpu": lines_of_tpu, "amd": lines_of_amd, "nvidia": lines_of_nvidia}
NAMES = {"tpu": names_of_tpu, "amd": names_of_amd, "nvidia": names_of_nvidia}


def counts(kind: str, lines: Sequence[str]) -> dict[str, int]:
    """Return how often each instruction is in a listing, by its whole name, the most frequent first.

    Args:
        kind: "tpu", "amd" or "nvidia".
    """
    found = Counter(name for line in lines for name in NAMES[kind](line))
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def beginning(counted: dict[str, int], *begins: str) -> int:
    """Return how often what begins like this was counted: `beginning(counts, "v_mfma")`."""
    return sum(number for name, number in counted.items() if name.startswith(begins))


def excerpt(kind: str, lines: Sequence[str], length: int = 16, letters: int = 240) -> list[str]:
    """Return the lines in a row with most matrix products in them, each cut off after so many letters."""
    has = [sum(name.startswith(MATRIX) for name in NAMES[kind](line)) for line in lines]
    sums = [sum(has[at : at + length]) for at in range(max(1, len(lines) - length + 1))]
    at = sums.index(max(sums))
    return [line if len(line) <= letters else f"{line[:letters]} …" for line in lines[at : at + length]]
