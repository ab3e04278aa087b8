"""The Triton kernels compiled for cards that are not here: the right instructions, room enough, no spills."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

COMPILER = Path(__file__).with_name("triton_compiler.py")
SHARED_BYTES = {80: 163 * 1024, 86: 99 * 1024, 89: 99 * 1024, 90: 227 * 1024, 100: 227 * 1024, 120: 99 * 1024}
CAPABILITIES = tuple(SHARED_BYTES)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    environment = {n: v for n, v in os.environ.items() if n != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path_factory.mktemp("triton"))
    done = subprocess.run([sys.executable, str(COMPILER)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_everything_fits_the_card(compiled, capability):
    alike = {86: 89}.get(capability, capability)  # 86 gets the same tiles, and has as much shared memory
    mine = {n: r for n, r in compiled.items() if n.endswith(f"-{alike}")}

    assert len(mine) >= 2
    assert {n: r["shared"] for n, r in mine.items() if r["shared"] > SHARED_BYTES[capability]} == {}


def test_hopper_multiplies_by_warpgroup_and_copies_by_tma(compiled):
    for name in ("2-128-causal", "2-128-full", "2-64-causal", "2-64-full"):
        result = compiled[f"attention-{name}-90"]

        assert result["HGMMA"] > 0
        assert result["UTMALDG"] > 0
        assert result["UTMASTG"] > 0
        assert "LDG" not in result  # K and V come by TMA alone


def test_hopper_spills_nothing(compiled):
    spills = {
        name: sum(compiled[f"attention-{name}-90"].get(n, 0) for n in ("LDL", "STL"))
        for name in ("2-128-causal", "2-128-full", "2-64-causal", "2-64-full")
    }

    assert set(spills.values()) == {0}


def test_fp32_on_hopper_keeps_to_the_tensor_cores(compiled):
    for D in (64, 128):
        assert compiled[f"attention-4-{D}-full-90"]["HGMMA"] > 0


def test_older_cards_copy_ahead_without_tma(compiled):
    for capability in (80, 89):
        result = compiled[f"attention-2-128-causal-{capability}"]

        assert result["HMMA"] > 0
        assert result["LDGSTS"] > 0
        assert "UTMALDG" not in result
        assert result.get("STL", 0) < 20  # a few, outside the loop or cheap; a tile too large has hundreds


def test_blackwell_uses_its_own_multiply(compiled):
    assert compiled["attention-2-128-causal-100"]["UTCHMMA"] > 0
    assert compiled["attention-2-128-causal-120"]["HMMA"] > 0


def test_the_specialised_kernel_gives_its_warps_roles(compiled):
    for D in (64, 128):
        for mask in ("causal", "full"):
            result = compiled[f"specialised-{D}-{mask}-90"]

            assert result["HGMMA"] > 0
            assert result["UTMALDG"] > 0
            assert result["USETMAXREG"] > 0
            assert result.get("LDL", 0) <= 2  # one value may wait outside of the loops


def test_multiplies_use_what_the_card_has(compiled):
    for element_bytes in (2, 4):
        hopper = compiled[f"gemm-{element_bytes}-90"]

        assert min(hopper[n] for n in ("HGMMA", "UTMALDG", "UTMASTG")) > 0
        assert "LDG" not in hopper
        for capability in (80, 89, 120):
            assert compiled[f"gemm-{element_bytes}-{capability}"]["HMMA"] > 0
    assert compiled["gemm-2-80"]["LDGSTS"] > 0
    assert compiled["gemm_fp8-90"]["QGMMA"] > 0
    assert compiled["gemm_fp8-90"]["UTMALDG"] > 0


def test_multiplies_spill_nothing(compiled):
    spills = {n: r.get("LDL", 0) + r.get("STL", 0) for n, r in compiled.items() if n.startswith("gemm")}

    assert {n: count for n, count in spills.items() if count} == {}
