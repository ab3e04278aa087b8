"""What compilers made of our kernels, kept by all that they were given: the same again makes the same again.

Whether a kernel compiles, and what a test has seen in its machine code.

A kernel that nobody has touched since is not compiled anew for every card there is; a sixteenth of them is, so that the
file is held against the compilers too. What it does not know is compiled, and a whole run of the tests fails where
that is more than a sixteenth. To add what is missing and drop what nobody asks for any more, after a change of many;
with --anew all of it is compiled. Where a test fails, what was made by then is kept all the same, and nothing dropped:

    .nox/tests/bin/python tests/cpu/compiled.py
"""

from __future__ import annotations

import dis
import hashlib
import inspect
import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import once
from machine_code import Code

import course_kernels
from course_kernels.cuda.compile import compile_cubin
from course_kernels.cuda.includes import sources_of
from course_site.records.digest import code_digest

ROOT = Path(course_kernels.__file__).parent
# How we ask the compiler, and what of a source it gets to see; and how its machine code is read. By their meaning.
ASKED = (ROOT / "cuda/compile.py", ROOT / "cuda/headers.py", ROOT / "cuda/includes.py")
READ = (ROOT / "cuda/disassemble.py", Path(__file__).with_name("machine_code.py"))

FILE = Path(__file__).with_suffix(".json")
ANEW = "COMPILE_ANEW"  # names the file that is to be written instead of the one that is read
ALL = "COMPILE_ALL"  # is set where nothing is taken over from the one that is read
MADE_BY = "made by"  # the entry with the versions of the compilers; every other one is a fact
ASKED_FOR = "compiled-asked"  # in the folder of a run: "known" or "unknown" and a key, for each fact that was asked for


@cache
def kept() -> tuple[dict[str, Any], str]:
    """What is known, and which of it is compiled all the same: what begins with this."""
    text = FILE.read_text(encoding="utf-8")
    return json.loads(text), hashlib.sha256(text.encode()).hexdigest()[0]


def cold(run: Path) -> str:
    """What is wrong with the file, in one line: more than a sixteenth of what a whole run asked for is not in it.

    With other compilers than those that it was made by nothing is.
    """
    facts, _ = kept()
    if facts.get(MADE_BY) != compilers() or not (run / ASKED_FOR).exists():
        return ""
    asked = dict(reversed(line.split()) for line in (run / ASKED_FOR).read_text().splitlines())
    missing = sum(word == "unknown" for word in asked.values())
    if missing * 16 <= len(asked):
        return ""
    return (
        f"{FILE.name} has lost {missing} of the {len(asked)} facts that the tests ask for, so they were compiled anew; "
        f"write it: .nox/tests/bin/python tests/cpu/{Path(__file__).name}"
    )


@cache
def compilers() -> list[str]:
    """Everything that NVIDIA's compiler and its headers come in, and Triton."""
    named = {each.metadata["Name"].lower(): each.version for each in metadata.distributions()}
    ours = [name for name in named if name.startswith(("nvidia-cuda", "cuda-")) or name == "triton"]
    return [f"{name} {named[name]}" for name in sorted(ours)]


def known(given: object, make: Callable[[], Any]) -> Any:
    """What `make` makes of what it is given, from the file if that is in it.

    Args:
        given: all that decides it, as JSON; which compilers are installed is added.
    Raises:
        AssertionError: it was made anew, and the file says something else.
    """
    key = hashlib.sha256(json.dumps([compilers(), given]).encode()).hexdigest()[:24]
    facts, drawn = kept()
    if anew := os.environ.get(ANEW):
        made = facts[key] if key in facts and not os.environ.get(ALL) else make()
        _add_line(anew, json.dumps([key, made]))
        return made
    if run := os.environ.get(once.FOLDER):
        _add_line(Path(run, ASKED_FOR), f"{'known' if key in facts else 'unknown'} {key}")
    if key not in facts:
        return make()
    if key.startswith(drawn):
        made = json.loads(json.dumps(make()))
        assert made == facts[key], f"{FILE.name} has {facts[key]} of what comes to {made}: {given}"
    return facts[key]


def _add_line(file: str | Path, line: str) -> None:
    """Add a line to what several processes write, in one piece."""
    with open(file, "ab", buffering=0) as end:
        end.write(f"{line}\n".encode())


def decides(source: Path) -> dict[str, str]:
    """What decides what becomes of a source, by where it lies: texts for the compiler, our own code by its meaning."""
    return _texts(*sources_of(source)) | _meanings(ASKED)


def _texts(*files: Path) -> dict[str, str]:
    return {os.path.relpath(file, ROOT): file.read_text(encoding="utf-8") for file in files}


@cache
def _meanings(files: tuple[Path, ...]) -> dict[str, str]:
    return {os.path.relpath(file, ROOT): code_digest(file.read_text(encoding="utf-8")) for file in files}


def seen(
    look: Callable[..., Any], source: Path, arch: str, defines: Mapping[str, Any] | None = None, *more: Any
) -> Any:
    """`look(code, *more)` on a kernel's machine code, as JSON; compiled only where nobody has looked like that yet.

    Args:
        look: a function that is whole by itself: beside its code and the constants that it reads nothing is compared.
    Raises:
        AssertionError: `look` uses what lies outside and is neither a constant nor Python's own.
    """

    def make() -> Any:
        return json.loads(json.dumps(look(Code(compile_cubin(source, arch, defines)), *more)))

    return known([decides(source), _meanings(READ), arch, defines, _whole(look), more], make)


@cache
def _whole(look: Callable[..., Any]) -> list[str]:
    """The meaning of a function, and the constants that it reads."""
    assert isinstance(look, FunctionType), f"{look}: no function"
    assert look.__closure__ is None, f"{look.__name__}: reads what is outside"
    codes, names = [look.__code__], set()
    for code in codes:
        for each in dis.get_instructions(code):
            assert each.opname != "IMPORT_NAME", f"{look.__name__}: imports {each.argval}"
            names |= {each.argval} if each.opname == "LOAD_GLOBAL" else set()
        codes += [each for each in code.co_consts if isinstance(each, CodeType)]
    read = {name: look.__globals__[name] for name in sorted(names) if name in look.__globals__}
    said = [f"{name}={_said(look.__name__, name, x)}" for name, x in read.items()]
    text = textwrap.dedent(inspect.getsource(look))
    return [code_digest(text), repr((look.__defaults__, look.__kwdefaults__)), *said]


def _said(look: str, name: str, x: object) -> str:
    if isinstance(x, re.Pattern):
        return repr((x.pattern, x.flags))
    if isinstance(x, str | bytes | int | float | tuple | frozenset | list | dict | None):
        return repr(x)
    home = x.__name__ if isinstance(x, ModuleType) else str(getattr(x, "__module__", ""))
    is_pythons = home.partition(".")[0] in sys.stdlib_module_names
    assert is_pythons, f"{look} uses {name}, whose text nobody would compare: write it into {look}"
    return f"{home}.{getattr(x, '__qualname__', '')}"


def tests_that_ask() -> list[Path]:
    """The test files that import this one, or a file beside it that does; or run such a file, which they name."""
    texts = {file: file.read_text(encoding="utf-8") for file in sorted(FILE.parent.glob("*.py"))}
    asking, new = set(), {Path(__file__).resolve()}
    while new:
        asking |= new
        names = "|".join(file.stem for file in asking)
        names = re.compile(rf"^\s*(?:from|import) (?:{names})\b|[\"'](?:{names})\.py[\"']", re.MULTILINE)
        new = {file for file, text in texts.items() if file not in asking and names.search(text)}
    return sorted(file for file in asking if file.name.startswith("test_"))


def write(*, anew: bool) -> int:
    """Compile what the tests ask for and the file does not know, or all of it, and keep what they ask for alone.

    Returns:
        How pytest ended. Not with 0: it says which test failed, and what the file knew of other tests stays in it.
    """
    made = FILE.with_suffix(".made")
    made.write_text("")
    tests = [str(file) for file in tests_that_ask()]
    environment = os.environ | {ANEW: str(made)} | ({ALL: "1"} if anew else {})
    # --anew: a test whose verdict is kept would not ask.
    processes = str(min(os.cpu_count() or 1, len(tests)))
    command = [sys.executable, "-m", "pytest", "-q", "--anew", "-n", processes, "--dist", "loadfile"]
    code = 1
    try:
        code = subprocess.run([*command, *tests], env=environment, check=False).returncode
    finally:  # Ctrl-C too
        keep(made.read_text(encoding="utf-8"), whole=code == 0)
        made.unlink()
    return code


def keep(made: str, *, whole: bool) -> None:
    """Write the file anew.

    Args:
        made: a fact in each line, as `known` adds them.
        whole: every test has asked; otherwise what the file knew of the same compilers stays in it.
    """
    was = {} if whole else json.loads(FILE.read_text(encoding="utf-8"))
    facts = was if was.get(MADE_BY) == compilers() else {}
    facts |= dict(map(json.loads, made.splitlines()))
    facts = {MADE_BY: compilers(), **dict(sorted((key, facts[key]) for key in facts.keys() - {MADE_BY}))}
    new = FILE.with_suffix(".new")
    lines = (f"{json.dumps(key)}: {json.dumps(fact)}" for key, fact in facts.items())
    new.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    new.replace(FILE)


if __name__ == "__main__":
    sys.exit(write(anew="--anew" in sys.argv[1:]))
