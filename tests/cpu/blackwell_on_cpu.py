"""Kernels for Blackwell on the CPU: as hopper_on_cpu.py, with tensor memory and its products in the machine."""

import functools
import subprocess
from pathlib import Path

import cuda_on_cpu
import hopper_on_cpu
import pytest
from hopper_on_cpu import tensor_map as tensor_map
from once import once

MACHINE = Path(__file__).with_name("blackwell_on_cpu.cpp")
# A kernel that names a header of cuda/hopper/ is linked to a machine; these get there by tcgen05.cuh.
NAMES_A_HEADER = "// hopper/, by tcgen05.cuh\n"


@functools.cache
def machine(gxx):
    """The machine of Hopper's and of Blackwell's instructions, compiled."""

    def compiled(folder):
        how = ("-O2", f"-I{MACHINE.parent}", "-c", str(MACHINE))
        subprocess.run([gxx, *cuda_on_cpu.FLAGS, *how, "-o", str(folder / "blackwell.o")], check=True)

    return once(compiled, gxx) / "blackwell.o"


def prepare_in(folder):
    """A function like `prepare` of prepared.py; what it builds lies in the folder. `text` replaces the file's own."""
    prepare_for_hopper = hopper_on_cpu.prepare_in(folder)

    def prepare(path, name, *, text=None, **more):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cuda_on_cpu, "hopper", machine)
            text = path.read_text() if text is None else text
            return prepare_for_hopper(path, name, text=text + NAMES_A_HEADER, **more)

    return prepare
