"""One-line faults in our own code: where they may be planted, and which ones there are.

Our own list and no library. mutmut and cosmic-ray know Python only; a third of what can go wrong here is CUDA C++ and
the JavaScript of the run view. They also mutate what no test may look at, such as the words of an error, and the
equivalent mutants among those would drown the rest.

Python is mutated by its syntax tree, so that what comes out is Python, and never in a docstring, a comment, an
annotation, an f-string, a decorator or what an error says. CUDA and JavaScript are mutated by their tokens, outside of
comments, strings and preprocessor lines.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KERNELS = "src/course_kernels"
BROWSER = "tests/browser"


@dataclass(frozen=True, order=True)
class Mutant:
    """One line of one file, and what stands there instead.

    Attributes:
        kind: operator, constant, bound, removed or negated.
        column: where the change begins, so that two changes of one line are two mutants.
    """

    area: str
    file: str
    line: int
    column: int
    kind: str
    before: str
    after: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What a mutant is known by when lines above it have come or gone."""
        return self.file, self.before.strip(), self.after.strip()


@dataclass(frozen=True)
class Area:
    """A part of the project and the tests that look at it.

    Attributes:
        files: patterns below the root of the repository.
        tests: for a pattern of files the tests that could see a fault there, cheapest first.
        share: how many of sixty are drawn here.
        without: files no test on a CPU runs, with the reason.
    """

    files: tuple[str, ...]
    tests: dict[str, tuple[str, ...]]
    share: int
    without: dict[str, str] = field(default_factory=dict)


def _cpu(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/cpu/test_{name}.py" for name in names)


def _problem(name: str, *more: str) -> tuple[str, ...]:
    return _cpu(*more, f"kernels_{name}", "kernels_hard_values", "kernels_elsewhere")


AREAS = {
    "kernels": Area(
        tuple(
            f"{KERNELS}/{problem}/{pattern}"
            for problem in (
                "attention", "attention_backward", "attention_general", "bank_conflicts", "bias_gelu",
                "bytes_in_flight", "copy",
                "decode_attention", "divergence", "fused_multiply_add", "gemm", "gemm_fp8", "grey", "paged_attention",
                "qkv_rope", "reduction", "rms_norm", "sampling", "sgemm", "silu", "softmax", "strided_read",
                "swiglu", "transpose", "vector_add",
            )
            for pattern in ("k*.cu", "k*.py", "by_*.py", "arguments.py", "tiles.py")
        ),
        {
            "*/attention/k03_flash.py": _cpu("kernels_triton", "compile_triton", "kernels_elsewhere"),
            "*/attention/*": _cpu("kernels_cuda", "kernels_triton", "kernels_elsewhere"),
            "*/copy/*": _cpu("kernels_cuda", "kernels_elsewhere"),
            "*/softmax/*": _cpu("kernels_cuda", "kernels_hard_values", "kernels_elsewhere"),
            "*/vector_add/*": _cpu("kernels_vector_add", "kernels_cuda", "kernels_triton", "kernels_elsewhere"),
            "*/gemm/k05_triton.py": _cpu("kernels_gemm_triton", "kernels_gemm", "compile_triton"),
            "*/gemm/k04_*": _cpu("kernels_gemm_wgmma", "kernels_gemm"),
            "*/gemm_fp8/*": _cpu("kernels_gemm_fp8", "compile_triton", "kernels_elsewhere"),
            **{
                f"*/{name}/*": _problem(name)
                for name in (
                    "attention_backward", "attention_general", "bank_conflicts", "bias_gelu", "bytes_in_flight",
                    "decode_attention",
                    "divergence", "fused_multiply_add", "gemm", "grey", "paged_attention", "reduction", "sampling",
                    "sgemm", "silu", "strided_read", "transpose",
                )
            },
            # Who begins early waits: no interpreter does, and the machine code is read.
            **{
                f"*/{name}/*": _problem(name) + _cpu("compile_triton") for name in ("qkv_rope", "rms_norm", "swiglu")
            },
        },
        12,
        {f"{KERNELS}/attention/k04_specialised.py": "Gluon for Hopper alone: no interpreter runs it"},
    ),
    "check": Area(
        tuple(f"{KERNELS}/measure/{name}.py" for name in ("check", "gate", "messages", "competitor")),
        {
            "*/gate.py": _cpu("measure_gate", "measure_derive"),
            "*/competitor.py": _cpu("measure_check", "kernels_refusals", "measure_run", "problem_folders"),
            "*": _cpu("measure_check", "kernels_refusals", "kernels_hard_values", "measure_run"),
        },
        7,
    ),
    "clock": Area(
        tuple(f"{KERNELS}/measure/{name}.py" for name in ("clock", "summary", "record_types", "derive")),
        {
            "*/clock.py": _cpu("measure_clock", "measure_run"),
            "*": _cpu("measure_derive", "measure_readings", "measure_run", "measure_gate"),
        },
        6,
    ),
    "digest": Area(
        ("src/course_site/records/digest.py",),
        {"*": _cpu("digest", "record", "source_diff")},
        4,
    ),
    "values": Area(
        (
            *(f"src/course_site/values/{name}.py" for name in ("values", "uncertainty", "units")),
            "src/course_site/lint/values_in_prose.py",
        ),
        {
            "*/uncertainty.py": _cpu("values", "run_history", "render", "cpu_pages"),
            "*": _cpu("values_in_prose", "values", "render", "cpu_pages"),
        },
        5,
    ),
    "claims": Area(
        tuple(f"src/course_site/values/{name}.py" for name in ("claims", "claim_bounds")),
        {"*": _cpu("claim_bounds", "values", "render", "cpu_pages")},
        3,
    ),
    "record": Area(
        tuple(
            f"src/course_site/records/{name}.py"
            for name in ("record", "manifest", "cpu_worker", "gpu_test_records")
        ),
        {
            "*/manifest.py": _cpu("manifest", "execute", "record", "gpu_test_records"),
            "*/gpu_test_records.py": _cpu("gpu_test_records", "docs_command"),
            "*": _cpu("record", "execute", "cpu_pages", "render", "docs_command"),
        },
        6,
    ),
    "grader": Area(
        tuple(
            f"src/{package}/{pattern}"
            for package in ("course_labs", "course_judge")
            for pattern in ("*.py", "worker/*.py", "protocol/*.py")
        ),
        {
            "*/course_judge/worker/interpreter.py": _cpu("judge_interpreter", "judge", "labs"),
            "*/course_judge/timing.py": _cpu("judge_timing", "judge"),
            "*/course_judge/*": _cpu("judge", "labs"),
            "*/course_judge/*/*": _cpu("judge", "labs"),
            "*/course_labs/wrong_answers.py": _cpu("wrong_answers", "labs"),
            **{
                f"*/course_labs/{file}.py": _cpu(name, "labs")
                for name, files in {
                    "diagnosis": ("diagnosis", "worker/suspects"),
                    "experiments": ("experiments",),
                    "interactive_cases": ("interactive_cases", "worker/plays"),
                }.items()
                for file in files
            },
            "*": _cpu("labs", "labs_cuda", "layers"),
        },
        4,
        {
            "src/course_judge/worker/dispatch_guard.py": "its half of the judging is the card's",
            "src/course_judge/protocol/cuda_ipc.py": "memory of a card, handed to another process",
        },
    ),
    "maps": Area(
        tuple(
            f"src/course_site/sessions/{name}.py"
            for name in ("map", "checks", "session", "fields", "plain_data", "road", "taught_minutes", "print_sheet")
        ),
        {
            "*/taught_minutes.py": _cpu("taught_minutes", "sessions"),
            "*/print_sheet.py": _cpu("print_sheet", "sessions"),
            "*": _cpu("sessions", "run_view", "taught_minutes", "cohort_page"),
        },
        5,
    ),
    "run view": Area(
        ("handbook/run/run.js", "src/course_site/sessions/run_view.py"),
        {"*.js": (f"{BROWSER}/test_run_view.py",), "*.py": _cpu("run_view", "sessions")},
        4,
    ),
    "calendar": Area(
        (
            "handbook/run/calendar.js",
            *(f"src/course_site/sessions/{name}.py" for name in ("calendar_form", "cohort", "cohort_page")),
        ),
        {
            "*.js": (f"{BROWSER}/test_calendar.py",),
            "*/calendar_form.py": _cpu("cohort_page", "run_view", "cohort"),
            "*": _cpu("cohort", "cohort_page", "arc_weeks"),
        },
        4,
    ),
}  # fmt: skip

# Numbers that cost or save time and nothing else: how a tile is cut, how much is kept. No test can say which is right.
SPEED_ONLY = re.compile(
    r"Tile\(|lru_cache|maxsize|num_warps|num_stages|warps=|stages=|#pragma|__launch_bounds__|\bSLICE\b|\bGROUP\w*\b"
    r"|\b(?:RESIDENT|PREFERRED|BLOCKS_PER_SM|WARM_UP_S|SETTLE_\w+|MAX_PASSES|FRESH_PASSES|REMEMBERED|HOLDS?\w*)\s*="
)


# What to choose of the first test file before all of it is run: the tests whose names speak of this file.
FIRST = {
    "*/course_judge/worker/forbidden_calls.py": "not_theirs or does_wrong",
    "*/course_labs/check.py": "words_for_a_tensor or habits or nobody_writes",
    "*/course_labs/worker/arrays.py": "numpy_door or holds or at_once or walk_along",
    "*/course_labs/worker/file.py": "does_wrong or constant or takes_lists",
    "*/course_labs/hints.py": "mistake or advice or strange or told",
    "*/course_labs/grade.py": "everyday or slip or takes_the_process or ended or exit_code",
    "*/course_labs/lab.py": "listed or lab_toml or slip or missing_snapshot or constant",
    "*/course_labs/*": "written or kept or keeps or leaves or slip or listed",
    "*/k[0-9][0-9]_*": "{stem}",
}


def first_of(mutant: Mutant) -> str:
    """What pytest's `-k` is told for the first, quick look; empty where there is none."""
    patterns = (said for pattern, said in FIRST.items() if Path("/" + mutant.file).match(pattern))
    return next(patterns, "").format(stem=Path(mutant.file).stem)


def tests_of(mutant: Mutant) -> tuple[str, ...]:
    """The test files that could see a mutant, cheapest first."""
    for pattern, tests in AREAS[mutant.area].tests.items():
        if Path("/" + mutant.file).match(pattern):
            return tests
    raise LookupError(f"no test looks at {mutant.file}")


def generate(root: Path = ROOT) -> list[Mutant]:
    """Every mutant, sorted."""
    found = []
    for name, area in AREAS.items():
        for file in sorted({path for pattern in area.files for path in root.glob(pattern)}):
            place = file.relative_to(root).as_posix()
            if place not in area.without and file.name != "__init__.py":
                found += list(mutants_of(name, place, file.read_text(encoding="utf-8")))
    return sorted(set(found))


def mutants_of(area: str, file: str, text: str) -> Iterator[Mutant]:
    """The mutants of one file."""
    rules = {".py": _python, ".js": _javascript}.get(Path(file).suffix, _cuda)
    lines = text.split("\n")
    for line, start, end, new, kind in rules(text):
        before = lines[line - 1]
        after = before[:start] + new + before[end:]
        if after != before and not SPEED_ONLY.search(before):
            yield Mutant(area, file, line, start, kind, before, after)


def draw(mutants: list[Mutant], seed: int, count: int = 60) -> list[Mutant]:
    """So many mutants, each area with its share, the same ones for a seed.

    A mutant has its lot from the seed and from what it is, so that an edit elsewhere draws the same ones again.
    """
    total = sum(area.share for area in AREAS.values())
    drawn: list[Mutant] = []
    rest: list[Mutant] = []
    for name, area in AREAS.items():
        here = _spread([mutant for mutant in _by_lot(mutants, seed) if mutant.area == name])
        share = max(1, count * area.share // total)
        drawn += here[:share]
        rest += here[share:]
    drawn = (drawn + _by_lot(rest, seed))[:count]
    return sorted(drawn)


def instead_of(area: str, file: str, mutants: list[Mutant], seed: int) -> Mutant:
    """The one to plant where the line of a drawn one is gone: of its file, or of its area if that has none left."""
    here = [mutant for mutant in mutants if mutant.area == area]
    return _by_lot([mutant for mutant in here if mutant.file == file] or here, seed)[0]


def _by_lot(mutants: list[Mutant], seed: int) -> list[Mutant]:
    def lot(mutant: Mutant) -> tuple[bytes, Mutant]:
        return hashlib.sha256(repr((seed, *mutant.key, mutant.column)).encode()).digest(), mutant

    return sorted(mutants, key=lot)


def _spread(mutants: list[Mutant]) -> list[Mutant]:
    """The same, so ordered that one of every file comes before a second, and one kind does not crowd out the others."""
    seen: Counter[str] = Counter()
    order = []
    for i, mutant in enumerate(mutants):
        place, kind = f"{mutant.file}:{mutant.line}", f"{mutant.file} {mutant.kind}"
        order.append((seen[mutant.file] + 20 * seen[place] + 2 * seen[kind], i, mutant))
        seen.update([mutant.file, place, kind])
    return [mutant for *_, mutant in sorted(order)]


# What replaces columns start to end of a line: (line, start, end, new, kind).
Change = tuple[int, int, int, str, str]


# --- Python --------------------------------------------------------------------------------------------

_COMPARISONS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_ARITHMETIC = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.FloorDiv: ("//", "*"),
    ast.Div: ("/", "*"),
    ast.Mod: ("%", "//"),
}
_FOLDER = re.compile(r"(?i)root|folder|path|parent|place|files|site")  # `/` between them makes a path
_SAYS = frozenset({"print", "warn", "error", "refuse", "Complaint", "complain", "_complain", "add_argument"})


def _python(text: str) -> Iterator[Change]:
    yield from _Python(text).changes


class _Python(ast.NodeVisitor):
    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.changes: list[Change] = []
        self.visit(ast.parse(text))

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert | ast.Import | ast.ImportFrom):
            return
        if isinstance(node, ast.Call):
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if name in _SAYS:
                return
        super().visit(node)

    # What is no code that runs: annotations and decorators.

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for default in (*node.args.defaults, *(d for d in node.args.kw_defaults if d)):
            self.visit(default)
        self._body(node.body)

    visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._body(node.body)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def _body(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self.visit(statement)

    # Where a change may be.

    def _columns(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        line = self.lines[node.lineno - 1].encode()
        return len(line[: node.col_offset].decode()), len(line[: node.end_col_offset].decode())

    def _change(self, node: ast.expr | ast.stmt, new: str, kind: str) -> None:
        if node.lineno == node.end_lineno:
            self.changes.append((node.lineno, *self._columns(node), new, kind))

    def _between(self, left: ast.expr, right: ast.expr, old: str, new: str) -> None:
        """Replace the operator between two operands on one line."""
        if left.end_lineno != right.lineno:
            return
        line = self.lines[right.lineno - 1]
        start = len(line.encode()[: left.end_col_offset].decode())
        end = self._columns(right)[0] if right.lineno == right.end_lineno else right.col_offset
        found = re.search(re.escape(old).replace(r"\ ", r"\s+"), line[start:end])
        if found:
            here = start + found.start()
            self.changes.append((right.lineno, here, start + found.end(), new, "operator"))

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
            self._between(left, right, *_COMPARISONS[type(operator)])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        # A sum of words is no sum: to subtract them would be seen by anybody.
        words = any(
            isinstance(side, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp)
            or (isinstance(side, ast.Constant) and isinstance(side.value, str))
            for side in (node.left, node.right)
        )
        words = words or (isinstance(node.op, ast.Div) and bool(_FOLDER.search(ast.unparse(node.left))))
        if not words and type(node.op) in _ARITHMETIC:
            self._between(node.left, node.right, *_ARITHMETIC[type(node.op)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between(left, right, old, new)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._change(node, str(not value), "constant")
        elif isinstance(value, int):
            self._change(node, str(value + 1), "constant")
        elif isinstance(value, float):
            self._change(node, repr(2 * value or 1.0), "constant")

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id == "zip":
            # `strict` is a guard, as an assertion is: lists as long as each other give the same without it.
            node.keywords = [keyword for keyword in node.keywords if keyword.arg != "strict"]
        if isinstance(node.func, ast.Name) and node.func.id == "range" and node.args:
            bound = node.args[0] if len(node.args) == 1 else node.args[1]
            if bound.lineno == bound.end_lineno:
                start, end = self._columns(bound)
                self._change(bound, f"{self.lines[bound.lineno - 1][start:end]} - 1", "bound")
        self.generic_visit(node)

    def _negated(self, test: ast.expr) -> None:
        if test.lineno == test.end_lineno:
            start, end = self._columns(test)
            self._change(test, f"not ({self.lines[test.lineno - 1][start:end]})", "negated")

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self._negated(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negated(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._negated(test)
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return  # a docstring
        if isinstance(node.value, ast.Call):
            self._change(node, "pass", "removed")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._change(node, "pass", "removed")
        self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._change(node, "pass", "removed")

    def visit_Break(self, node: ast.Break) -> None:
        self._change(node, "pass", "removed")

    def visit_Assign(self, node: ast.Assign) -> None:
        if SPEED_ONLY.search(self.lines[node.lineno - 1]):
            return  # on all of its lines
        # Without a first assignment a name is unknown, which anybody would see; a place in something has a value.
        if all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            self._change(node, "pass", "removed")
        for target in node.targets:
            self.visit(target)
        self.visit(node.value)


# --- CUDA C++ and JavaScript ---------------------------------------------------------------------------

_TOKEN = re.compile(
    r"""
      (?P<comment>   //[^\n]* | /\*.*?\*/ )
    | (?P<directive> ^[^\S\n]*\#(?:\\\n|[^\n])* )
    | (?P<string>    "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | `(?:\\.|[^`\\])*` )
    | (?P<word>      [A-Za-z_$][\w$]* )
    | (?P<number>    \.?\d(?:[eEpP][+-]|[\w.'])* )
    | (?P<space>     \s+ )
    | (?P<other>     ===|!==|=>|->|\+\+|--|<<=|>>=|>>>|<<|>>|<=|>=|==|!=|&&|\|\||\?\?|[-+*/%&|^]=|::|. )
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
# A regular expression of JavaScript stands where no value came before it.
_REGEX = re.compile(r"/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/[a-z]*")
_SWAPS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "===": "!==", "!==": "===",
    "&&": "||", "||": "&&", "+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "+=": "-=", "-=": "+=", "*=": "+=",
}  # fmt: skip

_DECLARES = re.compile(
    r"\s*(?:__shared__ |alignas\(\w+\) |static |const )*(?:unsigned|float4?|int|half|uint4|T)\s+\w+\["
)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    line: int
    start: int  # column

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def _tokens(text: str, regexes: bool) -> list[_Token]:
    """Everything but spaces and comments."""
    found: list[_Token] = []
    at, line, line_start = 0, 1, 0
    while at < len(text):
        match = None
        last = found[-1].text if found else "("
        if (
            regexes
            and text[at] == "/"
            and text[at + 1] not in "/*"
            and last in ("(", ",", "=", ":", "[", "!", "&&", "||", "return")
        ):
            match = _REGEX.match(text, at)
        kind = "string" if match else ""
        if not match:
            match = _TOKEN.match(text, at)
            assert match
            kind = str(match.lastgroup)
        if kind not in ("comment", "space"):
            found.append(_Token(kind, match.group(), line, at - line_start))
        newlines = match.group().count("\n")
        if newlines:
            line += newlines
            line_start = match.start() + match.group().rindex("\n") + 1
        at = match.end()
    return found


def _cuda(text: str) -> Iterator[Change]:
    yield from _c_like(text, "cuda")


def _javascript(text: str) -> Iterator[Change]:
    yield from _c_like(text, "javascript")


def _c_like(text: str, language: str) -> Iterator[Change]:
    tokens = _tokens(text, language == "javascript")
    lines = text.split("\n")
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        line = lines[token.line - 1]
        if "static_assert" in line or "alignas" in line:
            continue  # the one is a test itself; what the other takes is a power of two
        if token.kind == "other" and token.text in _SWAPS:
            # An operator has a space on both sides; a template's bracket, a pointer's star and a sign have not.
            spaced = line[token.start - 1 : token.start] == " " and line[token.end : token.end + 1] == " "
            words = "string" in (before.kind, after.kind) and token.text in "+-*/%"
            if spaced and not words:
                yield token.line, token.start, token.end, _SWAPS[token.text], "operator"
        elif token.kind == "number" and (new := _next_number(token.text)):
            template = before.text == "<" and after.text in (">", ",")
            # One more element of an array of its own is room that nobody asks for.
            room = before.text == "[" and after.text == "]" and _DECLARES.match(line)
            if not template and not room:
                yield token.line, token.start, token.end, new, "constant"
        elif token.text in ("true", "false"):
            yield token.line, token.start, token.end, "false" if token.text == "true" else "true", "constant"
    yield from _conditions(tokens)
    yield from _statements(tokens)


def _next_number(text: str) -> str:
    if re.fullmatch(r"\d+", text):
        return str(int(text) + 1)
    found = re.fullmatch(r"(\d+\.\d*)(f?)", text)
    return f"{float(found[1]) + 1}{found[2]}" if found else ""


def _closing(tokens: list[_Token], opening: int) -> int | None:
    """The token that closes the bracket at `opening`."""
    depth = 0
    for i in range(opening, len(tokens)):
        depth += (tokens[i].text in "([{") - (tokens[i].text in ")]}") if tokens[i].kind == "other" else 0
        if not depth:
            return i
    return None


def _conditions(tokens: list[_Token]) -> Iterator[Change]:
    """`if (this)` on one line, turned round."""
    for i, token in enumerate(tokens[:-1]):
        if token.text != "if" or tokens[i + 1].text != "(":
            continue
        close = _closing(tokens, i + 1)
        if close is not None and tokens[close].line == token.line:
            first, last = tokens[i + 1], tokens[close]
            inside = tokens[i + 2 : close]
            written = "".join(
                " " * (one.start - previous.end) + one.text
                for previous, one in zip([first, *inside], inside, strict=False)
            )
            yield token.line, first.end, last.start, f"!({written})", "negated"


def _statements(tokens: list[_Token]) -> Iterator[Change]:
    """A statement that fills the rest of its line and declares nothing, taken out: the semicolon stays."""
    for i, token in enumerate(tokens):
        before = tokens[i - 1].text if i else "{"
        if before not in ("{", "}", ";", ")", "else") or token.kind != "word":
            continue
        if before == ")" and tokens[i - 1].line == token.line and not _is_body(tokens, i):
            continue
        end = i
        while end < len(tokens) and tokens[end].text not in (";", "{", "}"):
            end += 1
        if end >= len(tokens) or tokens[end].text != ";" or tokens[end].line != token.line:
            continue
        inside = tokens[i:end]
        second = inside[1] if len(inside) > 1 else None
        if second is None:
            removable = token.text in ("continue", "break")
        elif second.text in ("::", "<", "*", "&") or second.kind == "word":
            removable = False  # a declaration, `return x`, `typedef`, `else if`
        elif token.text in (
            "if",
            "for",
            "while",
            "switch",
            "return",
            "throw",
            "do",
            "alignas",
            "static_assert",
        ):
            removable = False
        else:
            opens = sum((t.text in "([") - (t.text in ")]") for t in inside if t.kind == "other")
            removable = not opens and any(t.text.endswith("=") or t.text in ("(", "++", "--") for t in inside)
        if removable:
            yield token.line, token.start, tokens[end].start, "", "removed"


def _is_body(tokens: list[_Token], i: int) -> bool:
    """Whether the bracket that closes before token i is that of `if`, `for` or `while`."""
    depth = 0
    for j in range(i - 1, -1, -1):
        depth += (tokens[j].text == ")") - (tokens[j].text == "(")
        if not depth:
            return j > 0 and tokens[j - 1].text in ("if", "for", "while")
    return False
