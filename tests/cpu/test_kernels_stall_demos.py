"""The detours: what causes each wait stands in the machine code, and what is carried arrives as it was."""

import re
from math import nan
from pathlib import Path

import pytest
import torch
from cuda_on_cpu import build
from machine_code import sass

from course_kernels.cuda.compile import compile_cubin
from course_kernels.stall_demos import k01_one_reason
from course_kernels.stall_demos.problem import NAMES, PROBLEM, REASONS, THREADS, job

TEXT = k01_one_reason.SOURCE.read_text()
PAGE = Path(__file__).parents[2] / "docs" / "stall_reasons.py"
# Instructions in a row that a g++ takes its time over, and the ones that only a card has.
ON_CPU = re.sub(r"asm volatile\(.*?\);", "state++;", TEXT)
for card, plain in {
    "i < 1000": "i < 10",
    "LINES = 1024": "LINES = 16",
    "__constant__": "static",
    "__nanosleep(1000)": "",
    "__threadfence()": "",
    "__ldcg(x + at)": "x[at]",
}.items():
    assert card in ON_CPU
    ON_CPU = ON_CPU.replace(card, plain)


@pytest.fixture(scope="module")
def kernels():
    """The machine code of every kernel, by its reason."""
    pytest.importorskip("cuda.core")
    code = sass(compile_cubin(k01_one_reason.SOURCE, "sm_90a"))
    sections = code.split(".section\t.text.")[1:]
    return {section.partition("_detours")[0]: section for section in sections}


@pytest.mark.parametrize("reason", NAMES)
def test_what_is_waited_for_stands_in_the_machine_code(kernels, reason):
    found = re.findall(REASONS[reason], kernels[reason])

    assert len(found) >= 1
    assert not re.search(r"\b(?:LDL|STL)\b", kernels[reason])


def test_loops_of_nothing_but_the_cause(kernels):
    """A compiler that saw through a detour would leave a plain copy."""
    at_least = {"mio_throttle": 16, "lg_throttle": 16, "math_pipe_throttle": 8, "wait": 64, "imc_miss": 1000}
    at_least |= {"no_instruction": 4000, "sleeping": 1, "short_scoreboard": 1}

    for reason, many in at_least.items():
        assert len(re.findall(REASONS[reason], kernels[reason])) >= many, reason
    # Nobody waits for a store, or for a load that is not part of the walk.
    assert "BAR" not in kernels["mio_throttle"]
    assert len(re.findall(r"\bLDG\b", kernels["lg_throttle"])) == 1


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(x, reason) -> what arrived, its memory full of NaN before."""
    built = {}

    def load_kernel(source, name):
        # One kernel at a time: a file of fourteen takes g++ longer than they are worth.
        if name not in built:
            built[name] = build(tmp_path_factory.mktemp(name), source, name, None, ON_CPU)
        return built[name]

    def run(x, reason):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(k01_one_reason, "load_kernel", load_kernel)
            patch.setattr(
                k01_one_reason, "launch", lambda kernel, grid, block, *args: kernel(grid, block, *args)
            )
            patch.setattr(torch, "empty_like", lambda x: torch.full(x.shape, nan))
            return k01_one_reason.stall_demos(x, reason=reason)

    return run


@pytest.mark.parametrize("reason", ["long_scoreboard", "barrier", "imc_miss", "drain"])
def test_what_is_carried_arrives(run, reason):
    for N in (1, 700):
        x = torch.rand(N, generator=torch.Generator().manual_seed(N))

        assert torch.equal(run(x, reason), x)


def test_workloads_name_their_reason():
    for reason in NAMES:
        w = job(reason)
        assert PROBLEM.options(w) == {"reason": reason}
        assert w.N % THREADS[reason] == 0
        assert f"__launch_bounds__({THREADS[reason]}) {reason}_detours(" in TEXT


def test_the_dictionary_has_a_section_for_each():
    page = PAGE.read_text()

    for reason in NAMES:
        assert f"# ## {reason}\n" in page, reason


def test_launchers_refuse():
    with pytest.raises(TypeError, match="x: expected float32"):
        k01_one_reason.stall_demos(torch.zeros(3, dtype=torch.float16), reason="wait")
    with pytest.raises(ValueError, match="reason: expected one of long_scoreboard"):
        k01_one_reason.stall_demos(torch.zeros(3), reason="boredom")
