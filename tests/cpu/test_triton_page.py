"""Triton for NumPy people: its cells run without a card, in the interpreter, as the page promises."""

import ast
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.language.extra import libdevice
from triton.runtime import interpreter

from course_judge.worker.card_arithmetic import as_on_a_card
from course_site.pages.page import read_page

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/triton_for_numpy_people.py"


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What the cells print, one after the other in one file, as the page says to type them."""
    cells = [cell.source for cell in read_page(PAGE, ROOT).cells if cell.kind == "code"]
    file = tmp_path_factory.mktemp("typed") / "mine.py"
    file.write_text("\n\n".join(cells).replace('"cuda"', '"cpu"'), encoding="utf-8")
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, str(file)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [" ".join(line.split()) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    "line",
    [
        "[0, 10, 20, 30, -1, -1]",
        "[0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30]",
        "i // 2: [0, 0, 1, 1, 2, 2, 3, 3]",
        "same piece: [0, 2, 4, 6, 8, 10, 12, 14, -1, -1, -1, -1, -1, -1, -1, -1]",
        "unmasked: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]",
        "masked: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 7, 7, 7, 7, 7]",
        "other=0.0: 0.0",
        "other=-inf: -2.0",
        "both edges: [10, 35, 60]",
        "rows only: [28, 68, 60]",
        "top[:, None]: [[-3, -2, -1, 0], [-3, -2, -1, 0], [-3, -2, -1, 0], [-3, -2, -1, 0]]",
        "top: [[-3, -6, -9, -12], [1, -2, -5, -8], [5, 2, -1, -4], [9, 6, 3, 0]]",
        "row * N, then wide: -1673527296",
        "row made wide first: 2621440000",
    ],
)
def test_a_cell_prints_in_the_interpreter_what_the_page_says_of_the_card(printed, line):
    assert line in printed


@pytest.mark.parametrize(
    "line",
    [
        "count 2000",  # no race: one program after the other
        "dot 1.000244140625",  # no TF32
        "small_dot nothing",  # and what the compiler refuses, it takes
        "loop nothing",
        "outside nothing",
        "far SIGSEGV",
    ],
)
def test_the_interpreter_differs_where_the_page_says_so(printed, line):
    assert line in printed


def test_the_interpreter_has_no_bf16_and_tunes_nothing(printed):
    (bf16,) = [line for line in printed if line.startswith("bf16 ")]
    (tuned,) = [line for line in printed if line.startswith("tuned ")]
    assert bf16 != "bf16 7"
    assert tuned != "tuned nothing"


# --- what it says, in the interpreter and in the compiler -------------------------------------------------

# One slip for each line of the page's table of messages: how it is launched, and its types where it can be compiled
# without a card. The kernels are the page's own, and one more.
SLIPS = {
    "the launch brackets": ("sign(x)", None),
    "a grid is a tuple": ("sign[4](x)", None),
    "a constant must be passed": ("double[(1,)](x, x)", None),
    "the tensor is in the host's memory": ("double[(1,)](x, x, BLOCK=8)", None),
    "take the next power of two": ("hundred[(1,)](x)", ("hundred", {"out_ptr": "*i32"})),
    "mark the size": ("any_size[(1,)](x, 8)", ("any_size", {"out_ptr": "*i32", "N": "i32"})),
    "pass it in": ("from_outside[(1,)](x)", ("from_outside", {"out_ptr": "*i32"})),
    "`x_ptr[1]` is NumPy": ("like_python[(1,)](x)", ("like_python", {"x_ptr": "*fp32"})),
    "two shapes": ("two_lengths[(1,)](x)", ("two_lengths", {"x_ptr": "*fp32"})),
    "many numbers for one place": ("first_only[(1,)](x)", ("first_only", {"x_ptr": "*fp32"})),
    "begin with `0.0`": (
        "changing[(1,)](x, x, 8)",
        ("changing", {"x_ptr": "*fp32", "out_ptr": "*fp32", "N": "i32"}),
    ),
    "`if` needs a single truth value": ("truth[(1,)](x)", ("truth", {"x_ptr": "*fp32"})),
    "a tile too small": ("square[(1,)](x, T=8)", ("square", {"a_ptr": "*fp32"}, {"T": 8})),
    "an address far outside": ("beyond_all[(1,)](x)", None),
}
MORE = """
@triton.jit
def truth(x_ptr):
    i = tl.arange(0, 4)
    if i < 2:
        tl.store(x_ptr + i, 0.0)

@triton.jit
def square(a_ptr, T: tl.constexpr):
    i = tl.arange(0, T)
    places = i[:, None] * T + i[None, :]
    a = tl.load(a_ptr + places)
    tl.store(a_ptr + places, tl.dot(a, a))

@triton.jit
def beyond_all(x_ptr):
    tl.store(x_ptr + 2**42, 1.0)

def said(tried):
    try:
        tried()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"

def compiled(name, types, constants=None):
    kernel = globals()[name]
    signature = {n: types.get(n, "constexpr") for n in kernel.arg_names}
    places = {(kernel.arg_names.index(n),): value for n, value in (constants or {}).items()}
    triton.compile(ASTSource(kernel, signature, places), target=GPUTarget("cuda", 90, 32))

def in_a_process_of_its_own(launch):
    child = os.fork()
    if child == 0:
        eval(launch)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return "nothing: the process dies" if status == -signal.SIGSEGV else f"ended with {status}"

x, found = torch.ones(128), {}
if os.environ["TRITON_INTERPRET"] == "1":
    for means, (launch, _) in SLIPS.items():
        dies = "beyond_all" in launch
        found[means] = in_a_process_of_its_own(launch) if dies else said(lambda: eval(launch))
    found["after a first launch"] = said(lambda: sign(x))
    x = torch.ones(8)
    truth[(1,)](x)
    found["truth"] = x.tolist()
else:
    found["the launch brackets"] = said(lambda: sign(x))
    for means, (_, types) in SLIPS.items():
        if types:
            found[means] = said(lambda: compiled(*types))
print(json.dumps(found))
"""


def kernels_of_the_page():
    for cell in read_page(PAGE, ROOT).cells:
        if cell.kind == "code":
            for node in ast.parse(cell.source).body:
                if isinstance(node, ast.FunctionDef) and node.decorator_list:
                    yield "@triton.jit\n" + ast.get_source_segment(cell.source, node)


@pytest.fixture(scope="module")
def heard(tmp_path_factory):
    """What Triton says to every slip: with the interpreter, and where it can be had without a card, the compiler."""
    head = (
        "import json, os, signal, torch, triton\nimport triton.language as tl\n"
        "from triton.backends.compiler import GPUTarget\nfrom triton.compiler import ASTSource\n"
        f"SLIPS = {SLIPS!r}\nFACTOR = 3"
    )
    folder = tmp_path_factory.mktemp("slips")
    file = folder / "slips.py"
    file.write_text("\n\n".join([head, *kernels_of_the_page(), MORE]), encoding="utf-8")
    both = {}
    for who, flag in (("interpreter", "1"), ("compiler", "0")):
        environment = os.environ | {"TRITON_INTERPRET": flag, "TRITON_CACHE_DIR": str(folder)}
        done = subprocess.run([sys.executable, str(file)], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        both[who] = json.loads(done.stdout.splitlines()[-1])
    return both


def messages():
    """The page's table: what the compiler says, what the interpreter says, by the beginning of what it means."""
    text = PAGE.read_text(encoding="utf-8")
    table = text.partition("# | the compiler says | the interpreter says | it means |\n# |---|---|---|\n")[2]
    rows = [line.strip("# |").split(" | ") for line in table.partition("\n#\n")[0].splitlines()]
    return [(compiler, interpreter, means) for compiler, interpreter, means in rows]


def quoted(text):
    """The words between stars, without what a … stands for."""
    return [
        part.strip()
        for words in re.findall(r"\*([^*]+)\*", text)
        for part in words.split("…")
        if part.strip()
    ]


def slip_of(means):
    (found,) = [slip for slip in SLIPS if means.startswith(slip)]
    return found


def test_every_line_of_the_table_has_its_slip():
    assert [slip_of(means) for _, _, means in messages()] == list(SLIPS)


@pytest.mark.parametrize("row", messages(), ids=lambda row: slip_of(row[2]))
def test_the_interpreter_says_what_the_table_says(heard, row):
    compiler, interpreter, means = row
    actual = heard["interpreter"][slip_of(means)]
    words = quoted(interpreter)
    if interpreter == "the same":
        words = quoted(compiler)
    elif not words:
        assert interpreter.startswith("nothing: ")
        assert actual in ("nothing", interpreter)
    assert all(word in actual or word in heard["interpreter"]["after a first launch"] for word in words)
    assert not words or words[0] in actual


def test_where_the_interpreter_says_nothing_it_takes_the_if(heard):
    assert heard["interpreter"]["truth"] == [0.0] * 4 + [1.0] * 4


# The others come when a kernel is launched, and that takes a card.
COMPILED = [
    row for row in messages() if SLIPS[slip_of(row[2])][1] or row[2].startswith("the launch brackets")
]


@pytest.mark.parametrize("row", COMPILED, ids=lambda row: slip_of(row[2]))
def test_the_compiler_says_what_the_table_says(heard, row):
    compiler, _, means = row
    actual = heard["compiler"][slip_of(means)]
    assert all(word in actual for word in quoted(compiler))


def test_the_table_of_labs_has_every_lab_with_a_triton_door_and_counts_them():
    text = PAGE.read_text(encoding="utf-8")
    table = text[text.index("# ## Where the labs are") : text.index("# ## Where this leads")]
    doors = {
        lab.parent.name
        for lab in (ROOT / "labs").glob("*/lab.toml")
        if "[doors.triton]" in lab.read_text(encoding="utf-8").splitlines()
    }
    assert set(re.findall(r"^# \| `(\w+)` \|", table, re.MULTILINE)) == doors
    words = {5: "Five", 6: "Six", 7: "Seven", 8: "Eight", 9: "Nine"}
    assert text.count(f"{words[len(doors)]} labs can be typed") == 1
    assert text.count(f"{words[len(doors)]} [labs](#where-the-labs-are)") == 1


# --- what the interpreter does otherwise -------------------------------------------------------------------


@triton.jit
def one_kernel(x_ptr, y_ptr, DO: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    if DO == "sum":
        tl.store(y_ptr, tl.sum(x, 0))
    elif DO == "twice":
        tl.store(y_ptr + i, x * 2.0)
    elif DO == "cumsum":
        tl.store(y_ptr + i, tl.cumsum(x, 0))
    elif DO == "maximum":
        tl.store(y_ptr + i, tl.maximum(x, 1.0))
    elif DO == "fma":
        tl.store(y_ptr + i, tl.fma(x, x, -(1 + 2**-11)))
    elif DO == "counted":
        total = tl.sum(x, 0)
        for k in range(tl.program_id(0), 3):
            total += k.to(tl.int64)
        tl.store(y_ptr, total)
    elif DO == "by zero":
        tl.store(y_ptr + i, x // (x - x))
    elif DO == "erf":
        tl.store(y_ptr + i, libdevice.erf(x))
    elif DO == "asm":
        tl.store(y_ptr + i, tl.inline_asm_elementwise("mov.b32 $0, $1;", "=f,f", [x], tl.float32, True, 1))
    elif DO == "masked":
        tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < 0))
    elif DO == "turned":
        tl.store(y_ptr + i, x)
        tl.store(y_ptr + i, tl.load(y_ptr + N - 1 - i))
    elif DO == "scaled":
        q, s = tl.full([32, 32], 1, tl.uint8), tl.full([32, 1], 127, tl.uint8)
        tl.store(y_ptr, tl.max(tl.dot_scaled(q, s, "e4m3", q, s, "e4m3")))
    else:
        tl.store(y_ptr + i, x)


@triton.jit
def square_kernel(a_ptr, b_ptr, c_ptr, T: tl.constexpr):
    i = tl.arange(0, T)
    places = i[:, None] * T + i[None, :]
    tl.store(c_ptr + places, tl.dot(tl.load(a_ptr + places), tl.load(b_ptr + places)))


@gluon.jit
def gluon_kernel(x_ptr):
    pass


def one(do, values, dtype=torch.float32, out=None):
    """Each value that comes out, as the table writes it, or what is said instead."""
    x = values if isinstance(values, torch.Tensor) else torch.tensor(values, dtype=dtype)
    y = torch.zeros(len(x), dtype=out or x.dtype)
    try:
        one_kernel[(1,)](x, y, DO=do, N=len(x))
    except interpreter.InterpreterError as error:
        return [str(error.__cause__ or error)]
    return [f"{value:.12g}" for value in y.tolist()]


def square(a, b):
    c = torch.zeros(16, 16)
    square_kernel[(1,)](a, b, c, T=16)
    return [f"{value:.12g}" for value in c.unique().tolist()]


def refused(launch):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        launch()
    return [str(caught.value)]


def short(values):
    return [f"{float(values[0]):.2g}"]


FP8, BF16, INF, NAN = torch.float8_e4m3fn, torch.bfloat16, math.inf, math.nan
NAN_IN_FP8 = torch.tensor([0x7F], dtype=torch.uint8).view(FP8)
ONES = torch.ones(16, 16, dtype=BF16)
FIRST_LINE = "`triton.runtime.driver.active.get_active_torch_device()`"
# By how a line of the table begins: what is run for it.
DONE = {
    "`tl.sum` of 1": lambda: short(one("sum", [1, 3, 5, 7], BF16)),
    "`tl.dot` of two": lambda: square(ONES, ONES),
    "`x * 2.0`": lambda: one("twice", [1, 3], BF16),
    "`x.to(tl.bfloat16)` of 1.01": lambda: one("", [1.01171875], out=BF16),
    "`x.to(tl.bfloat16)` of the whole": lambda: short(one("", [3], torch.int8, out=BF16)),
    "`x.to(tl.float8e4nv)` of 1.97": lambda: one("", [1.97], out=FP8),
    "`x.to(tl.float8e4nv)` of 500": lambda: one("", [500, INF, NAN, 0], out=FP8)[:3],
    "`x.to(tl.float8e5)`": lambda: one("", [480], out=torch.float8_e5m2),
    "`x.to(tl.float32)`": lambda: one("", NAN_IN_FP8, out=torch.float32),
    "`x.to(tl.int32)`": lambda: one("", [3e9, NAN], out=torch.int32),
    "`tl.dot` in fp32": lambda: square(torch.eye(16), torch.full((16, 16), 1 + 2**-11)),
    "`tl.maximum`": lambda: one("maximum", [NAN]),
    "`tl.fma(": lambda: one("fma", [1 + 2**-12]),
    "`tl.cumsum`": lambda: one("cumsum", [1] * 4096, torch.float16)[-1:],
    "`k.to(tl.int64)`": lambda: one("counted", [0], torch.int64)[:1],
    "`x // 0`": lambda: one("by zero", [7], torch.int32),
    "a load where": lambda: one("masked", [5.0]),
    "`tl.store`, then": lambda: (
        ["what was stored"] if one("turned", [1.0, 2.0, 3.0, 4.0]) == ["4", "3", "2", "1"] else ["another"]
    ),
    "`libdevice.erf(x)`": lambda: one("erf", [1.0]),
    "`tl.inline_asm": lambda: one("asm", [1.0]),
    "`tl.dot_scaled`": lambda: one("scaled", [1.0]),
    FIRST_LINE: lambda: refused(lambda: triton.runtime.driver.active.get_active_torch_device()),
    "a kernel in Gluon": lambda: refused(lambda: gluon_kernel[(1,)](torch.ones(1))),
}
# What no arithmetic decides: chance, what is not promised, what is not there.
ON_A_CARD_ALONE = (
    "`x * 2.0`",
    "`x // 0`",
    "a load where",
    "`tl.store`, then",
    "`libdevice",
    "`tl.inline_asm",
)
ON_A_CARD_ALONE += ("`tl.dot_scaled`", FIRST_LINE, "a kernel in Gluon")


def differences():
    """The page's table: what is written, what the interpreter gives, what a card gives."""
    text = PAGE.read_text(encoding="utf-8")
    table = text.partition("# | you write | the interpreter gives | a card gives |\n# |---|---|---|\n")[2]
    rows = [line.strip("# |").split(" | ") for line in table.partition("\n#\n")[0].splitlines()]
    return [tuple(row) for row in rows]


def done_for(written):
    (found,) = [run for begins, run in DONE.items() if written.startswith(begins)]
    return found


def test_every_difference_has_its_run_and_every_run_its_difference():
    assert len(differences()) == len(DONE)
    assert {done_for(written) for written, *_ in differences()} == set(DONE.values())


@pytest.mark.parametrize("row", differences(), ids=lambda row: row[0])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_interpreter_differs_as_the_table_says(row):
    written, gives, _ = row
    if "active drivers" in gives and torch.cuda.is_available():
        pytest.skip("there is a card, and so a driver")
    actual = done_for(written)()
    if words := quoted(gives):
        assert words[0] in actual[0]
    else:
        assert re.findall(r"`([^`]+)`", gives) == actual


@pytest.mark.parametrize(
    "row", [row for row in differences() if not row[0].startswith(ON_A_CARD_ALONE)], ids=lambda row: row[0]
)
def test_with_a_cards_arithmetic_it_gives_what_the_table_says_of_a_card(row):
    written, _, gives = row
    with as_on_a_card():
        assert done_for(written)() == [
            value for value in re.findall(r"`([^`]+)`", gives) if not value.startswith("propagate")
        ]
