"""What is collected for another machine, from an index made of a few hand-made wheels."""

import os
import shutil
import subprocess
import zipfile

import pytest
from tiny_repository import commit_all, write

from course_site.records import wheelhouse

PROJECT = """
[project.optional-dependencies]
site = ["theme>=2"]
measure = ["torch>=2.11", "numpy", "client>=1,<3", "Lister", "cuda-core>=1,<2"]
ladder = ["cuda-tile[compiler]==1.0"]
cuda13 = ["cuda-core[cu13]>=1,<2", "nvidia-cuda-runtime==13.*", "nvidia-cuda-crt==13.*", "nvidia-cuda-nvdisasm==13.*"]
"""
# What every machine gets: torch's wheel brings none of them.
CUDA = ["cuda_core", "nvidia_cuda_crt", "nvidia_cuda_nvdisasm"]
# What torch's wheel brings, for a list of a machine that has it.
TORCHS = "cuda-bindings 13.0.3\nnvidia-cuda-nvrtc 13.0.88\nnvidia-cuda-runtime 13.0.96\n"
WHEELS = [
    ("cuda_core", "1.2", "py3-none-any", ['compilers ; extra == "cu13"']),
    ("cuda_bindings", "13.5", "py3-none-any", []),
    ("nvidia_cuda_nvrtc", "13.5.1", "py3-none-any", []),
    ("nvidia_cuda_runtime", "13.5.1", "py3-none-any", []),
    ("nvidia_cuda_crt", "13.0.7", "py3-none-any", []),
    ("nvidia_cuda_crt", "13.5.1", "py3-none-any", []),
    ("nvidia_cuda_nvdisasm", "13.5.1", "py3-none-any", []),
    ("cuda_tile", "1.0", "py3-none-any", ['nvidia-cuda-tileiras ; extra == "compiler"']),
    ("nvidia_cuda_tileiras", "13.4", "py3-none-any", []),
    ("nvidia_nothing", "1.0", "py3-none-any", []),
    ("numpy", "2.0", "py3-none-any", []),
    ("debugpy", "1.0", "py3-none-any", []),
    ("theme", "2.0", "py3-none-any", []),
    ("nox", "1.0", "py3-none-any", ["shared<2"]),
    ("shared", "1.5", "py3-none-any", []),
    ("shared", "2.5", "py3-none-any", []),
    (
        "client",
        "2.0",
        "py3-none-any",
        ["kernel[fast]", "debugpy", "nvidia_nothing", 'old ; python_version < "3.12"'],
    ),
    ("client", "3.0", "py3-none-any", []),
    (
        "kernel",
        "1.0",
        "py3-none-any",
        [
            'winner ; sys_platform == "win32"',
            'quick ; extra == "fast"',
            'slow ; extra == "slow"',
            'late>1 ; python_version >= "3.12"',
        ],
    ),
    ("late", "1.1", "cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64", []),
    ("late", "1.2", "cp311-cp311-manylinux_2_17_x86_64", []),
    ("quick", "1.0", "py3-none-any", []),
    ("old", "1.0", "py3-none-any", []),
    ("lister", "1.0", "py3-none-any", ["traits>=5"]),
    ("traits", "5.0", "py3-none-any", []),
]


@pytest.fixture
def root(tmp_path, monkeypatch):
    index = tmp_path / "index"
    index.mkdir()
    for name, version, tag, needs in WHEELS:
        head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        with zipfile.ZipFile(index / f"{name}-{version}-{tag}.whl", "w") as wheel:
            metadata = head + "".join(f"Requires-Dist: {need}\n" for need in needs)
            wheel.writestr(f"{name}-{version}.dist-info/METADATA", metadata)
            wheel.writestr(f"{name}-{version}.dist-info/WHEEL", f"Wheel-Version: 1.0\nTag: {tag}\n")
            wheel.writestr(f"{name}-{version}.dist-info/RECORD", "")
    for variable in ("PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    root = tmp_path / "repository"
    write(root, "pyproject.toml", PROJECT)
    write(root, "src/tiny/kernel.py", "FACTOR = 3\n")
    return root


def collected(root):
    return sorted(path.name.split("-")[0] for path in (root / "wheelhouse").glob("*.whl"))


def test_everything_lacking_is_collected_for_the_other_python(root, capsys):
    assert wheelhouse.main([], root) == 0
    named = ["client", "kernel", "late", "lister", "nox", "quick", "shared", "theme", "traits"]
    assert collected(root) == sorted([*named, *CUDA])
    assert {path.name for path in (root / "wheelhouse").glob("[cs][lh]*.whl")} == {
        "client-2.0-py3-none-any.whl",
        "shared-1.5-py3-none-any.whl",
    }
    assert "wheelhouse: 12 wheels, 0.0 MB, and revision.txt" in capsys.readouterr().out


def test_the_measuring_half_leaves_out_the_site_and_what_is_there(root, tmp_path):
    have = write(tmp_path, "have.txt", f"Package Version\n------- ----\nTraits  5.1\nkernel  1.0\n{TORCHS}")
    assert wheelhouse.main(["--measure-only-half", "--have", str(have)], root) == 0
    assert collected(root) == sorted(["client", "lister", "nox", "numpy", "nvidia_nothing", "shared", *CUDA])


def test_one_more_extra_comes_with_what_its_own_extras_ask_for(root, capsys):
    assert wheelhouse.main(["--with", "ladder"], root) == 0
    assert {"cuda_tile", "nvidia_cuda_tileiras", *CUDA} <= set(collected(root))
    assert wheelhouse.main(["--with", "stairs"], root) == 1
    assert capsys.readouterr().err == (
        "wheelhouse: --with stairs: there is no such extra; there are site, measure, ladder, cuda13\n"
    )


def test_a_version_too_old_does_not_count_as_there(root, tmp_path):
    have = write(
        tmp_path, "have.txt", f"traits 4.9\nkernel 1.0+cu130\nclient 2.0\ntheme 2.1\nnumpy 2\nnox 1\n{TORCHS}"
    )
    assert wheelhouse.main(["--have", str(have)], root) == 0
    assert collected(root) == sorted(["lister", "traits", *CUDA])


def test_headers_are_carried_in_the_version_of_the_runtime_that_is_there(root, tmp_path):
    have = write(tmp_path, "have.txt", f"numpy 2\n{TORCHS}")
    assert wheelhouse.main(["--measure-only-half", "--have", str(have)], root) == 0
    assert [path.name for path in (root / "wheelhouse").glob("*crt*")] == [
        "nvidia_cuda_crt-13.0.7-py3-none-any.whl"
    ]


def test_a_machine_with_nothing_of_cuda_gets_the_compiler_too(root, tmp_path):
    have = write(tmp_path, "have.txt", "numpy 2\n")
    assert wheelhouse.main(["--measure-only-half", "--have", str(have)], root) == 0
    assert {"cuda_bindings", "nvidia_cuda_nvrtc", "nvidia_cuda_runtime", *CUDA} <= set(collected(root))
    assert "compilers" not in collected(root)


def test_parts_are_small_and_join_by_the_printed_commands(root, tmp_path, capsys):
    index = tmp_path / "index"
    with zipfile.ZipFile(index / "theme-2.1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("theme-2.1.dist-info/METADATA", "Metadata-Version: 2.1\nName: theme\nVersion: 2.1\n")
        wheel.writestr("theme-2.1.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("theme-2.1.dist-info/RECORD", "")
        wheel.writestr("large", os.urandom(50_000))  # no part can hold it
    assert wheelhouse.main(["--parts", "20k"], root) == 0
    said = capsys.readouterr().out
    parts = sorted((root / "wheelhouse/parts").glob("wheelhouse.tar.*"))
    there = tmp_path / "there"
    for part in (*parts, root / "wheelhouse/parts/SHA256SUMS"):  # one call each
        write(there, f"wheelhouse/parts/{part.name}", "")
        shutil.copy(part, there / "wheelhouse/parts" / part.name)
    commands = [line.strip() for line in said.splitlines() if line.startswith("  ")]
    for command in commands[:-2]:
        subprocess.run(["bash", "-euc", command], cwd=there, check=True, capture_output=True)

    assert len(parts) > 3
    assert max(part.stat().st_size for part in parts) == 20_000
    here = {path.name: path.read_bytes() for path in (root / "wheelhouse").iterdir() if path.is_file()}
    assert {
        path.name: path.read_bytes() for path in (there / "wheelhouse").iterdir() if path.is_file()
    } == here
    assert commands[-2:] == [
        "python3 -m pip install --no-index --no-deps --target .venv/carried wheelhouse/*.whl",
        "PYTHONPATH=.venv/carried python3 -m nox --no-venv -s docs",
    ]
    (there / "wheelhouse/parts" / parts[1].name).write_bytes(b"lost on the way")
    done = subprocess.run(["bash", "-c", commands[0]], cwd=there, capture_output=True, text=True)
    assert (done.returncode, f"{parts[1].name}: FAILED" in done.stdout) == (1, True)


def test_parts_are_cut_anew_or_not_at_all(root):
    assert wheelhouse.main(["--parts", "20k"], root) == 0
    assert wheelhouse.main(["--parts", "1M"], root) == 0
    assert len(list((root / "wheelhouse/parts").glob("wheelhouse.tar.*"))) == 1
    assert wheelhouse.main([], root) == 0
    assert not (root / "wheelhouse/parts").exists()


def test_too_many_parts_are_one_line(root, capsys):
    assert wheelhouse.main(["--parts", "1"], root) == 1
    assert capsys.readouterr().err == (
        "wheelhouse: --parts: 0 MB make more than 900 parts; ask for larger ones\n"
    )


def test_the_revision_alone_leaves_the_wheels_alone(root, capsys):
    wheel = write(root, "wheelhouse/kept-1.0-py3-none-any.whl", "")
    commit = commit_all(root)
    assert wheelhouse.main(["--revision-only"], root) == 0
    assert (root / "wheelhouse/revision.txt").read_text().splitlines()[0] == commit
    assert wheel.exists()
    assert "parts" not in capsys.readouterr().out


def test_a_new_revision_is_not_in_parts_that_were_cut_before(root, capsys):
    (root / "wheelhouse/parts").mkdir(parents=True)
    commit_all(root)
    assert wheelhouse.main(["--revision-only"], root) == 0
    assert "parts holds the one before: carry this one too" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        "Package Version\n------- -------\nTyping_Extensions 4.1 \ntorch 2.11.0+cu130\n",
        "typing-extensions==4.1\ntorch==2.11.0+cu130\n",
        '[{"name": "typing.extensions", "version": "4.1"}, {"name": "torch", "version": "2.11.0+cu130"}]',
    ],
)
def test_every_format_of_pip_list_is_read(tmp_path, text):
    assert wheelhouse.read_pip_list(write(tmp_path, "have", text)) == {
        "typing-extensions": "4.1",
        "torch": "2.11.0+cu130",
    }


def test_a_list_without_packages_is_one_line(root, tmp_path, capsys):
    have = write(tmp_path, "have.txt", "nothing here\n")
    assert wheelhouse.main(["--have", str(have)], root) == 1
    assert capsys.readouterr().err == (
        f"wheelhouse: --have {have}: no package found in it; save the output of `pip list` there\n"
    )
    assert wheelhouse.main(["--have", str(tmp_path / "gone")], root) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_no_network_is_one_line(root, monkeypatch, capsys):
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    assert wheelhouse.main([], root) == 1
    assert capsys.readouterr().err == (
        "wheelhouse: there is no network to the package index: run this where `pip download` works\n"
    )


def test_a_package_without_a_fitting_wheel_is_one_line(root, capsys):
    assert wheelhouse.main(["--python", "3.13"], root) == 1
    assert capsys.readouterr().err == (
        "wheelhouse: pip finds no wheel for Python 3.13 on manylinux_2_28_x86_64: "
        "ERROR: No matching distribution found for late>1\n"
    )


def test_older_platforms_are_included():
    tags = wheelhouse.platforms("manylinux_2_17_aarch64")
    assert tags[0] == "manylinux_2_17_aarch64"
    assert {"manylinux2014_aarch64", "manylinux_2_5_aarch64", "linux_aarch64"} <= set(tags)
    assert "manylinux_2_28_aarch64" not in tags
    assert "manylinux_2_28_x86_64" in wheelhouse.platforms("manylinux_2_28_x86_64")


def test_the_revision_names_commit_and_files(root):
    """And of what lies among the records and among proposals, what a page reads."""
    held = (
        "proposals/tiny/bold/s1_r1.py.txt", "records/a_card/docs/page.artifacts/w", "records/a_card/harness.jsonl",
    )  # fmt: skip
    for name in (*held, "records/a_card/runs.json", "README.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    commit = commit_all(root)
    assert wheelhouse.main([], root) == 0
    lines = (root / "wheelhouse/revision.txt").read_text().splitlines()
    assert lines[0] == commit
    assert [line.split()[1] for line in lines[1:]] == [*held, "src/tiny/kernel.py"]


@pytest.mark.parametrize(
    "options", [("--python", "twelve"), ("--platform", "a b"), ("--parts", "48X"), ("--parts", "0")]
)
def test_wrong_options_are_refused(root, options):
    with pytest.raises(SystemExit):
        wheelhouse.main(options, root)


def test_a_folder_that_cannot_be_is_one_line(root, capsys):
    write(root, "in_the_way", "")
    assert wheelhouse.main(["--revision-only", "--into", "in_the_way/wheelhouse"], root) == 1
    assert capsys.readouterr().err == f"wheelhouse: {root}/in_the_way/wheelhouse: Not a directory\n"
