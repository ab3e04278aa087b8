"""Kernels in WGSL: beside their sisters in CUDA, each with its head; wrong ones are edits of them."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from course_kernels.problem import Workload

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "src" / "course_kernels"
KERNELS = sorted(LIBRARY.glob("*/*.wgsl"))
PLAN = (ROOT / "docs" / "assets" / "js" / "your_gpu" / "problems.js").read_text(encoding="utf-8")
WRONG = tomllib.loads((ROOT / "tests" / "browser" / "wrong_wgsl.toml").read_text(encoding="utf-8"))
CONTRACTS = tomllib.loads((ROOT / "tests" / "browser" / "wgsl_contracts.toml").read_text(encoding="utf-8"))[
    "contract"
]
REASONS = {"off", "unwritten", "outside", "barrier", "race", "compile"}


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("path", KERNELS, ids=name_of)
def test_a_kernel_lies_beside_its_sister_and_says_what_it_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    head = text.partition("\n\n")[0]
    sister = re.search(r"^// Contract .*\bSister +(\S+?),?(?: |$)", head, re.MULTILINE)

    assert re.fullmatch(r"k\d\d_\w+", path.stem)
    assert sister
    assert sister[1] == f"{path.stem}{Path(sister[1]).suffix}"
    assert path.with_name(sister[1]).is_file()
    assert [
        word for word in ("Contract", "Idea", "Source") if not re.search(rf"^// {word}\s", head, re.MULTILINE)
    ] == []
    assert max(len(line) for line in text.splitlines()) <= 120
    assert len(text.splitlines()) <= 150
    for named in re.findall(r"\bk\d\d_\w+\.wgsl", head):
        assert path.with_name(named).is_file()


@pytest.mark.parametrize("path", KERNELS, ids=name_of)
def test_a_kernel_asks_for_no_more_than_every_adapter_has(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    constants: dict[str, int] = {}
    for name, value in re.findall(r"^const (\w+): u32 = ([^;]+);", text, re.MULTILINE):
        constants[name] = eval(value.replace("/", "//"), {}, constants)

    def product(sizes: str) -> int:
        total = 1
        for size in sizes.split(","):
            total *= eval(size.replace("/", "//"), {}, constants)
        return total

    for sizes in re.findall(r"@workgroup_size\(([^)]*)\)", text):
        assert product(sizes) <= 256
    held = 0
    for kind in re.findall(r"^var<workgroup> \w+: ([^;]+);", text, re.MULTILINE):
        words = {"vec4": 4, "vec2": 2}.get(next(iter(re.findall(r"vec[24]", kind)), ""), 1)
        held += 4 * words * product(",".join(re.findall(r", ([^<>]+)>", kind)) or "1")
    assert held <= 16384


def test_the_page_starts_every_kernel_and_no_other() -> None:
    started = set(re.findall(r'^    "(\w+/k\d\d_\w+)": \{', PLAN, re.MULTILINE))
    entries = set(re.findall(r'(?:one\(|entry: )"(\w+)"', PLAN))
    defined = {
        name
        for path in KERNELS
        for name in re.findall(r"@compute[^{]*?\bfn (\w+)", path.read_text(encoding="utf-8"))
    }

    assert started == {name_of(path) for path in KERNELS}
    assert entries == defined


def test_the_wrong_kernels_are_edits_that_fit() -> None:
    assert len(WRONG) >= 15
    assert {"off", "unwritten", "outside", "barrier", "race"} <= {
        one["refused_for"] for one in WRONG.values()
    }
    for name, one in WRONG.items():
        text = (LIBRARY / f"{one['of']}.wgsl").read_text(encoding="utf-8")
        assert one["refused_for"] in REASONS, name
        for old, new in one["edits"]:
            assert text.count(old) == 1, (name, old)
            text = text.replace(old, new)


@pytest.mark.parametrize("case", CONTRACTS, ids=lambda case: f"{case['problem']} {case['dims']}")
def test_the_page_s_contracts_are_the_library_s(case: dict[str, Any]) -> None:
    problem = import_module(f"course_kernels.{case['problem']}.problem").PROBLEM
    dims = case["dims"] | {"fused_multiply_add": {"C": 8}, "attention": {"B": 1}}.get(case["problem"], {})
    flags = {"causal": bool(dims["causal"])} if "causal" in dims else {}
    w = Workload.of("float32", **dims | flags)
    rounds_twice = 2 if case["problem"] == "fused_multiply_add" else 1

    assert case["tolerance"] == pytest.approx(rounds_twice * problem.max_error(w), rel=1e-12)
    assert case["bytes"] == problem.reads_bytes(w) + problem.writes_bytes(w)
    assert case["flops"] == problem.flops(w)


def test_every_problem_of_the_page_has_a_contract() -> None:
    assert {case["problem"] for case in CONTRACTS} == {path.parent.name for path in KERNELS}
