"""What is collected for another machine, from an index made of a few hand-made wheels."""

import zipfile

import pytest
from tiny_repository import commit_all, write

from course_site import wheelhouse

PROJECT = """
[project.optional-dependencies]
site = ["theme>=2"]
measure = ["torch>=2.11", "numpy", "client>=1,<3", "Lister"]
"""
WHEELS = [
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
    assert collected(root) == [
        "client",
        "kernel",
        "late",
        "lister",
        "nox",
        "quick",
        "shared",
        "theme",
        "traits",
    ]
    assert {path.name for path in (root / "wheelhouse").glob("[cs]*.whl")} == {
        "client-2.0-py3-none-any.whl",
        "shared-1.5-py3-none-any.whl",
    }
    assert "wheelhouse: 9 wheels, 0.0 MB, and revision.txt" in capsys.readouterr().out


def test_the_measuring_half_leaves_out_the_site_and_what_is_there(root, tmp_path):
    have = write(
        tmp_path, "have.txt", "Package    Version\n---------- -------\nTraits     5.1\nkernel  1.0\n"
    )
    assert wheelhouse.main(["--measure-only-half", "--have", str(have)], root) == 0
    assert collected(root) == ["client", "lister", "nox", "numpy", "nvidia_nothing", "shared"]


def test_a_version_too_old_does_not_count_as_there(root, tmp_path):
    have = write(
        tmp_path, "have.txt", "traits 4.9\nkernel 1.0+cu130\nclient 2.0\ntheme 2.1\nnumpy 2\nnox 1\n"
    )
    assert wheelhouse.main(["--have", str(have)], root) == 0
    assert collected(root) == ["lister", "traits"]


def test_the_revision_alone_leaves_the_wheels_alone(root):
    wheel = write(root, "wheelhouse/kept-1.0-py3-none-any.whl", "")
    commit = commit_all(root)
    assert wheelhouse.main(["--revision-only"], root) == 0
    assert (root / "wheelhouse/revision.txt").read_text().splitlines()[0] == commit
    assert wheel.exists()


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
    commit = commit_all(root)
    assert wheelhouse.main([], root) == 0
    lines = (root / "wheelhouse/revision.txt").read_text().splitlines()
    assert lines[0] == commit
    assert [line.split()[1] for line in lines[1:]] == ["src/tiny/kernel.py"]


@pytest.mark.parametrize("options", [("--python", "twelve"), ("--platform", "a b")])
def test_wrong_options_are_refused(root, options):
    with pytest.raises(SystemExit):
        wheelhouse.main(options, root)
