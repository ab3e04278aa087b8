"""CUDA's headers are found in every folder they lie in, and one that is missing is named with its package."""

import importlib.util
import sys
from pathlib import Path

import pytest

from course_kernels.cuda import compile as compile_module
from course_kernels.cuda import headers
from course_kernels.cuda.compile import CompileError, compile_cubin
from course_kernels.cuda.headers import CudaMissingError, package_of, toolkit_headers

pytest.importorskip("cuda.core")


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A machine without any header; hands out a function that puts a wheel's folder on sys.path."""
    monkeypatch.setattr(headers, "nvrtc_file", lambda: Path("/gone/lib/libnvrtc.so.13"))
    monkeypatch.setattr(headers, "MACHINE", tmp_path / "machine")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "path", [])

    def add(entry, *files, under="nvidia/cu13/include", version=13000):
        folder = tmp_path / entry / under
        for name in files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(f"#define CUDA_VERSION {version}\n" if name == "cuda.h" else "")
        if under.startswith("nvidia"):
            sys.path.append(str(tmp_path / entry))
        return folder

    return add


def test_every_place_with_a_part_is_given_in_the_order_of_sys_path(bare):
    carried = bare("carried", "crt/mma.h")
    own = bare("own", "cuda_fp16.h", "cuda.h", "cccl/cuda/std/version")

    assert toolkit_headers() == [carried, own, own / "cccl"]


def test_a_package_with_an_init_hides_no_other_place(bare, tmp_path):
    old = bare("old", "cuda_fp16.h")
    carried = bare("carried", "crt/mma.h")
    (tmp_path / "old/nvidia/__init__.py").write_text("")

    assert toolkit_headers() == [old, carried]


def test_the_folder_of_the_compiler_in_use_comes_first(bare, tmp_path, monkeypatch):
    first = bare("first", "cuda_fp16.h")
    used = bare("used", "cuda_fp16.h")
    monkeypatch.setattr(headers, "nvrtc_file", lambda: used.parent / "lib/libnvrtc.so.13")

    assert toolkit_headers() == [used, first]


def test_the_machines_toolkit_comes_after_the_wheels(bare, tmp_path, monkeypatch):
    home = bare("home", "cuda_fp16.h", under="include")
    machine = bare("machine", "cuda_fp16.h", under="include")
    wheel = bare("wheel", "cuda_fp16.h")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))

    assert toolkit_headers() == [wheel, home, machine]


def test_headers_of_another_major_version_are_not_mixed_in(bare):
    bare("twelve", "cuda_fp16.h", "crt/mma.h", "cuda.h", version=12080)
    thirteen = bare("thirteen", "cuda_fp16.h", "cuda.h")

    assert toolkit_headers() == [thirteen]


def test_where_nothing_fits_one_whole_copy_is_used(bare):
    bare("carried", "crt/mma.h")
    twelve = bare("twelve", "cuda_fp16.h", "crt/mma.h", "cuda.h", version=12080)
    bare("eleven", "cuda_fp16.h", "crt/mma.h", "cuda.h", version=11080)

    assert toolkit_headers() == [twelve]


def test_no_headers_at_all_is_one_line(bare):
    with pytest.raises(CudaMissingError) as caught:
        toolkit_headers()

    assert str(caught.value) == "CUDA headers: cuda_fp16.h not found; pip install nvidia-cuda-runtime==13.*"


MISSING = {
    "#include <mma.h>": ("mma.h", "crt/mma.h", "nvidia-cuda-crt==13.*"),
    "#include <cuda/std/array>": (None, "cuda/std/array", "nvidia-cuda-cccl==13.*"),
}


@pytest.mark.parametrize(("text", "there", "missing", "package"), [(k, *v) for k, v in MISSING.items()])
def test_a_missing_header_is_named_with_its_package(
    tmp_path, bare, monkeypatch, text, there, missing, package
):
    folder = bare("own", "cuda_fp16.h", "cuda.h")
    if there:
        (folder / there).write_text(f'#include "{missing}"\n')
    source = tmp_path / "a.cu"
    source.write_text(text + "\n")
    with pytest.raises(CudaMissingError) as caught:
        compile_cubin(source, "sm_90a")

    assert str(caught.value) == f"a.cu: the CUDA header {missing} is not installed; pip install {package}"


def test_a_header_that_no_wheel_has_is_the_sources_mistake(tmp_path, bare):
    bare("own", "cuda_fp16.h", "cuda.h")
    source = tmp_path / "a.cu"
    source.write_text("#include <cuda_fp61.h>\n")
    with pytest.raises(CompileError, match=r"cuda_fp61\.h"):
        compile_cubin(source, "sm_90a")


@pytest.mark.parametrize(
    ("header", "package"),
    [
        ("crt/mma.h", "nvidia-cuda-crt==13.*"),
        ("cuda_fp16.h", "nvidia-cuda-runtime==13.*"),
        ("cooperative_groups/reduce.h", None),
        ("cooperative_groups.h", "nvidia-cuda-runtime==13.*"),
        ("mma.h", "nvidia-cuda-runtime==13.*"),
        ("cub/cub.cuh", "nvidia-cuda-cccl==13.*"),
        ("vector", None),
    ],
)
def test_each_header_has_its_package(header, package):
    assert package_of(header, []) == package


# --- kept on disk -----------------------------------------------------------------------------------


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_CACHE_DIR", str(tmp_path / "kept"))
    source = tmp_path / "a.cu"
    source.write_text('#include "b.cuh"\nextern "C" __global__ void f(int *x) { x[0] = NUMBER; }')
    (tmp_path / "b.cuh").write_text("#ifndef NUMBER\n#define NUMBER 1\n#endif\n")
    return source


def compiled(source, *arguments):
    """As the next process would: nothing is in memory. Says how often NVRTC ran, too."""
    compile_module._compile.cache_clear()
    from cuda.core import Program

    runs = []
    with pytest.MonkeyPatch.context() as patch:

        class Counting:
            def __init__(self, *given):
                runs.append(given)
                self.program = Program(*given)

            def compile(self, kind):
                return self.program.compile(kind)

        patch.setattr("cuda.core.Program", Counting)
        return compile_cubin(source, *arguments), len(runs)


def kept(tmp_path):
    return sorted((tmp_path / "kept/percent-of-peak/cubins").iterdir())


def test_a_cubin_is_compiled_once_for_all_processes(tmp_path, source):
    first, runs = compiled(source, "sm_90a")
    second, runs_again = compiled(source, "sm_90a")

    assert (runs, runs_again, len(kept(tmp_path))) == (1, 0, 1)
    assert first == second
    assert first[:4] == b"\x7fELF"


def test_whatever_decides_the_code_compiles_again(tmp_path, source, monkeypatch):
    runs = [
        compiled(source, "sm_90a")[1],
        compiled(source, "sm_80")[1],
        compiled(source, "sm_80", {"NUMBER": 2})[1],
    ]
    (tmp_path / "b.cuh").write_text("#define NUMBER 3\n")
    runs.append(compiled(source, "sm_80")[1])
    monkeypatch.setattr(compile_module, "_compiler", lambda: ["another"])
    runs.append(compiled(source, "sm_80")[1])

    assert runs == [1] * 5
    assert len(kept(tmp_path)) == 5


def test_other_headers_of_the_toolkit_compile_again(tmp_path, source, bare, monkeypatch):
    folder = bare("own", "cuda_fp16.h", "cuda.h")
    source.write_text('#include <cuda_fp16.h>\nextern "C" __global__ void f() {}')
    runs = [compiled(source, "sm_80")[1], compiled(source, "sm_80")[1]]
    (folder / "cuda_fp16.h").write_text("#define MORE\n")
    compile_module._content.cache_clear()
    runs.append(compiled(source, "sm_80")[1])

    assert runs == [1, 0, 1]


@pytest.mark.parametrize(
    "spoil", [lambda d: d[:-1], lambda d: b"", lambda d: d[:40] + b"x" + d[41:], lambda d: d[:32]]
)
def test_a_broken_entry_is_compiled_again_and_mended(tmp_path, source, spoil):
    first, _ = compiled(source, "sm_90a")
    [file] = kept(tmp_path)
    whole = file.read_bytes()
    file.write_bytes(spoil(whole))
    again, runs = compiled(source, "sm_90a")

    assert (again, runs) == (first, 1)
    assert file.read_bytes() == whole
    assert kept(tmp_path) == [file]


def test_a_folder_that_cannot_be_written_to_is_no_error(tmp_path, source, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("COURSE_CACHE_DIR", str(tmp_path / "file"))

    assert compiled(source, "sm_90a")[1] == 1
    assert compiled(source, "sm_90a")[0][:4] == b"\x7fELF"


def test_the_folder_follows_the_environment(monkeypatch):
    monkeypatch.setenv("COURSE_CACHE_DIR", "/one")
    monkeypatch.setenv("XDG_CACHE_HOME", "/two")
    monkeypatch.setenv("HOME", "/three")
    folders = [compile_module.cubin_folder()]
    for name in ("COURSE_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name)
        folders.append(compile_module.cubin_folder())

    assert [str(folder) for folder in folders] == [
        f"{home}/percent-of-peak/cubins" for home in ("/one", "/two", "/three/.cache")
    ]
