"""The judge: what it refuses and what it lets pass, on a machine without a GPU; and that nothing is left behind."""

import contextlib
import importlib
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from course_judge import __main__ as command
from course_judge.hidden_sizes import draw, small
from course_judge.host import Host, Task
from course_judge.judge import judge
from course_judge.protocol.channel import MAX_MESSAGE, Channel, Gone, OutOfTurn, TimedOut
from course_judge.protocol.limits import GIB, Limits
from course_judge.protocol.verdict import PROPERTIES, RIGHT, Taken, Verdict, escaped, is_sealed, refused
from course_judge.timing import NoTime, Timed, calls_of_a_batch
from course_kernels.problem import Workload
from course_labs.lab import find_labs

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "judge"
QUICK = Limits(seconds=2.0, memory_bytes=GIB // 2, disk_bytes=GIB // 4)
# Where nothing hangs, a busy machine may take its time.
PATIENT = replace(QUICK, seconds=60.0)
# Who writes too much is stopped by the system or by the judge, whichever looks first.
WRITTEN = ("File too large", "it wrote more than 0.25 GiB")
SCALE = command.find_problem("refusals")


# Right up to here along one dimension. An interpreter on a busy machine may not come so far; its verdict says how far.
RIGHT_UP_TO = {"row_of_one_block": ("N", 1024)}


def header(file):
    """(properties, where, what must be said) of a file's first line."""
    line = file.read_text(encoding="utf-8-sig").splitlines()[0]
    found = re.fullmatch(
        r"# refused for: ([^|]+) \| on: ([^|]+) \| source: ([^|]+?)(?: \| says: (.+))?", line
    )
    assert found, f"{file}: its first line does not say what it must be refused for"
    properties = found[1].split(" or ")
    assert set(properties) <= set(PROPERTIES), f"{file}: the judge knows no {found[1]!r}"
    return properties, found[2].split(", "), found[4] or ""


def files_in(folder):
    return sorted(file for file in (FOLDER / folder).iterdir() if file.name.endswith((".py", ".py.txt")))


CHEATS = {file: header(file) for file in files_in("cheats")}
ON_THE_CPU = [file for file, (_, on, _) in CHEATS.items() if "cpu" in on]
HONEST = [file for file in files_in("right") if "cpu" in file.read_text(encoding="utf-8-sig").splitlines()[0]]


KERNELS = ROOT / "src" / "course_kernels"
# Numbers alone decide these, and no limit, no process and no thread.
BY_NUMBERS = {
    "wrong", "wrong result", "wrong shape", "wrong dtype", "cached result", "not a plain tensor", "shares memory",
    "input modified", "all NaN", "not written", "NaN lost", "infinity lost", "function missing",
    "syntax error", "same memory twice", "a view", "not yours",
}  # fmt: skip


def by_numbers(file):
    """Whether a cheat's verdict is the same on every machine."""
    looks_at_more = re.search(r"\b(thread\w*|time|signal|fork|subprocess|sys|gc|ctypes)\b", file.read_text())
    return set(CHEATS[file][0]) <= BY_NUMBERS and not looks_at_more


def kept(file):
    """A file whose verdict is kept by the files that decide it."""
    mark = pytest.mark.kept("src/course_kernels/refusals", file, but=["tests/judge/*", "labs/*"])
    return pytest.param(file, marks=mark)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Where the strangers of this file have their folders."""
    was, tempfile.tempdir = tempfile.tempdir, str(tmp_path_factory.mktemp("folders"))
    yield Path(tempfile.tempdir)
    tempfile.tempdir = was


@pytest.fixture(scope="module")
def host(folders):
    with Host(command.modules(False, own=True), command.environment(False)) as host:
        yield host


@pytest.fixture
def judged(host, tmp_path):
    """A judge of files and of texts, with limits that are soon reached."""

    def judged(file, problem=SCALE, seed=None, limits=PATIENT, own=False, function=None, **how):
        if isinstance(file, str):
            (tmp_path / "a_file.py").write_text(file)
            file = tmp_path / "a_file.py"
        if file.suffix == ".txt":  # what no formatter leaves as it is
            file = Path(shutil.copy(file, tmp_path / file.stem))
        task = Task(file, function or problem.name, own=own, limits=limits)
        return judge(host, file, problem, task=task, seed=seed, **how)

    return judged


@pytest.fixture
def briefly(monkeypatch):
    """A right file is asked again as often as every file is at least, and no longer."""
    monkeypatch.setattr("course_judge.judge.AGAIN_SECONDS", 0.0)


def test_there_are_more_than_thirty_cheats():
    assert len(ON_THE_CPU) >= 100
    assert len(HONEST) >= 12


@pytest.mark.parametrize(
    "file",
    [kept(file) if by_numbers(file) else file for file in ON_THE_CPU],
    ids=lambda file: file.name.split(".")[0],
)
def test_a_cheat_is_refused_for_its_reason(judged, file):
    properties, _, said = CHEATS[file]
    limits = QUICK if "timed out" in properties else PATIENT
    if file.stem == "returns_twice":
        # Two listen on one channel; who has not got the question, or hangs as a copy may, keeps the judge to the limit.
        limits = replace(PATIENT, seconds=10.0)
    verdict = judged(file, own=properties == ["not yours"], limits=limits)
    if verdict.found == RIGHT and verdict.not_held:
        pytest.skip(f"this system does not hold {', '.join(verdict.not_held)}")
    if verdict.found == RIGHT and file.stem in RIGHT_UP_TO:
        name, bound = RIGHT_UP_TO[file.stem]
        far = re.search(rf"past the largest announced[^\n]*\b{name} = (\d+)", verdict.text)
        if far and int(far[1]) <= bound:
            pytest.skip(f"this machine was too slow to ask past {name} = {far[1]}")

    assert verdict.found in properties, verdict.text
    assert verdict.code == 1
    assert said in verdict.text


@pytest.mark.parametrize("file", list(map(kept, HONEST)), ids=lambda file: file.name.split(".")[0])
def test_what_is_right_passes(briefly, judged, file):
    verdict = judged(file, limits=PATIENT)
    assert (verdict.found, verdict.code) == (RIGHT, 0), verdict.text


def test_nothing_is_left_and_nothing_is_written_outside(judged, folders):
    assert (
        judged("def refusals(x, s):\n    open('here', 'w').write('1')\n    return x\n").found
        == "shares memory"
    )
    assert not list(folders.iterdir())
    assert not [*ROOT.rglob("*.cheated"), *Path.home().glob(".*.cheated")]


# --- what the library has -------------------------------------------------------------------------

TRITON = sorted(
    file
    for file in (ROOT / "src" / "course_kernels").glob("*/k*triton*.py")
    if file.parent.name
    not in ("attention_fp8", "gemm_fp8", "grouped_gemm")  # the interpreter has no fp8 to multiply
)
ANSWERS = [
    pytest.param(lab, id=name)
    for name, lab in find_labs(ROOT).items()
    if "triton" in lab.doors and name != "flash_attention"  # half an hour in the interpreter
]


@pytest.mark.kept(
    "src/course_kernels/refusals", of=lambda file: [file.parent], but=["tests/judge/*", "labs/*"]
)
@pytest.mark.parametrize("file", TRITON, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_a_kernel_of_the_library_is_right(briefly, judged, file):
    problem = command.find_problem(file.parent.name)
    kind = set(problem.check_on[0].dims)
    # The interpreter multiplies bfloat16 wrongly.
    fit = [w for w in problem.check_on if set(w.dims) == kind and w.dtype != "bfloat16"]
    least = sorted(fit, key=problem.flops)[:2]
    verdict = judged(file, problem, limits=Limits(), workloads=least)
    assert verdict.found == RIGHT, verdict.text


DECODE = """\
import torch

def decode_attention(q, k_cache, v_cache, lengths):
    B, H, D = q.shape
    out = torch.zeros_like(q)
    kv = torch.arange(H) // (H // k_cache.shape[1])
    for b in range(B):
        n = int(lengths[b])
        if n == 0:
            continue
        k, v = k_cache[b, kv, :n].float(), v_cache[b, kv, :n].float()
        s = (k @ q[b, :, :, None].float())[:, :, 0] / D**0.5
        half = (n + 1) // 2
        parts = list(zip(s.split(half, dim=1), v.split(half, dim=1)))
        of_part = [part.amax(dim=1, keepdim=True) for part, _ in parts]
        of_all = torch.stack(of_part).amax(dim=0)
        total = acc = 0
        for m, (part, values) in zip(of_part, parts):
            p = torch.exp(part - m) * torch.exp(m - of_all)
            total = total + p.sum(dim=1, keepdim=True)
            acc = acc + (p[:, None] @ values)[:, 0]
        out[b] = (acc / total).to(q.dtype)
    return out
"""
PAST_A_LENGTH = ("not written", "wrong")  # NaN lies there, and tokens of an earlier sequence


@pytest.mark.parametrize(
    ("right", "wrong", "found"),
    [
        ("", "", (RIGHT,)),
        ("int(lengths[b])", "k_cache.shape[2]", PAST_A_LENGTH),
        ("int(lengths[b])", "min(int(lengths[b]) + 1, k_cache.shape[2])", PAST_A_LENGTH),
        ("int(lengths[b])", "max(int(lengths[b]), 1)", PAST_A_LENGTH),
        ("int(lengths[b])", "int(lengths[0])", PAST_A_LENGTH),
        ("return out", "return out.nan_to_num()", ("NaN lost",)),
        (" * torch.exp(m - of_all)", "", ("wrong",)),
        ("// (H // k_cache.shape[1])", "% k_cache.shape[1]", ("wrong",)),
    ],
)
def test_a_step_of_decoding_is_judged(judged, right, wrong, found):
    problem = command.find_problem("decode_attention")
    workloads = [w for w in small(problem) if (w.dtype, w.D) == ("float16", 64) and w.N <= 127]
    verdict = judged(DECODE.replace(right, wrong), problem, limits=Limits(), workloads=workloads)

    assert right in DECODE
    assert verdict.found in found, verdict.text


def test_the_librarys_step_of_decoding_is_right(judged):
    file = ROOT / "src" / "course_kernels" / "decode_attention" / "k02_split.py"
    problem = command.find_problem("decode_attention")
    workloads = [Workload.parse(f"dtype=float16,B=2,H=4,KV=2,N={N},D=64") for N in (17, 129)]
    verdict = judged(file, problem, limits=Limits(), workloads=workloads)

    assert verdict.found == RIGHT, verdict.text


@pytest.mark.kept(
    "src/course_kernels/refusals",
    of=lambda lab: [lab.folder, KERNELS / lab.problem],
    but=["tests/judge/*", "labs/*"],
)
@pytest.mark.parametrize("lab", ANSWERS)
def test_the_answer_of_a_lab_is_right_and_its_own(briefly, judged, lab):
    problem = command.find_problem(lab.problem)
    sizes = [Workload.parse(text) for text in lab.tries][:3]
    verdict = judged(
        lab.solution("triton"), problem, limits=Limits(), own=True, function=lab.entry[0], workloads=sizes
    )
    assert verdict.found == RIGHT, verdict.text


# --- sizes, and the seed ---------------------------------------------------------------------------


PROBLEMS = sorted(path.parent.name for path in (ROOT / "src" / "course_kernels").glob("*/problem.py"))


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_drawn_size_is_possible_small_and_not_announced(name):
    problem = command.find_problem(name)
    seen = set()
    for seed in range(40):
        for workload in draw(problem, problem.check_on, random.Random(seed)):
            assert workload not in problem.check_on
            assert small(problem, [workload]) == (workload,)
            assert tuple(workload.dims) in {tuple(w.dims) for w in problem.check_on}
            problem.make_inputs(workload, torch.Generator(), "cpu")
            seen.add(workload)
    assert len(seen) > 20


def test_no_size_is_drawn_that_a_kernel_of_the_library_refuses():
    restricted = 0
    for file in sorted((ROOT / "src" / "course_kernels").glob("*/k[0-9][0-9]_*.py")):
        kernel = importlib.import_module(f"course_kernels.{file.parent.name}.{file.stem}")
        supports = getattr(kernel, "supports", None)
        if supports is None:
            continue
        problem = command.find_problem(file.parent.name)
        announced = [w for w in problem.check_on if supports(w)]
        restricted += len(announced) < len(problem.check_on)
        for seed in range(20):
            refused = [w for w in draw(problem, announced, random.Random(seed)) if not supports(w)]
            assert not refused, f"{file.parent.name}/{file.stem}: {refused}"
    assert restricted > 5


# Its announced sizes are square, and its contract does not say that all are.
OF_ANY_SIDES = replace(SCALE, name="of any sides")


def test_a_tall_size_is_drawn_with_every_wide_one():
    for seed in range(20):
        shapes = [(w.M, w.N) for w in draw(OF_ANY_SIDES, OF_ANY_SIDES.check_on, random.Random(seed))]
        assert shapes[-1] == shapes[0][::-1]


def test_no_size_is_square_where_another_can_be_draw():
    """Who is right on squares alone would pass on one: all announced sizes of this problem are square."""
    for seed in range(2000):
        shapes = [(w.M, w.N) for w in draw(OF_ANY_SIDES, OF_ANY_SIDES.check_on, random.Random(seed))]
        assert any(M > N for M, N in shapes), shapes
        assert any(M < N for M, N in shapes), shapes


# So many random sizes of each problem, 102 altogether: one of its right strangers and one of its wrong ones in turn.
# With SEEDS=200 in the environment every stranger gets 200 sizes of its problem.
SIZES = 34
SEEDS = int(os.environ.get("SEEDS", "0"))
# Parameters, three answers that are right, and three that are wrong.
STRANGERS = {
    "refusals": (
        "x, s",
        ("x * s[:, None]", "(s * x.T).T.contiguous()", "torch.stack([row * a for row, a in zip(x, s)])"),
        ("x * s[:, None] * 1.001", "x * s.flip(0)[:, None]", "(x.half() * s.half()[:, None]).float()"),
    ),
    "vector_add": (
        "x, y",
        ("x + y", "torch.add(y, x)", "x.clone().add_(y)"),
        ("(x + y).index_fill(0, torch.tensor(len(x) // 2), 0)", "x + y.roll(1)", "torch.maximum(x, y)"),
    ),
    "softmax": (
        "x",
        (
            "torch.softmax(x, -1)",
            "torch.softmax(x.double(), -1).float()",
            "(e := torch.exp(x - x.amax(-1, True))) / e.sum(-1, True)",
        ),
        (
            "torch.softmax(x, 0)",
            "(e := torch.exp(x - x.amax())) / e.sum()",
            "torch.softmax(x.bfloat16(), -1).float()",
        ),
    ),
}


def random_sizes(problem, count):
    """So many different sizes."""
    found, seeds = {}, itertools.count()
    while len(found) < count:
        found |= dict.fromkeys(draw(problem, problem.check_on, random.Random(next(seeds))))
    return list(found)[:count]


@pytest.fixture(scope="module")
def quick_host(folders):
    """For hundreds of strangers: few further questions, and one thread, which waits for no other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with (
        pytest.MonkeyPatch.context() as patch,
        Host(
            command.modules(False, own=False), command.environment(False) | {"OMP_NUM_THREADS": "1"}
        ) as host,
    ):
        patch.setattr("course_judge.judge.AGAIN", (1, 3))
        yield host
    torch.set_num_threads(threads)


@pytest.mark.kept(
    "src/course_kernels/refusals", of=lambda name, **_: [KERNELS / name], but=["tests/judge/*", "labs/*"]
)
@pytest.mark.parametrize("right", [True, False], ids=["right", "wrong"])
@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("name", STRANGERS)
def test_no_verdict_changes_with_the_seed(quick_host, tmp_path, name, which, right):
    parameters, *answers = STRANGERS[name]
    file = tmp_path / "a_file.py"
    file.write_text(f"import torch\ndef {name}({parameters}):\n    return {answers[not right][which]}\n")
    problem = command.find_problem(name)
    sizes = random_sizes(problem, SEEDS) if SEEDS else random_sizes(problem, SIZES)[which::3]
    # What is wrong is refused on the first size; so each has a process of its own. A size of one element may hide a
    # fault, so the judge is told of a large one, too.
    asked = [sizes] if right else [(size, small(problem)[-1]) for size in sizes]
    task = Task(file, name, limits=PATIENT)
    found = {
        judge(quick_host, file, problem, workloads=workloads, task=task, seed=seed).found
        for seed, workloads in enumerate(asked)
    }
    assert found == ({RIGHT} if right else {"wrong"})


# --- what ends badly -------------------------------------------------------------------------------


def test_two_judges_at_once_know_nothing_of_each_other(judged, host, tmp_path):
    slow = tmp_path / "slow.py"
    # In Triton, and by the command: as a reader's process loads it.
    text = (FOLDER / "right" / "triton_rows.py").read_text()
    slow.write_text(
        text.replace("    M, N = x.shape\n", "    import time\n    time.sleep(0.02)\n    M, N = x.shape\n")
    )
    assert "sleep" in slow.read_text()
    command_line = [sys.executable, "-m", "course_judge", str(slow), "--problem", "refusals", "--json"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "CUDA_VISIBLE_DEVICES": "-1"}
    other = subprocess.Popen(command_line, env=environment, stdout=subprocess.PIPE, text=True)
    here = judged("def refusals(x, s):\n    return x\n")
    said, _ = other.communicate(timeout=120)

    assert here.found == "shares memory"
    assert json.loads(said)["found"] == RIGHT
    assert other.returncode == 0


def test_a_judge_that_is_killed_leaves_nothing_behind(tmp_path):
    file = tmp_path / "sleeps.py"
    mark = f"{os.getpid()}.{time.monotonic_ns()}"
    file.write_text(
        "import os, subprocess, time\ndef refusals(x, s):\n"
        f"    subprocess.Popen(['sleep', '{mark}'], start_new_session=True)\n    time.sleep(600)\n"
    )
    (tmp_path / "folders").mkdir()
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "src"),
        "CUDA_VISIBLE_DEVICES": "-1",
        "TMPDIR": str(tmp_path / "folders"),
    }
    there = subprocess.Popen(
        [sys.executable, "-m", "course_judge", str(file), "--problem", "refusals"], env=environment
    )
    _wait_for(lambda: _running(mark))
    there.kill()
    there.wait()
    _wait_for(lambda: not _running(mark) and not list((tmp_path / "folders").iterdir()))


def test_where_no_copy_can_be_trusted_each_stranger_loads_everything_itself(folders, tmp_path):
    texts = {
        "right": ("import torch\n\ndef refusals(x, s):\n    return x * s[:, None]\n", RIGHT),
        "hung": ("def refusals(x, s):\n    while True:\n        pass\n", "timed out"),
    }
    found = {}
    with Host(command.modules(False, own=False), command.environment(False), fresh=True) as host:
        for name, (text, _) in texts.items():
            (file := tmp_path / f"{name}.py").write_text(text)
            task = Task(file, "refusals", limits=replace(QUICK, seconds=20 if name != "hung" else 2))
            found[name] = judge(host, file, SCALE, task=task, seed=1)

    assert {name: verdict.found for name, verdict in found.items()} == {
        n: due for n, (_, due) in texts.items()
    }
    assert not list(folders.iterdir())


def test_a_stranger_is_ended_where_the_system_cannot_say_who_runs():
    code = (
        "import os, time\nfrom course_judge.protocol import processes\nfrom course_judge.worker import process\n"
        "processes.children = dict\npid = os.fork()\nif not pid:\n    time.sleep(600)\n"
        "print(process._sweep(pid))"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )

    assert done.stdout == "Swept(status=-9, left=0)\n"


def _running(words):
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if words in line and entry.name != str(os.getpid()):
                return True
    return False


def _wait_for(true, seconds=60):
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("body", "found", "said"),
    [
        ("while True: pass", "timed out", "it worked for 2 s, the limit of one answer, and was ended"),
        ("import os; os.kill(os.getpid(), 9)", "died", "SIGKILL"),
        ("import os; os._exit(0)", "died", "exit code 0"),
        ("k = []\n    while True: k.append(bytearray(2**26))", "out of memory", ""),
        ("f = open('big', 'wb')\n    while True: f.write(b'1' * 2**20)", "out of room", WRITTEN),
        ("import os; k = [os.open('/dev/null', 0) for _ in range(5000)]", "crashed", "Too many open files"),
        ("open('/tmp/outside', 'w')", "crashed", "line 2: PermissionError"),
        ("1 / 0", "crashed", "line 2: ZeroDivisionError: division by zero"),
        ("raise ValueError('\\x1b[31mred\\nright')", "crashed", r"ValueError: \x1b[31mred"),
    ],
)
def test_each_end_has_its_line(judged, body, found, said):
    limits = QUICK if found == "timed out" else PATIENT
    verdict = judged(f"def refusals(x, s):\n    {body}\n    return x\n", limits=limits)
    assert verdict.found == found, verdict.text
    assert any(one in verdict.why for one in (said if isinstance(said, tuple) else (said,))), verdict.why
    assert "\n" not in verdict.why
    assert "\x1b" not in verdict.text


# What a stranger's process says in place of its answer, by the judge's own code and with the mark that it waits for.
FORGED = [
    [],
    {"outputs": 5},
    {"outputs": [5]},
    {"outputs": [{"type": 5}]},
    {"outputs": [], "verdict": "right"},
    {"outputs": [{}] * 65},
    {"outputs": [{"type": "T"}] * 65},
    {"outputs": [TENSOR := {"type": "Tensor", "plain": True, "dtype": "float32", "shape": [1, 1], "device": "cpu"}]},
    *({"outputs": [TENSOR | wrong]} for wrong in (
        {"dtype": "load"},
        {"dtype": "no such type"},
        {"shape": [-1]},
        {"shape": [1] * 17},
        {"shape": [10**30]},
        {"shape": "1"},
        {"at": 0},
        {"at": 10**30},
        {"at": "0"},
        {"at": 1.5},
        {"strides": [1]},
        {"strides": [10**30, 1]},
        {"strides": [None]},
        {"shares": 10**30},
        {"shares": [0]},
        {"again": "yes"},
        {"device": 0},
        {"plain": "yes"},
        {"type": "a\0b"},
        {"type": "\ud800", "plain": False},
    )),
    {"failed": []},
    {"failed": {}, "why": "none"},
    {"failed": "right", "why": "it is"},
    {"failed": "wrong", "why": ["a", "list"]},
    {"failed": "wrong", "why": "so", "next": 3},
    {"why": "[" * 200},
]  # fmt: skip
FORGE = """\
import gc, json, sys

def refusals(x, s):
    frame = sys._getframe()
    while "connection" not in frame.f_locals:  # by its name it is another copy
        frame = frame.f_back
    Connection = type(frame.f_locals["connection"])
    def say(self, answer):
        {send}
    Connection.say = say
    return x * s[:, None]
"""
FOR_A_FORGERY = ("out of turn", "wrong shape", "wrong result", "wrong device", "not a plain tensor")
AS_ANSWER = 'told = json.loads({!r}); self._channel.send({{**told, "of": self._mark}} if told else told)'
DEEP = """self._channel.socket.sendall(
            b'{"of": "' + self._mark.encode() + b'", "outputs": ' + b"[" * DEEP + b"]" * DEEP + b"}\\n")"""


@pytest.mark.parametrize("forged", FORGED, ids=lambda forged: json.dumps(forged)[:60])
def test_an_answer_of_another_form_is_a_verdict_and_no_crash(judged, forged):
    verdict = judged(FORGE.format(send=AS_ANSWER.format(json.dumps(forged))))
    assert verdict.found in (
        "out of turn",
        "wrong shape",
        "wrong result",
        "wrong device",
        "not a plain tensor",
    ), verdict
    assert verdict.code == 1
    assert "\n" not in verdict.why
    assert len(verdict.why) < 400


@pytest.mark.parametrize("deep", [400, 900, 990, 100_000])
def test_lists_in_lists_without_an_end_are_no_answer(judged, deep):
    verdict = judged(FORGE.format(send=DEEP.replace("DEEP", str(deep))))
    assert verdict.found == "out of turn", verdict.text


# --- the command -----------------------------------------------------------------------------------


def run(*arguments, capsys):
    code = command.main([str(part) for part in arguments])
    return code, *capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere.py", "--problem", "refusals"), "there is no file nowhere.py"),
        ((__file__, "--problem", "nothing"), "no problem 'nothing'; there are add_norm, "),
        ((__file__, "--problem", "refusals", "--try", "M=3"), "expected a dtype"),
        ((__file__, "--problem", "refusals", "--try", "dtype=float32,N=3"), "refusals has M, N"),
        ((__file__, "--problem", "refusals", "--gpu"), "torch cannot use it"),
    ],
)
def test_what_cannot_be_judged_is_said_in_one_line(arguments, said, capsys):
    code, out, err = run(*arguments, capsys=capsys)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "wrong", [("--seconds", "0"), ("--seconds", "nan"), ("--memory", "-1"), ("--seconds", "soon")]
)
def test_a_limit_that_is_none_is_refused(wrong, capsys):
    with pytest.raises(SystemExit):
        run(__file__, "--problem", "refusals", *wrong, capsys=capsys)
    assert "is no number above 0" in capsys.readouterr().err


def test_a_file_gets_nothing_from_the_judges_own_imports(judged):
    # The judge's `from __future__ import annotations` would leave a forgotten import unnoticed.
    verdict = judged("def refusals(x: nowhere.Tensor, s):\n    return x * s[:, None]\n")
    assert verdict.found == "crashed", verdict.text
    assert "NameError" in verdict.why


def test_the_verdict_is_text_or_json(tmp_path, capsys):
    file = tmp_path / "mine.py"
    file.write_text("def refusals(x, s):\n    print('seen')\n    return x\n")
    code, out, _ = run(file, "--problem", "refusals", capsys=capsys)
    assert code == 1
    assert out.startswith("refused on M1-N1-float32: shares memory: ")
    assert "  | seen" in out

    code, out, _ = run(file, "--problem", "refusals", "--json", capsys=capsys)
    assert code == 1
    assert json.loads(out)["found"] == "shares memory"


# --- the parts -------------------------------------------------------------------------------------


def test_a_message_arrives_whole_with_its_files(tmp_path):
    one, other = Channel.pair()
    with open(tmp_path / "handed", "wb+") as file:
        one.send({"a": "ü" * 1000}, [file.fileno()])
        message, (number,) = other.receive(1)
        os.write(number, b"over")
        os.close(number)
        file.seek(0)
        assert (message, file.read()) == ({"a": "ü" * 1000}, b"over")
    with pytest.raises(TimedOut):
        other.receive(0.01)
    one.socket.sendall(b"no message\n")
    with pytest.raises(OutOfTurn):
        other.receive(1)
    one.close()
    with pytest.raises(Gone):
        other.receive(1)


def test_a_message_without_an_end_is_not_waited_for():
    one, other = Channel.pair()
    one.socket.setblocking(False)

    def talk():
        while True:
            with contextlib.suppress(BlockingIOError):
                one.socket.send(b"x" * MAX_MESSAGE)
            with contextlib.suppress(TimedOut):
                other.receive(0.01)

    with pytest.raises(OutOfTurn):
        talk()


def test_the_checkers_words_become_a_property():
    assert refused("not written, or NaN: 3 of 4 elements", "N4").found == "not written"
    assert refused("right before the timing, wrong after it: wrong: 1").found == "wrong in the end"
    assert refused("output shares memory with input x").found == "shares memory"
    assert refused("something new").found == "wrong"


def test_a_strangers_words_are_shown_without_control_characters():
    assert escaped("a\x1b[2Jb\r\n‮") == r"a\x1b[2Jb\r\n\u202e"
    assert escaped("x" * 500).endswith("…")
    assert Verdict(RIGHT, "2 sizes", not_held=("the network",)).text.endswith(
        "not held on this system: the network"
    )


def test_a_stranger_writes_to_nobodys_terminal(judged):
    primary, secondary = os.openpty()
    name = os.ttyname(secondary)
    try:
        verdict = judged(f"open({name!r}, 'w').write('right')\ndef refusals(x, s):\n    return x\n")
        if verdict.not_held:
            pytest.skip(f"this system does not hold {', '.join(verdict.not_held)}")
        assert verdict.found == "crashed", verdict.text
        assert "PermissionError" in verdict.why
    finally:
        os.close(primary)
        os.close(secondary)


# --- the judge's clock ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("about_us", "size", "free", "calls"),
    [
        (1000.0, 2**20, 100 * GIB, 150),  # as long as a batch should take
        (0.5, 2**10, 100 * GIB, 512),
        (1e6, 2**20, 100 * GIB, 2),  # two at least
        (1000.0, GIB, 100 * GIB, 50),  # half of what is free
        (1000.0, GIB, 1000 * GIB, 60),
    ],
)
def test_a_batch_is_as_long_as_its_clock_and_as_large_as_the_card_allow(about_us, size, free, calls):
    assert calls_of_a_batch(about_us, size, free) == calls


def test_a_card_with_too_little_room_is_one_line_and_no_fault_of_the_stranger():
    with pytest.raises(NoTime) as caught:
        calls_of_a_batch(1000.0, 3 * GIB, 8 * GIB)
    assert str(caught.value) == (
        "the card has too little memory free, and a time of this size takes 12.9 GB; end other programs that use it"
    )


@pytest.mark.parametrize(
    ("events_us", "wall_us", "share", "possible"),
    [
        (900.0, 1000.0, 0.001, True),
        (400.0, 1000.0, 0.001, False),
        (400.0, 1000.0, 0.02, True),  # asking takes too much of it for the judge's clock to say anything
        (50.0, 150.0, 0.001, True),  # launches of the host are a large part of so short a call
    ],
)
def test_events_that_the_judges_clock_contradicts_are_no_time(events_us, wall_us, share, possible):
    assert Timed(SimpleNamespace(median_us=events_us), wall_us, share).is_possible is possible


@pytest.mark.parametrize(
    ("events_us", "wall_us", "share", "taken"),
    [
        (900.0, 1000.0, 0.001, Taken("N5", 900.0, "both clocks")),
        (
            400.0,
            1000.0,
            0.001,
            Taken("N5", 1000.0, "the judge's clock"),
        ),  # the one of the two that is never too short
        (900.0, 1000.0, 0.02, None),
    ],
)
def test_the_time_of_a_verdict_is_the_one_that_its_text_shows(events_us, wall_us, share, taken, monkeypatch):
    monkeypatch.setattr("course_judge.timing.of_peak", lambda samples: "")
    timed = Timed(SimpleNamespace(median_us=events_us), wall_us, share)
    assert timed.taken("N5") == taken
    assert timed.text("N5").startswith(f"N5 takes {taken.us:.1f} µs" if taken else "N5: no time")


def test_the_time_of_a_verdict_is_under_its_seal():
    told = Verdict(RIGHT, time=Taken("N5", 2.5, "both clocks")).as_json()
    assert is_sealed(told)
    told["time"]["us"] = 1.5
    assert not is_sealed(told)
