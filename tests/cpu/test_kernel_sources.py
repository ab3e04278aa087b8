"""A kernel that reads what its record does not keep is refused: each of these changes under the same digest."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from course_site.records.digest import code_digest, cuda_digest
from course_site.records.kernel_sources import faults_of
from course_site.site.words import check_numbers

# What stands in a kernel's file, the same with other words, and what the gate says of it.
PYTHON = [
    # A docstring that is read as data, of the module and of a function.
    ('"""128"""\nTILE = int(__doc__)', "128", "256", "__doc__"),
    ('def tile():\n    """128"""\nTILE = int(tile.__doc__)', "128", "256", "__doc__"),
    ('def tile():\n    """128"""\nTILE = int(getattr(tile, "__doc__"))', "128", "256", "__doc__"),
    ('"""128"""\nfrom inspect import getdoc\nTILE = getdoc(1)', "128", "256", "inspect"),
    # The text, an f-string, a keyword of an error that is caught and read.
    (
        'try:\n    raise ValueError("128")\nexcept ValueError as error:\n    TILE = int(str(error))',
        "128", "256", "'error', an error that it catches",
    ),
    (
        'n = 1\ntry:\n    raise ValueError(f"12{n}")\nexcept Exception as e:\n    TILE = int(e.args[0])',
        "12", "25", "'e', an error that it catches",
    ),
    (
        'try:\n    raise Tile(size="128")\nexcept Tile as tile:\n    TILE = tile.size\n    raise',
        "128", "256", "'tile', an error that it catches",
    ),
    ('import sys\ntry:\n    raise Tile("128")\nexcept Tile:\n    TILE = sys.exc_info()[1]', "128", "256", "exc_info"),
    # What a function is told that only says that it raises.
    (
        'def tile(of: str) -> NoReturn:\n    return int(of)\nTILE = tile("128")',
        "128", "256", "tile is `-> NoReturn` and does more",
    ),
    (
        'def tile(of: str) -> "typing.NoReturn":\n    SEEN.append(of)\n    raise ValueError\ntile("128")',
        "128", "256", "tile is `-> NoReturn` and does more",
    ),
    # Lines and comments.
    ("def f():\n    pass\nTILE = f.__code__.co_firstlineno * 64", "def f", "\n\ndef f", "co_firstlineno"),
    ("import inspect\n# 128\nTILE = inspect.getsource(f)", "128", "256", "inspect"),
    ('import linecache\n# 128\nTILE = linecache.getline("k01.py", 2)', "128", "256", "linecache"),
    ("# 128\nTILE = int(open(__file__).readline()[2:])", "128", "256", "open reads a file"),
    ("# 128\nTILE = Path(__file__).read_text()[2:5]", "128", "256", "Path(__file__).read_text"),
    ("# 128\nTILE = kernel.raw_src[2:5]", "128", "256", "raw_src"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "old", "new", "says"), PYTHON)
def test_a_kernel_that_changes_under_its_digest_is_refused(text, old, new, says):
    other = text.replace(old, new, 1)
    assert other != text
    assert code_digest(other) == code_digest(text)
    found = [why for _, why in faults_of("src/course_kernels/copy/k09_self.py", text)]
    assert any(why.startswith(says) for why in found), found


@pytest.mark.parametrize(
    "text",
    [
        "import os\nTILE = int(os.environ['TILE'])",
        "from os import getenv\nTILE = getenv('TILE')",
        "import sys\nTILE = sys.argv[1]",
        "import platform\nTILE = len(platform.uname().node)",
        'SOURCE = "int tile = __LINE__;"',
    ],
)
def test_what_is_around_a_kernel_decides_nothing(text):
    assert list(faults_of("src/course_kernels/copy/k09_self.py", text))


@pytest.mark.parametrize(
    ("text", "comment"),
    [
        ("int tile() {\n  return __LINE__;\n}", "// one\n"),
        ("#define TILE (64 * __LINE__)\n", "/* two\n*/"),
        ("int tile = __builtin_LINE();", "// one\n"),
        ("#line 128\nint tile = 3;", None),
        ("const char *when = __TIME__;", None),
    ],
)
def test_cuda_that_counts_its_lines_is_refused(text, comment):
    if comment:
        assert cuda_digest(comment + text) == cuda_digest(text)
    assert list(faults_of("src/course_kernels/copy/k09_self.cu", text))


def test_what_a_kernel_may_do_is_not_refused():
    kernel = '''"""Copy. __doc__ and os.environ are words here."""
SOURCE = Path(__file__).with_suffix(".cu")  # __LINE__
def refuse(what: str) -> NoReturn:
    """Refuse."""
    raise ValueError(f"{what}: expected 128")
try:
    import fast
except ImportError as error:
    raise ValueError(f"no fast: {error}") from error
except OSError:
    fast = None
MAPS = Path("/proc/self/maps").read_text(encoding="utf-8")
'''
    assert list(faults_of("src/course_kernels/copy/k09_self.py", kernel)) == []
    assert list(faults_of("src/course_kernels/measure/clock.py", "import os\nX = os.environ")) == []
    cuda = '// __LINE__\n/* #line 3\n__FILE__ */\nint line = 3; const char *s = "// no comment";\n'
    assert list(faults_of("src/course_kernels/copy/k09_self.cu", cuda)) == []


def test_the_build_stops_at_one(tmp_path):
    file = tmp_path / "src/course_kernels/copy/k09_self.py"
    file.parent.mkdir(parents=True)
    file.write_text('"""128"""\n\nTILE = int(__doc__)\n')
    problems = []
    course = SimpleNamespace(
        root=tmp_path, sources={}, problem=lambda path, why: problems.append((Path(path).name, why))
    )

    check_numbers(course)

    assert [name for name, _ in problems] == ["k09_self.py"]
    assert problems[0][1].startswith("line 3: __doc__ reads its own words or lines")
