"""A machine whose torch brings only part of CUDA finds what every `.cu` needs in an installed wheelhouse.

The machine is made of files that this environment has: a folder with what torch's wheel brings, and beside it what the
wheelhouse carries, installed by the README's own line. A Python that sees nothing else compiles there.
"""

import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from test_compile_cuda import ARCHES, DEFINES, can_compile

import course_kernels
from course_kernels.cuda.includes import toolkit_includes
from course_site.records import wheelhouse

pytest.importorskip("cuda.core")

ROOT = Path(__file__).parents[2]
SOURCES = Path(course_kernels.__file__).parent
# What a toolkit of this machine would add, the child is not to see.
CHILD = """
import json, os, sys
from pathlib import Path
from course_kernels.cuda import headers
headers.MACHINE = Path("/nowhere")
headers.nvrtc_file = headers._carried_nvrtc
assert headers.nvrtc_file() is not None
import cuda.pathfinder
cuda.pathfinder.find_nvidia_header_directory = lambda name: None
from course_kernels.cuda.compile import compile_cubin
said = {}
for path, defines in json.load(sys.stdin):
    try:
        compile_cubin(path, "sm_90a", defines)
        said[f"{path} {defines}"] = "compiled"
    except Exception as error:
        said[f"{path} {defines}"] = f"{type(error).__name__}: {error}"
from course_kernels.cuda.disassemble import disassembler
print(json.dumps([said, disassembler(), [str(folder) for folder in headers.toolkit_headers()]]))
"""


def names(taken):
    """The CUDA packages among what the project needs that are taken to be there, or that are carried."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        optional = tomllib.load(file)["project"]["optional-dependencies"]
    lines = [*optional["measure"], *optional["cuda13"], *wheelhouse.OF_CU13]
    options = wheelhouse._parse([])
    found = {
        wheelhouse.canonical(Requirement(line).name): wheelhouse._is_left_out(line, {}, options)
        for line in lines
    }
    return sorted(name for name, left_out in found.items() if "cuda" in name and left_out == taken)


def files_of(name):
    found = metadata.distribution(name)
    for file in found.files:
        path = Path(found.locate_file(file))
        if path.is_file() and ".." not in file.parts and path.suffix != ".pyc":
            yield str(file), path


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """A folder with own/ (what torch's wheel brings) and carried/ (what the wheelhouse brought)."""
    root = tmp_path_factory.mktemp("machine")
    for name in [*names(taken=True), "cuda-pathfinder", "numpy"]:
        for file, path in files_of(name):
            to = root / "own" / file
            to.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(path, to)
            except OSError:  # another disk
                shutil.copy2(path, to)
    (root / "wheelhouse").mkdir()
    for name in names(taken=False):
        version = metadata.version(name)
        tag = metadata.distribution(name).read_text("WHEEL").split("Tag: ")[1].split()[0]
        wheel = root / "wheelhouse" / f"{name.replace('-', '_')}-{version}-{tag}.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for file, path in files_of(name):
                if Path(file).name not in ("INSTALLER", "REQUESTED", "direct_url.json"):
                    archive.write(path, file)
    install, _ = wheelhouse.install_commands("wheelhouse")
    install = install.replace("python3", sys.executable)
    subprocess.run(["bash", "-c", install], cwd=root, check=True, capture_output=True)
    return root


def compiled(machine, work):
    """What the child says of each (path, defines), which disassembler it found, and which folders of headers."""
    environment = {
        "PATH": "/nowhere",
        "COURSE_CACHE_DIR": str(machine / "kept"),
        "PYTHONPATH": os.pathsep.join(map(str, (machine / ".venv/carried", machine / "own", SOURCES.parent))),
    }
    # Two at a time; -S keeps out this environment's own packages.
    halves = [work[::2], work[1::2]]
    children = [
        subprocess.Popen(
            [sys.executable, "-S", "-c", CHILD],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for half in halves
        if half
    ]
    for child, half in zip(children, halves, strict=False):
        child.stdin.write(json.dumps([(str(path), defines) for path, defines in half]))
        child.stdin.close()
    said = {}
    for child in children:
        out, err = child.stdout.read(), child.stderr.read()
        assert child.wait() == 0, err
        more, tool, folders = json.loads(out)
        said |= more
    return said, tool, folders


def test_what_torch_does_not_bring_is_carried():
    assert names(taken=True) == ["cuda-bindings", "nvidia-cuda-nvrtc", "nvidia-cuda-runtime"]
    assert names(taken=False) == ["cuda-core", "nvidia-cuda-crt", "nvidia-cuda-nvdisasm"]


def test_every_source_finds_its_headers_in_the_wheelhouse(machine):
    assert "sm_90a" in ARCHES
    # Those that include a header of the toolkit. The others ask for the compiler alone, as one of them does here.
    of_labs = [path for path in (ROOT / "labs").glob("*/*/*.cu") if path.parent.name != "wrong"]
    # What nvcc compiles finds its headers in a wheel of the ladder's own.
    of_kernels = [path for path in SOURCES.rglob("*.cu") if not path.name.startswith("in_")]
    files = sorted((*of_kernels, *of_labs))
    every = [(path, one) for path in files for one in DEFINES.get(path, [{}])]
    work = [(path, one) for path, one in every if toolkit_includes(path)]
    assert len(work) >= 5  # tensor cores and short types
    work.append((SOURCES / "copy/k01_vectorised.cu", {}))
    said, tool, folders = compiled(machine, work)
    refused = {what: why for what, why in said.items() if why != "compiled"}

    assert len(said) == len(work)
    assert set(refused) == {
        f"{path} {defines}" for path, defines in work if not can_compile(path, defines, "sm_90a")
    }
    assert tool == str(machine / ".venv/carried/nvidia/cu13/bin/nvdisasm")
    assert {str(machine / place / "nvidia/cu13/include") for place in ("own", ".venv/carried")} <= set(
        folders
    )
    assert all(folder.startswith(str(machine)) for folder in folders)


def test_without_the_compilers_headers_one_line_says_what_lacks(machine):
    shutil.move(machine / ".venv/carried/nvidia/cu13/include/crt", machine / "away")
    try:
        said, _, _ = compiled(machine, [(SOURCES / "gemm/k02_wmma.cu", {"TYPE": "__half"})])
    finally:
        shutil.move(machine / "away", machine / ".venv/carried/nvidia/cu13/include/crt")

    assert list(said.values()) == [
        "CudaMissingError: k02_wmma.cu: the CUDA header crt/mma.h is not installed; pip install nvidia-cuda-crt==13.*"
    ]
