"""The command behind ``nox -s wheelhouse``: what a GPU machine without a network lacks, as wheels.

pip fetches wheels for the other machine's platform; what they need is read from the wheels themselves, for
the other machine's Python, because pip evaluates such conditions for the Python it runs on. Beside the wheels
lies revision.txt: with it a machine without git can say which commit its records belong to. For a machine that takes
little at once, --parts lays the same folder beside it once more, as one archive cut into parts.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from email.parser import HeaderParser
from pathlib import Path
from typing import BinaryIO, cast

MEASURING_LIMIT_BYTES = 40_000_000
# Tied to the driver, and gigabytes: left out unless --with-torch asks for them.
TIED = frozenset({"torch", "triton"})
# What else a GPU machine is taken to have as long as no --have says what it really has: what torch's own wheel asks
# for, and NumPy. Torch brings NVRTC and the headers of the CUDA runtime, but neither the compiler's own headers
# (mma.h needs them) nor the disassembler, nor cuda.core; small as they are, those always travel.
TAKEN_TO_BE_THERE = re.compile(
    r"numpy|cuda-(?!(core|tile)$).*|nvidia-(?!ml-py$|cutlass-.*|cuda-(crt|nvdisasm|cccl|tileiras)$).*"
)
# What "cuda-core[cu13]" stands for here; the extra itself asks for compilers that nothing here uses, in hundreds of MB.
OF_CU13 = ("cuda-bindings==13.*", "nvidia-cuda-nvrtc==13.*")
# Headers that lie beside those of the runtime are carried in the runtime's own version, where --have tells it.
BESIDE_THE_RUNTIME = frozenset({"nvidia-cuda-crt", "nvidia-cuda-cccl"})
RUNTIME = "nvidia-cuda-runtime"
PARTS, PART_NAME = "parts", "wheelhouse.tar"
MOST_PARTS = 900  # three digits in their names
# Folders whose files a record can depend on.
HELD = ("src/", "docs/", "handbook/", "labs/", "tests/", "proposals/", "capstone/")
# ipykernel names it and starts without it: a debugger's other half, a fifth of the measuring half.
NOT_NEEDED = frozenset({"debugpy"})
NETWORK_SIGNS = ("NewConnectionError", "ConnectTimeout", "Max retries exceeded", "Temporary failure in name",
                 "Network is unreachable", "Connection refused", "getaddrinfo failed")  # fmt: skip


class WheelhouseFailed(RuntimeError):
    """A collection that is of no use; the message is one line that says why and what to do."""


def main(arguments: Sequence[str], root: Path | None = None) -> int:
    """Collect wheels with the options after ``--``; returns the exit code."""
    options = _parse(arguments)
    root = (root or Path.cwd()).resolve()
    try:
        collect(root, options)
    except WheelhouseFailed as error:
        print(f"wheelhouse: {error}", file=sys.stderr)
        return 1
    except OSError as error:  # a full disk, a folder that only others may write
        where = f"{error.filename}: " if error.filename else ""
        print(f"wheelhouse: {where}{error.strerror or error}", file=sys.stderr)
        return 1
    return 0


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="nox -s wheelhouse --", description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--python", default="3.12", metavar="X.Y", help="the other machine's Python (3.12)")
    add(
        "--platform",
        default="manylinux_2_28_x86_64",
        metavar="TAG",
        help="its platform (manylinux_2_28_x86_64)",
    )
    add("--have", type=Path, metavar="FILE", help="its `pip list`: what it lists is left out")
    add(
        "--measure-only-half",
        action="store_true",
        help="only what measuring needs; the site is built elsewhere",
    )
    add("--with-torch", action="store_true", help="torch, triton, numpy and CUDA wheels too (gigabytes)")
    add(
        "--with",
        action="append",
        default=[],
        dest="more",
        metavar="EXTRA",
        help="the packages of one more extra of pyproject.toml, such as ladder (repeatable)",
    )
    add(
        "--parts",
        type=_size,
        metavar="SIZE",
        help="also cut it into parts of at most this size, such as 48M, for a machine that takes little at once",
    )
    add("--revision-only", action="store_true", help="write revision.txt anew and leave the wheels alone")
    add("--into", type=Path, default=Path("wheelhouse"), metavar="DIR", help="the folder (wheelhouse)")
    options = parser.parse_args(arguments)
    if not re.fullmatch(r"3\.\d+", options.python):
        parser.error(f"--python {options.python}: expected something like 3.12")
    if not re.fullmatch(r"[a-z0-9_]+", options.platform):
        parser.error(f"--platform {options.platform}: expected something like manylinux_2_28_x86_64")
    return options


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d+)([kKMG]?)B?", text)
    size = int(match[1]) * {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9}[match[2]] if match else 0
    if size < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected a size such as 48M")
    return size


def collect(root: Path, options: argparse.Namespace) -> None:
    """Fill the folder.

    Raises:
        WheelhouseFailed: no network, an unreadable list, or a package without a fitting wheel.
    """
    from packaging.requirements import Requirement

    folder = root / options.into
    folder.mkdir(parents=True, exist_ok=True)
    write_revision(root, folder)
    if options.revision_only:
        print(f"wheelhouse: revision.txt is written in {folder}")
        if (folder / PARTS).exists():
            print(
                f"wheelhouse: {folder / PARTS} holds the one before: carry this one too, and lay it into "
                f"{options.into.as_posix()} after the parts are joined"
            )
        return
    have = read_pip_list(options.have) if options.have else {}
    for old in folder.glob("*.whl"):
        old.unlink()
    shutil.rmtree(folder / PARTS, ignore_errors=True)
    extras = ["measure", "cuda13"] if options.measure_only_half else ["measure", "cuda13", "site"]
    with (root / "pyproject.toml").open("rb") as file:
        optional = tomllib.load(file)["project"]["optional-dependencies"]
    for extra in options.more:
        if extra not in optional:
            raise WheelhouseFailed(f"--with {extra}: there is no such extra; there are {', '.join(optional)}")
    lines = [_without_extras(line) for extra in extras for line in optional[extra]]
    lines += [line for extra in options.more for line in optional[extra]]
    wanted = {
        canonical(Requirement(line).name): _beside_the_runtime(line, have)
        for line in (*lines, *OF_CU13, "nox")
    }
    todo = {name: line for name, line in wanted.items() if not _is_left_out(line, have, options)}
    environment = target_environment(options.python, options.platform)
    asked: dict[str, list[str]] = {name: [line] for name, line in todo.items()}
    # pip fetches, and we follow the needs: it would want all that is there already once more.
    while todo:
        _download(list(todo.values()), folder, options)
        todo = {}
        for line in _all_needs(folder, asked, environment):
            name = canonical(Requirement(line).name)
            if line not in asked.setdefault(name, []):
                asked[name].append(line)
                if not _is_left_out(line, have, options):
                    todo[name] = line
        for name in todo:
            todo[name] = _joined(asked[name])
            for wheel in folder.glob("*.whl"):
                if canonical(wheel.name.split("-")[0]) == name:
                    wheel.unlink()  # a later need may narrow the version
    wheels = sorted(folder.glob("*.whl"))
    size = sum(wheel.stat().st_size for wheel in wheels)
    print(f"wheelhouse: {len(wheels)} wheels, {size / 1e6:.1f} MB, and revision.txt in {folder}")
    if options.measure_only_half and size > MEASURING_LIMIT_BYTES:
        print(
            f"wheelhouse: above {MEASURING_LIMIT_BYTES / 1e6:.0f} MB: give the other machine's list, --have"
        )
    if not options.have:
        taken = "" if options.with_torch else "torch, triton, numpy and the CUDA wheels that torch brings"
        print(
            f"wheelhouse: taken to be there: {taken or 'nothing'}; --have FILE (its `pip list`) says what is"
        )
    into = options.into.as_posix()
    commands = install_commands(into)
    if options.measure_only_half:
        commands[-1] += " -- --measure-only --archive records.tar.gz"
    if options.parts:
        parts = cut(folder, options.parts)
        print(
            f"wheelhouse: the same in {len(parts)} parts of at most {options.parts / 1e6:g} MB, in {folder / PARTS}:"
            " carry them over, one by one if need be, SHA256SUMS with the first"
        )
        commands = [*join_commands(into), *commands]
    print("\n  ".join(("On the other machine, at the root of the repository:", *commands)))


def install_commands(into: str) -> list[str]:
    """Command for the other machine, once the wheels lie in the folder `into` there."""
    return [
        f"python3 -m pip install --no-index --no-deps --target .venv/carried {into}/*.whl",
        "PYTHONPATH=.venv/carried python3 -m nox --no-venv -s docs",
    ]


def join_commands(into: str) -> list[str]:
    """Command to type before that, once the parts lie in the folder `into`/parts."""
    return [
        f"(cd {into}/{PARTS} && sha256sum --check SHA256SUMS)",
        f"cat {into}/{PARTS}/{PART_NAME}.* | tar -x -f - -C {into}",
    ]


def cut(folder: Path, size: int) -> list[Path]:
    """Lay all wheels and revision.txt down as one archive in parts of at most `size` bytes, with their checksums.

    A wheel may go over the edge of a part: only the parts together are an archive.

    Raises:
        WheelhouseFailed: the parts would be too many.
    """
    whole = sum(wheel.stat().st_size for wheel in folder.glob("*.whl"))
    if whole / size > MOST_PARTS:
        raise WheelhouseFailed(
            f"--parts: {whole / 1e6:.0f} MB make more than {MOST_PARTS} parts; ask for larger ones"
        )
    writer = _Parts(folder / PARTS, size)
    with tarfile.open(fileobj=cast(BinaryIO, writer), mode="w|") as archive:
        for file in (*sorted(folder.glob("*.whl")), folder / "revision.txt"):
            archive.add(file, arcname=file.name)
    writer.close()
    sums = "".join(f"{hashlib.sha256(part.read_bytes()).hexdigest()}  {part.name}\n" for part in writer.parts)
    (folder / PARTS / "SHA256SUMS").write_text(sums, encoding="utf-8")
    return writer.parts


class _Parts:
    """A file to write to that begins another part whenever one is full."""

    def __init__(self, folder: Path, size: int) -> None:
        folder.mkdir()
        self.folder, self.size = folder, size
        self.parts: list[Path] = []
        self.room = 0
        self.file: BinaryIO | None = None

    def write(self, data: bytes) -> int:
        rest = memoryview(data)
        while rest:
            if not self.room:
                self.close()
                # Three digits: the shell joins the parts in the order of their names.
                self.parts.append(self.folder / f"{PART_NAME}.{len(self.parts):03d}")
                self.file, self.room = self.parts[-1].open("wb"), self.size
            assert self.file is not None
            written = self.file.write(rest[: self.room])
            rest, self.room = rest[written:], self.room - written
        return len(data)

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


def _without_extras(line: str) -> str:
    from packaging.requirements import Requirement

    requirement = Requirement(line)
    requirement.extras.clear()
    return str(requirement)


def _beside_the_runtime(line: str, have: dict[str, str]) -> str:
    """Return the requirement in the version of the other machine's CUDA runtime, for what lies beside its headers."""
    from packaging.requirements import Requirement

    name = canonical(Requirement(line).name)
    version = re.match(r"\d+\.\d+", have.get(RUNTIME, ""))
    return f"{name}=={version[0]}.*" if name in BESIDE_THE_RUNTIME and version else line


def canonical(name: str) -> str:
    """Return a package's name as an index writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _is_left_out(line: str, have: dict[str, str], options: argparse.Namespace) -> bool:
    """Return True for what is not carried; a version that is there and too old does not count as there."""
    from packaging.requirements import Requirement
    from packaging.version import InvalidVersion

    requirement = Requirement(line)
    name = canonical(requirement.name)
    if name in NOT_NEEDED or (name in TIED and not options.with_torch):
        return True
    if name in have:
        try:
            return requirement.specifier.contains(have[name], prereleases=True)
        except InvalidVersion:
            return True
    if options.with_torch:
        return False
    return not options.have and TAKEN_TO_BE_THERE.fullmatch(name) is not None


def _joined(lines: list[str]) -> str:
    """Several requirements of one package as one."""
    from packaging.requirements import Requirement

    parsed = [Requirement(line) for line in lines]
    specifiers = ",".join(sorted({str(r.specifier) for r in parsed if str(r.specifier)}))
    extras = sorted({extra for r in parsed for extra in r.extras})
    return parsed[0].name + (f"[{','.join(extras)}]" if extras else "") + specifiers


def read_pip_list(path: Path) -> dict[str, str]:
    """Return names and versions from a saved `pip list`, in any of its formats (columns, freeze, json).

    Raises:
        WheelhouseFailed: the file cannot be read or holds no package.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise WheelhouseFailed(f"--have {path}: cannot be read ({error})") from None
    try:
        return {canonical(one["name"]): one["version"] for one in json.loads(text)}
    except (ValueError, KeyError, TypeError):
        pass
    found = {}
    for line in text.splitlines():
        match = re.match(r"([A-Za-z0-9][\w.-]*)(?:==|\s+)v?(\d[\w.+!-]*)", line.strip())
        if match:
            found[canonical(match[1])] = match[2]
    if not found:
        raise WheelhouseFailed(f"--have {path}: no package found in it; save the output of `pip list` there")
    return found


def platforms(tag: str) -> list[str]:
    """Return the tag and every older one it includes: pip matches each manylinux tag only with itself."""
    match = re.fullmatch(r"manylinux_2_(\d+)_(\w+)", tag)
    if not match:
        return [tag]
    minor, machine = int(match[1]), match[2]
    tags = [f"manylinux_2_{number}_{machine}" for number in range(minor, 4, -1)]
    legacy = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
    return [
        *tags,
        *(f"{name}_{machine}" for number, name in legacy.items() if minor >= number),
        f"linux_{machine}",
    ]


def target_environment(python: str, platform: str) -> dict[str, str]:
    """Marker values of the other machine."""
    machine = re.sub(r"^(manylinux\d*(_\d+_\d+)?|linux|musllinux_\d+_\d+)_", "", platform)
    return {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "sys_platform": "linux",
        "os_name": "posix",
        "platform_system": "Linux",
        "platform_machine": machine,
    }


def _all_needs(folder: Path, asked: dict[str, list[str]], environment: dict[str, str]) -> list[str]:
    """Return the requirements of all wheels in the folder, with the extras that are asked of them."""
    from packaging.requirements import Requirement

    needs: list[str] = []
    for wheel in sorted(folder.glob("*.whl")):
        lines = asked.get(canonical(wheel.name.split("-")[0]), [])
        extras = {extra for line in lines for extra in Requirement(line).extras}
        needs += wheel_needs(wheel, environment, extras)
    return needs


def wheel_needs(wheel: Path, environment: dict[str, str], extras: Iterable[str] = ()) -> Iterator[str]:
    """Yield the requirements of a wheel on that machine and with these extras, as lines without markers."""
    from packaging.requirements import Requirement

    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", n))
        metadata = HeaderParser().parsestr(archive.read(name).decode("utf-8"))
    for line in metadata.get_all("Requires-Dist") or []:
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({**environment, "extra": e}) for e in ("", *extras)):
            requirement.marker = None
            yield str(requirement)


def _download(lines: list[str], folder: Path, options: argparse.Namespace) -> None:
    """Let pip fetch exactly these packages, without their needs."""
    command = [
        sys.executable, "-m", "pip", "download", "--retries", "2", "--no-deps", "--only-binary=:all:",
        "--implementation", "cp", "--python-version", options.python, "--dest", str(folder),
        *(part for tag in platforms(options.platform) for part in ("--platform", tag)),
        *lines,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        return
    if any(sign in done.stdout + done.stderr for sign in NETWORK_SIGNS):
        raise WheelhouseFailed(
            "there is no network to the package index: run this where `pip download` works"
        )
    said = (
        [line for line in done.stderr.splitlines() if "ERROR" in line]
        or done.stderr.splitlines()
        or ["nothing"]
    )
    raise WheelhouseFailed(
        f"pip finds no wheel for Python {options.python} on {options.platform}: {said[-1].strip()}"
    )


def write_revision(root: Path, folder: Path) -> None:
    """Write the commit, and under it git's name for every file of it that a record can depend on."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else ""

    lines = [git("rev-parse", "HEAD").strip() or "unknown"]
    for entry in git("ls-tree", "-r", "HEAD").splitlines():
        about, path = entry.split("\t", 1)
        # Weights that one page made and another one reads lie among the records; so does what machines' files came to.
        made = path.startswith("records/") and (".artifacts/" in path or path.endswith("/harness.jsonl"))
        if made or (path.startswith(HELD) and "/assets/" not in path):
            lines.append(f"{about.split()[2]} {path}")
    (folder / "revision.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
