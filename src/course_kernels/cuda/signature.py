"""Names of a `.cu` file's kernels, and the type of every parameter. Read, not compiled."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

# How C++ may spell a type, brought to one name; with it the width and kind that NumPy and torch call it by.
NUMBERS = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "fp8_e4m3": "float8_e4m3fn",
    "fp8_e5m2": "float8_e5m2",
    "bool": "bool",
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long long": "int64",
    "unsigned char": "uint8",
    "unsigned short": "uint16",
    "unsigned int": "uint32",
    "unsigned long long": "uint64",
}
SPELLINGS = {
    "__half": "half",
    "__nv_bfloat16": "bfloat16",
    "nv_bfloat16": "bfloat16",
    "__nv_fp8_e4m3": "fp8_e4m3",
    "__nv_fp8_e5m2": "fp8_e5m2",
    "int8_t": "char",
    "int16_t": "short",
    "int32_t": "int",
    "int64_t": "long long",
    "uint8_t": "unsigned char",
    "uint16_t": "unsigned short",
    "uint32_t": "unsigned int",
    "uint64_t": "unsigned long long",
    "size_t": "unsigned long long",
    "ptrdiff_t": "long long",
    "uint": "unsigned int",
}
# float4 is four floats at an address divisible by 16, and so on.
VECTOR = re.compile(
    r"(?:__)?(half|nv_bfloat16|float|double|u?char|u?short|u?int|u?longlong)([234])", re.ASCII
)
VECTOR_OF = {"nv_bfloat16": "bfloat16", "longlong": "long long", "uchar": "unsigned char"}
VECTOR_OF |= {"ushort": "unsigned short", "uint": "unsigned int", "ulonglong": "unsigned long long"}

NO_PART_OF_A_TYPE = {
    "const",
    "volatile",
    "__restrict__",
    "__restrict",
    "restrict",
    "__grid_constant__",
    "struct",
}
INTEGER_WORDS = {"signed", "unsigned", "long", "short", "int", "char"}
MAX_ALIASES = 16  # a chain of them longer than this is a circle


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel.

    Attributes:
        name: its name, or its place where it has none.
        declared: how the file declares it.
        number: the number's type as torch spells it; "" where any will do (void, and vectors that carry plain
            bits, such as uint4); "?" for what is no number.
        pointer: whether it is an address of such numbers, rather than one of them.
        alignment: what the address must be divisible by: 16 for float4.
    """

    name: str
    declared: str
    number: str
    pointer: bool
    alignment: int = 1


@dataclass(frozen=True)
class Kernel:
    """One kernel of a file, as its own line declares it."""

    name: str
    parameters: tuple[Parameter, ...]
    is_extern_c: bool
    is_template: bool

    def __str__(self) -> str:
        return f"{self.name}({', '.join(p.declared for p in self.parameters)})"


def kernels_of(text: str, defines: Mapping[str, str | int] | None = None) -> list[Kernel]:
    """Return every kernel that a source defines, in order.

    Args:
        text: CUDA C++.
        defines: macros, as given to the compiler; one that names a type is followed.
    """
    code = _without_comments(text)
    aliases = _aliases(code) | {name: str(value) for name, value in (defines or {}).items()}
    code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", code, flags=re.MULTILINE)
    blocks = [
        (match.end(), _closing(code, match.end() - 1, "{}"))
        for match in re.finditer(r'extern\s*"C"\s*\{', code)
    ]
    found = []
    for match in re.finditer(r"\b__global__\b", code):
        before = re.split(r"[;{}]", code[: match.start()])[-1]
        after = re.match(
            r"\s*(?:__\w+__\s*\([^()]*(?:\([^()]*\)[^()]*)*\)\s*|\w+\s+(?=\w|_))*?(?P<name>(?!__\w+__\b)\w+)\s*\(",
            code[match.end() :],
        )
        if not after:
            continue
        opened = match.end() + after.end() - 1
        closed = _closing(code, opened, "()")
        if not code[closed + 1 :].lstrip().startswith("{"):
            continue  # declared here, defined elsewhere
        parameters = _parameters(code[opened + 1 : closed], aliases)
        inside = any(start <= match.start() < end for start, end in blocks)
        is_extern_c = inside or bool(re.search(r'extern\s*"C"', before))
        found.append(Kernel(after["name"], parameters, is_extern_c, "template" in before))
    return found


def _without_comments(text: str) -> str:
    """Return the text with a blank for every comment; strings are kept, and what looks like a comment in them."""
    pattern = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/'

    def keep(match: re.Match[str]) -> str:
        return " " if match.group().startswith("/") else match.group()

    return re.sub(pattern, keep, text, flags=re.DOTALL)


def _closing(code: str, opened: int, pair: str) -> int:
    """Return where the bracket at `opened` is closed; the end of the text where it never is."""
    depth = 0
    for place in range(opened, len(code)):
        depth += (code[place] == pair[0]) - (code[place] == pair[1])
        if depth == 0:
            return place
    return len(code)


def _aliases(code: str) -> dict[str, str]:
    """Return names that a file gives to types: using, typedef, and macros that stand for a few words."""
    found = dict(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([\w: ]+?)[ \t]*$", code, re.MULTILINE))
    found |= dict(re.findall(r"\busing\s+(\w+)\s*=\s*([\w:\s]+?)\s*;", code))
    return found | {name: words for words, name in re.findall(r"\btypedef\s+([\w:\s]+?)\s+(\w+)\s*;", code)}


def _parameters(text: str, aliases: Mapping[str, str]) -> tuple[Parameter, ...]:
    declarations = [" ".join(part.split()) for part in re.split(r",(?![^<]*>)", text)]
    if declarations in ([""], ["void"]):
        return ()
    return tuple(_parameter(place, text, aliases) for place, text in enumerate(declarations, start=1))


def _parameter(place: int, declaration: str, aliases: Mapping[str, str]) -> Parameter:
    declared = declaration.partition("=")[0].strip()
    stars = declared.count("*") + len(re.findall(r"\[[^\]]*\]", declared))
    bare = re.sub(r"\[[^\]]*\]|[*&]", " ", declared)
    words = [w.rpartition("::")[2] for w in re.findall(r"[\w:]+", bare) if w not in NO_PART_OF_A_TYPE]
    # The last word is the name, unless it still belongs to the type.
    named = len(words) > 1 and words[-1] not in INTEGER_WORDS
    name = words.pop() if named else f"parameter {place}"
    number, alignment = _number(words, aliases)
    if stars > 1 or "&" in declared or (not stars and alignment > 1):
        number = "?"
    return Parameter(name, declared, number, stars > 0, alignment)


def _number(words: list[str], aliases: Mapping[str, str]) -> tuple[str, int]:
    """Return number and alignment: ("float32", 16) for float4, ("", 1) for void, ("?", 1) for what is no number."""
    for _ in range(MAX_ALIASES):
        known = [w for word in words for w in aliases.get(word, word).replace("std::", "").split()]
        known = [w for w in known if w not in NO_PART_OF_A_TYPE]
        if known == words:
            break
        words = known
    if words == ["void"]:
        return "", 1
    text = " ".join(SPELLINGS.get(word, word) for word in words)
    vector = VECTOR.fullmatch(text)
    if vector:
        number = NUMBERS[VECTOR_OF.get(vector[1], vector[1])]
        together = 1 if vector[2] == "3" else int(vector[2])  # three lie loose
        alignment = min(together * int(re.sub(r"\D", "", number)) // 8, 16)
        return "" if number.startswith("uint") else number, alignment
    parts = text.split()
    if parts and set(parts) <= INTEGER_WORDS:
        unsigned = "unsigned " if "unsigned" in parts else ""
        width = "long long" if "long" in parts else next((w for w in ("short", "char") if w in parts), "int")
        return NUMBERS[unsigned + width], 1
    return NUMBERS.get(text, "?"), 1
