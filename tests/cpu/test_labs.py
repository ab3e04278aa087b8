"""Every lab without a GPU: what starters, stages, answers and wrong answers are told; and the grader's own promises."""

import ast
import dataclasses
import functools
import importlib
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from pathlib import Path

import pytest
from answers import repeats

from course_judge.protocol import processes
from course_judge.worker.error_report import report
from course_kernels.cuda.headers import toolkit_headers
from course_labs.__main__ import _first_file, grading_needs, main
from course_labs.diagnosis import NEXT as OF_SUSPECTS
from course_labs.diagnosis import RECORD, completed
from course_labs.experiments import NEXT as OF_TRIED
from course_labs.experiments import is_tried
from course_labs.grade import CannotGrade, Grader
from course_labs.hints import (
    ENDED_ITSELF,
    NEXT_OF_A_YES_OR_NO,
    NEXT_OF_HARD_VALUES,
    NEXT_OF_PYTHON_IN_A_KERNEL,
    advice_after,
    broken,
    is_strange,
)
from course_labs.interactive_cases import NEXT as OF_PLAYS
from course_labs.interactive_cases import grade, grade_each, has_plays, needs_numpy
from course_labs.lab import (
    ON_THE_CPU,
    Lab,
    LabError,
    Stage,
    _complaints,
    find_lab,
    find_labs,
    has_given_kernels,
    load_file,
    load_lab,
    same_lines,
)  # fmt: skip
from course_labs.starter_files import write
from course_labs.verdict import NEXT, NOT_BEGUN, NOT_RUN, RIGHT, Verdict
from course_labs.wrong_answers import wrong_files
from course_site.pages.doors import DOORS, said
from course_site.site import labs as pages

ROOT = Path(__file__).parents[2]
LABS = find_labs(ROOT)
KERNELS = ROOT / "src" / "course_kernels"
FIRST = LABS["first_kernel"]
NO_GPU = {"CUDA_VISIBLE_DEVICES": "-1"}
# What can be said of a .cu that is compiled and never run.
WITHOUT_RUNNING = ("does not compile", "function missing", "not yours")

SNAPSHOTS = [
    pytest.param(lab.name, door, stage, id=f"{lab.name}-{door}-{stage or 'starter'}")
    for lab in LABS.values()
    for door in lab.doors
    for stage in range(len(lab.stages) + 1)
]


def wrong_answers(name):
    """(file, property it must be refused for, what must be said, only on a GPU); `alone_wrong_*`: its last task."""
    found = []
    for file, wrong in wrong_files(LABS[name]).items():
        reason = wrong.refused_for
        assert reason in NEXT | OF_SUSPECTS | OF_PLAYS | OF_TRIED, f"{file}: the grader knows no {reason!r}"
        only_gpu = wrong.gpu_only or (file.suffix == ".cu" and reason not in WITHOUT_RUNNING)
        found.append((file, reason, wrong.says, only_gpu))
    return found


def wrong_of(name, file):
    """The path of a wrong answer."""
    return next(str(path) for path in wrong_files(LABS[name]) if path.name == file)


WRONG = [
    pytest.param(name, file, found, said, id=f"{name}-{file.name}")
    for name in LABS
    for file, found, said, only_gpu in wrong_answers(name)
    if not only_gpu
]


def tasks():
    """(lab, door, file) of everything that lies beside a lab, by file."""
    for name, lab in LABS.items():
        for door in lab.doors:
            yield from ((lab, door, lab.snapshot(door, stage)) for stage in range(len(lab.stages) + 1))
            if lab.alone:
                yield lab, door, lab.solution(door)
        for file, _, _, only_gpu in wrong_answers(name):
            if not only_gpu:
                yield lab, lab.door_of(file), file


@functools.cache
def of_lab(name):
    """What decides the verdict on any file of a lab, beside the grader."""
    lab = LABS[name]
    problem = [KERNELS / lab.problem] if lab.problem else []
    given = []
    if has_given_kernels(lab):  # their counters, as a card has told them, and what each of them computes
        suspects = load_file(lab.folder / "truth.py", "truth_of_what_decides").SUSPECTS
        given = [
            f"records/*/{RECORD}",
            *(KERNELS / one.problem for one in suspects),
            ROOT / "src" / "course_profile",
        ]
    return [lab.folder, *problem, *given]


by_the_lab = pytest.mark.kept(of=lambda name, **_: of_lab(name), but=["labs/*"])
by_all_labs = pytest.mark.kept(
    of=lambda **_: [file for name in LABS for file in of_lab(name)], but=["labs/*"]
)
TASKS = {file: (lab, door, file) for lab, door, file in tasks()}


# The labs' own answers do end; on a machine that is busy with other tests some take longer than a student's may.
OWN_TIMES = 4


@functools.cache
def verdict_of(file):
    """What the grader says of a file that lies beside a lab.

    What an answer to a last task repeats of the lab's own, word for word, is graded in that alone; only the first lab's
    solutions are graded as a student's file is, from its beginning to its end.
    """
    lab, door, _ = TASKS[file]
    if has_plays(lab) or is_tried(lab):
        (found,) = grade_each([(lab, door, file)], environment=NO_GPU)
        return found
    if not has_given_kernels(lab):
        grader, answer = grader_of(lab.name, door), lab.snapshot(door, len(lab.stages))
        if is_of_a_last_task(lab, file) and repeats(file, answer):
            return dataclasses.replace(verdict_of(answer), alone=grader.alone._own_verdict(file, lab.seconds))
        return grader.verdict(file, lab.seconds if "wrong_" in file.name else OWN_TIMES * lab.seconds)
    with tempfile.TemporaryDirectory() as folder:  # as `nox -s lab` writes it: with the recorded values
        mine = Path(folder, lab.student_file(door))
        mine.write_text(completed(lab, ROOT)(file.read_text()))
        (found,) = grade_each([(lab, door, mine)], environment=NO_GPU)
    return found


def is_of_a_last_task(lab, file):
    """A wrong answer to one, or a solution."""
    return file.stem.startswith("alone_wrong_") or (file.stem == "alone" and lab is not FIRST)


@functools.cache
def grader_of(name, door):
    return Grader(LABS[name], door, environment=NO_GPU)


def graded(tmp_path, lab=FIRST, name="mine.py", **texts):
    """Verdicts on a student's files, by the names given."""
    files = []
    for key, text in texts.items():
        (tmp_path / key).mkdir()
        files.append(tmp_path / key / name)
        files[-1].write_text(text)
    found = grade(lab, files, environment=NO_GPU)
    return dict(zip(texts, found, strict=True))


# --- every lab --------------------------------------------------------------------------------


def test_the_labs_are_found():
    assert {"first_kernel", "roofline"} <= set(LABS)


@by_the_lab
@pytest.mark.parametrize(("name", "door", "stage"), SNAPSHOTS)
def test_a_snapshot_is_told_what_the_lab_says(name, door, stage):
    lab = LABS[name]
    verdict = verdict_of(lab.snapshot(door, stage))

    assert same_lines(lab.prints(door, stage), verdict.text), verdict.text
    if door != "cuda":
        right = lab.prints(door, stage).startswith("right: ")  # a later stage may only make it faster
        assert verdict.code == (0 if right else 1)
        assert ("\nnext: " in verdict.text) is not right
        assert right or stage < len(lab.stages)
        assert stage or not right


@by_the_lab
@pytest.mark.parametrize(("name", "file", "found", "said"), WRONG)
def test_a_wrong_answer_is_refused_for_its_reason(name, file, found, said):
    verdict = verdict_of(file)
    if file.name.startswith("alone_"):
        assert verdict.found in (RIGHT, NOT_RUN), verdict.text
        verdict = verdict.alone

    assert verdict.found == found, verdict.text
    assert said in verdict.text
    assert verdict_of(file).code == 1


def test_a_complaint_on_a_page_says_more_than_its_size():
    """Under `…` alone anything would be right, and nobody can aim at it."""
    told = {}
    for lab in LABS.values():
        for door in lab.doors:
            for stage in range(len(lab.stages) + 1):
                size, is_refused, what = said(lab, door, stage).splitlines()[0].partition(": ")
                if is_refused and size.startswith("refused"):
                    told[lab.name, door, stage] = re.sub(r"\W", "", what)

    assert told["transpose", "cuda", 3] == "of6elementsoutput"
    assert [place for place, what in told.items() if not what] == []


STILL_RIGHT = [
    (name, door, stage)
    for name, lab in LABS.items()
    for door in lab.doors
    for stage in range(1, len(lab.stages) + 1)
    if said(lab, door, stage).startswith("right: ") and said(lab, door, stage - 1).startswith("right: ")
]


@by_all_labs
def test_a_stage_that_only_changes_the_speed_says_so_on_its_page():
    assert {(n, d) for n, d, _ in STILL_RIGHT} >= {("transpose", door) for door in LABS["transpose"].doors}
    for name, door, stage in STILL_RIGHT:
        if door != "cuda":  # where nothing runs it
            before, now = (verdict_of(LABS[name].snapshot(door, n)).text for n in (stage - 1, stage))
            assert before.splitlines()[0] == now.splitlines()[0]
    for name, lab in LABS.items():
        text = pages.markdown(lab, str, fold)
        for stage in range(1, len(lab.stages) + 1):
            doors = len([door for of, door, n in STILL_RIGHT if (of, n) == (name, stage)])
            assert (
                text.count(f"It said the same after stage {stage - 1}: this stage changes the speed") == doors
            )


@by_all_labs
def test_a_tile_that_is_too_large_is_told_as_its_stage_says(tmp_path):
    lab = LABS["transpose"]
    last = lab.snapshot("numpy", len(lab.stages)).read_text()
    assert "TILE = 64" in last
    (found,) = graded(tmp_path, lab, "mine_numpy.py", large=last.replace("TILE = 64", "TILE = 128")).values()

    (shown,) = re.findall(r"^refused .*", lab.stages[-1].type["numpy"], re.MULTILINE)
    assert same_lines(shown, found.text), found.text


# --- the last task, which stands on no page ------------------------------------------------------

WITH_ALONE = [name for name, lab in LABS.items() if lab.alone]


def test_every_lab_has_a_last_task():
    assert set(WITH_ALONE) == set(LABS)


@by_the_lab
@pytest.mark.parametrize(("name", "door"), [(name, door) for name in WITH_ALONE for door in LABS[name].doors])
def test_a_last_task_is_right_in_its_solution_and_not_begun_in_the_answer(name, door):
    lab = LABS[name]
    solved, answer = (verdict_of(f) for f in (lab.solution(door), lab.snapshot(door, len(lab.stages))))

    assert (answer.alone.found, answer.alone.text) == (NOT_BEGUN, lab.alone.doors[door])
    assert answer.text.splitlines()[-1] == f"alone: {lab.alone.doors[door]}"
    if door == "cuda":
        assert (answer.code, solved.code, solved.alone.found) == (3, 3, NOT_RUN)
    else:
        assert (answer.code, solved.code, solved.alone.found) == (0, 0, RIGHT)
        assert solved.text.splitlines()[-1].startswith("alone: right, and the lab is done: ")


@pytest.mark.parametrize("name", WITH_ALONE)
def test_a_last_task_has_wrong_answers_enough(name):
    files = [file for file, *_ in wrong_answers(name) if file.name.startswith("alone_wrong_")]

    assert len([file for file in files if file.suffix == ".py"]) >= 3
    assert "cuda" not in LABS[name].doors or len([file for file in files if file.suffix == ".cu"]) >= 2


def said_in(line):
    """A line of code without its comment and its blanks; empty where it says nothing of its own.

    Heads of functions are part of the question, and a short line, such as `return z`, is everybody's.
    """
    code = re.sub(r"\s+", "", re.sub(r"(//|# ).*", "", line))
    heads = ("def", "@", "import", "from", "extern", '"', "#")
    return "" if code.startswith(heads) or len(code) < 12 else code


def lines_of_a_last_task(lab):
    """The code that a last task adds to the answer, line by line: (file, what it says)."""
    for door in lab.doors:
        answer = {said_in(line) for line in lab.snapshot(door, len(lab.stages)).read_text().splitlines()}
        for line in lab.solution(door).read_text().splitlines():
            if (code := said_in(line)) and code not in answer:
                yield lab.solution(door), code


def what_pages_show():
    """Every text that a page shows, or is: path to the text without blanks."""
    files = [path for folder in ("docs", "handbook") for path in sorted((ROOT / folder).rglob("*"))]
    for path in sorted((*(ROOT / "src" / "course_kernels").rglob("*"), *(ROOT / "labs").rglob("*"))):
        of_a_lab = path.is_relative_to(ROOT / "labs")
        hidden = of_a_lab and (path.stem in ("alone", "wrong") or path.parent.name == "wrong")
        files += [] if hidden else [path]
    texts = (".py", ".md", ".toml", ".cu", ".cuh")
    return {path: re.sub(r"\s+", "", path.read_text()) for path in files if path.suffix in texts}


def shown_of(lines, pages):
    """What of some lines stands on pages, in words."""
    return [
        f"{page}: {code} of {file}" for file, code in lines for page, text in pages.items() if code in text
    ]


def test_no_code_of_a_last_task_stands_on_a_page():
    lines = [line for name in WITH_ALONE for line in lines_of_a_last_task(LABS[name])]
    assert {file for file, _ in lines} == {LABS[n].solution(d) for n in WITH_ALONE for d in LABS[n].doors}

    assert shown_of(lines, what_pages_show()) == []


def test_code_of_a_last_task_on_a_page_would_be_found():
    lines = list(lines_of_a_last_task(FIRST))
    for typed in ("    left = tl.load(x_ptr + 2 * i, mask=mask)", "z[i] = x[2*i] + x[2*i+1];  // pair"):
        page = {Path("docs/new.md"): re.sub(r"\s+", "", f"Words.\n\n    {typed}\n")}
        assert len(shown_of(lines, page)) == 1
    assert shown_of(lines, {Path("docs/new.md"): "returnz"}) == []


def test_a_last_task_is_never_written_for_a_student(tmp_path):
    for number in range(len(FIRST.stages) + 1):
        write(FIRST, tmp_path, stage=number)
    assert "pair_sums" in FIRST.solution("triton").read_text()
    assert all("pair_sums" not in path.read_text() for path in (tmp_path / "my_labs").iterdir())


@pytest.mark.parametrize(
    ("body", "size", "said"),
    [
        (
            "    import time\n    time.sleep(600)\n",
            "N=1 float32",
            "timed out: it ran for 8 s, the limit of all answers, and was ended",
        ),
        (
            "    import os\n    os._exit(7)\n",
            "N=1 float32",
            "died: the process ended in the middle (exit code 7)",
        ),
    ],
)
def test_a_last_task_that_ends_its_process_leaves_the_lab_right(tmp_path, body, size, said):
    file = tmp_path / "mine.py"
    file.write_text(f"{ANSWER}\n\ndef pair_sums(x):\n{body}")
    (found,) = grade(dataclasses.replace(FIRST, seconds=8), [file], environment=NO_GPU)

    assert found.text.splitlines()[:2] == [
        "right: correct on every size tried; no speed claim: this machine has no GPU",
        f"alone: refused on {size}: {said}",
    ]
    assert found.code == 1


@by_all_labs
def test_a_wrong_lab_says_nothing_of_its_last_task(tmp_path):
    solved = FIRST.solution("triton").read_text()
    actual = graded(
        tmp_path, wrong=solved.replace("x + y, mask", "x - y, mask"), twice=solved + "\npair_sums = 3\n"
    )

    assert actual["wrong"].found == "wrong"
    assert actual["wrong"].alone is None
    assert "alone" not in actual["wrong"].text
    assert actual["twice"].alone.found == NOT_BEGUN


@pytest.mark.parametrize("name", LABS)
def test_a_lab_has_wrong_answers_enough(name):
    own = [wrong for wrong in wrong_answers(name) if wrong[0].name.startswith("wrong_")]
    everywhere = [file for file, _, _, only_gpu in own if not only_gpu and file.suffix == ".py"]

    assert len(everywhere) >= 5
    assert "cuda" not in LABS[name].doors or len([f for f, *_ in own if f.suffix == ".cu"]) >= 2


def judged_by(tests):
    """The wrong answers that some tests grade."""
    return {parameters.values[1] for parameters in tests}


def test_every_wrong_answer_is_judged_here_or_on_a_card():
    """What can be judged here is not judged there: a card's time is for what it alone can tell."""
    on_a_card = judged_by(load_file(ROOT / "tests/gpu/test_labs.py", "labs_on_a_card").WRONG)
    on_a_card |= set(load_file(ROOT / "tests/gpu/test_bottleneck.py", "bottleneck_on_a_card").WRONG)
    lab_of = {file: lab for lab in LABS.values() for file in wrong_files(lab)}

    assert judged_by(WRONG) | on_a_card == set(lab_of)
    assert {file for file in judged_by(WRONG) & on_a_card if file.suffix != ".cu"} == set()
    of_a_card = [file for file in on_a_card if not has_given_kernels(lab_of[file])]
    assert not [file for file in of_a_card if lab_of[file].door_of(file) in ON_THE_CPU]


def test_a_door_that_needs_no_card_leaves_a_card_alone():
    lab = LABS["register_tile"]
    grader = Grader(lab, "numpy", needs_gpu=True)

    assert not grader.gpu
    found = grader.verdict(lab.snapshot("numpy", len(lab.stages)), 60)
    assert (
        found.text.splitlines()[0]
        == "right: correct on every size tried; no speed claim: NumPy runs on the CPU"
    )


@pytest.mark.parametrize("name", LABS)
def test_a_lab_stands_on_its_page(name):
    text = (ROOT / LABS[name].page).read_text(encoding="utf-8")

    assert len(re.findall(rf"^(?:# )?/// lab \| {name}$", text, re.MULTILINE)) == 1


def test_the_facts_of_the_roofline_lab_are_those_of_the_library():
    from course_kernels.problem import Workload
    from course_kernels.sgemm.problem import PROBLEM as SGEMM
    from course_kernels.vector_add.problem import PROBLEM as ADD

    truth = load_file(LABS["roofline"].folder / "truth.py", "truth")
    pairs = [
        (truth.add(1000), ADD, Workload.of("float32", N=1000)),
        (truth.product(2, 3, 5, 4, "fp32"), SGEMM, Workload.of("float32", M=2, N=3, K=5)),
    ]

    for job, problem, w in pairs:
        assert job.reads_bytes == problem.reads_bytes(w)
        assert job.writes_bytes == problem.writes_bytes(w)
        assert job.flops == problem.flops(w)


# --- the grader: whatever a file does -----------------------------------------------------------

ANSWER = FIRST.snapshot("triton", len(FIRST.stages)).read_text()
HEAD = "import torch\n\n\ndef vector_add(x, y):\n"


@by_all_labs
def test_an_everyday_fault_is_told_before_a_lost_nan(tmp_path):
    drops = (FIRST.folder / "wrong" / "wrong_drops_nan.py").read_text()
    lost = "tl.where(z == z, z, 0.0)"
    both = drops.replace(lost, f"{lost} + tl.where(i == 16, 1.0, 0.0)")
    assert both != drops

    actual = graded(tmp_path, drops=drops, both=both)

    assert actual["drops"].found == "NaN lost"
    assert actual["both"].found == "wrong"  # at a larger size than the one where the NaN is lost
    assert "output[16]" in actual["both"].text


@by_all_labs
def test_what_a_file_does_wrong_is_named_with_its_line(tmp_path):
    actual = graded(
        tmp_path,
        syntax="def vector_add(x, y):\n    return x +\n",
        tabs="def vector_add(x, y):\n\tz = 1\n        return z\n",
        empty="",
        other_name="def vector_sum(x, y):\n    return x\n",
        no_function="vector_add = 3\n",
        fails_when_read="1 / 0\n",
        leaves="import sys\nsys.exit(0)\n",
        in_the_kernel=ANSWER.replace("x + y, mask", "x + why, mask"),
        not_there="import no_such_module\n",
    )

    assert {name: verdict.text.splitlines()[0] for name, verdict in actual.items()} == {
        "syntax": "refused: syntax error: line 2: invalid syntax",
        "tabs": "refused: syntax error: line 3: inconsistent use of tabs and spaces in indentation",
        "empty": "refused: function missing: your file defines no function vector_add",
        "other_name": "refused: function missing: your file defines no function vector_add",
        "no_function": "refused: function missing: your file defines no function vector_add",
        "fails_when_read": "refused: crashed: line 1: ZeroDivisionError: division by zero",
        "leaves": "refused: died: line 2: the file ended the process itself: exit(0)",
        "in_the_kernel": "refused on N=1 float32: crashed: line 17: NameError: name 'why' is not defined",
        "not_there": "refused: crashed: line 1: ModuleNotFoundError: No module named 'no_such_module'",
    }


@by_all_labs
def test_first_mistakes_get_their_own_advice(tmp_path):
    grid, load = "[(programs,)]", "x = tl.load(x_ptr + i, mask=mask)"
    assert grid in ANSWER
    assert load in ANSWER
    actual = graded(
        tmp_path,
        no_grid=ANSWER.replace(grid, ""),
        no_grid_and_no_number=ANSWER.replace(grid, "").replace(
            "tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)", "0"
        ),
        no_tuple=ANSWER.replace(grid, "[programs]"),
        indexed=ANSWER.replace(load, "x = x_ptr[i]"),
        misspelt=ANSWER.replace("x + y, mask", "x + why, mask"),
    )

    assert {name: verdict.text.splitlines()[-1] for name, verdict in actual.items()} == {
        "no_grid": "next: a kernel is launched with its grid: kernel[(programs,)](…).",
        "no_grid_and_no_number": "next: a kernel is launched with its grid: kernel[(programs,)](…).",
        "no_tuple": "next: a grid is a tuple, also when it has one number: (programs,).",
        "indexed": "next: a pointer has no elements; read it with tl.load(pointer + i).",
        "misspelt": "next: that name has no value yet: is it spelt as it is where you make it?",
    }


NUMPY = ("import torch\n", "import numpy as np\nimport torch\n")
SUM, LAUNCH, LOAD = "x + y, mask", "(x, y, z, N, BLOCK=BLOCK)", "x = tl.load(x_ptr + i, mask=mask)"
# A first mistake: what is typed instead of what, what the grader says, and what it advises.
MISTAKES = {
    "no_power_of_two": ("BLOCK = 1024", "BLOCK = 1000", "power of 2", "powers of two only"),
    "divided": (LOAD, LOAD.replace("+ i", "+ i / 1"), "type pointer<fp32> and", "Write //."),
    "no_pointer": (LOAD, LOAD.replace("x_ptr + i", "i"), "Unsupported ptr type", "take a pointer"),
    "one_place": ("z_ptr + i", "z_ptr", "Value argument cannot be block", "added to the pointer?"),
    "no_constant": (
        LAUNCH,
        "(x, y, z, N)",
        "positional argument: 'BLOCK'",
        "in its order, and the constants",
    ),
    "no_length": (
        LAUNCH,
        "(x, y, z, BLOCK=BLOCK)",
        "positional argument: 'N'",
        "in its order, and the constants",
    ),
    "numpy_room": ("torch.empty_like(x)", "np.empty(N)", "has no attribute 'type'", "in a kernel:"),
    "numpy_row": ("tl.arange(0, BLOCK)", "np.arange(0, BLOCK)", "has no attribute 'type'", "in a kernel:"),
    "numpy_exp": (SUM, "np.exp(x) + y, mask", "no attribute 'to_tensor'", "in a kernel:"),
    "numpy_where": (SUM, "np.where(mask, x, y), mask", "setting an array element", "in a kernel:"),
    "torch_exp": (SUM, "torch.exp(x) + y, mask", "must be Tensor, not tensor", "in a kernel:"),
    "list": (SUM, "[x, y], mask", "cannot convert", "in a kernel:"),
    "length": ("i < N", "i < len(i)", "'tensor' has no len()", "an argument of the kernel"),
    "grid": ("triton.cdiv(N, BLOCK)", "N / BLOCK", "cannot be interpreted as an integer", "triton.cdiv"),
    "size": ("torch.empty_like(x)", "torch.empty(N / 1)", "must be tuple of ints, not float", "Write //."),
    "not_called": ("program_id(0)", "program_id", "'function' and 'int'", "tl.program_id(0)."),
    "not_called_behind": (
        "tl.program_id(0) * BLOCK",
        "2 * tl.program_id",
        "'int' and 'function'",
        "tl.program_id(0).",
    ),
    "no_jit": ("@triton.jit\n", "", "'function' object is not subscriptable", "is @triton.jit above it?"),
    "slice": (SUM, "x[0:2] + y, mask", "unsupported tensor index", "Load those."),
    "cuda": ("empty_like(x)", "empty(N, device='cuda')", "needs a card: line", "device=x.device"),
    "no_brackets": ("i < N", "i < N & i >= 0", "The truth value of a block", "& binds tighter than <."),
    "outside": (
        LOAD,
        "x = tl.load(x_ptr + i + 1)",
        "program 0 reads 1024 elements past the end of",
        "that load reads outside",
    ),
}


@functools.cache
def mistaken(folder):
    texts = {}
    for name, (old, new, _, _) in MISTAKES.items():
        assert old in ANSWER
        texts[name] = ANSWER.replace(old, new).replace(*NUMPY if "np." in new else ("", ""))
    return graded(folder, **texts)


@by_all_labs
@pytest.mark.parametrize("name", MISTAKES)
def test_a_first_mistake_in_triton_is_told_what_to_do(name, tmp_path_factory):
    _, _, said, advice = MISTAKES[name]
    if name == "cuda" and torch_knows_cuda():
        pytest.skip("this torch would look for a card, and say so in other words")
    first, last = mistaken(Path(tmp_path_factory.getbasetemp())).get(name).text.splitlines()

    assert said in first
    assert advice in last


def torch_knows_cuda():
    import torch

    return torch.version.cuda is not None


def test_advice_of_one_door_is_not_given_at_another():
    assert advice_after("setting an array element with a sequence.", "triton")
    assert not advice_after("setting an array element with a sequence.", "numpy")
    assert advice_after("name 'i' is not defined", "numpy")


def test_a_large_number_is_called_strange_only_where_inputs_cannot_make_it():
    said = "1 of 1 elements; the worst is output[0]: expected {}, got {}; 1 apart, a scaled error of 1"
    on = "N=1 float32"

    assert is_strange(said.format("1.25", "1.33231e+07"), on)
    assert not is_strange(said.format("1.25", "13.3"), on)
    assert not is_strange(said.format("1e+06", "1.33231e+07"), on)
    assert not is_strange(said.format("1.25", "inf"), on)
    assert not is_strange(said.format("1.25", "1.33231e+07") + ", where x holds 1e+30", on)
    assert not is_strange(said.format("1.25", "1.33231e+07"), f"{on}, inputs times 1000")


@by_all_labs
def test_a_file_has_the_names_that_it_imports_and_no_others(tmp_path):
    """The grader's own future import, and what Triton's interpreter imports, are not the student's."""
    no_tl = ANSWER.replace("import triton.language as tl\n", "")
    line = ANSWER[: ANSWER.index("BLOCK: tl.constexpr")].count("\n")  # of a file that is one line shorter
    found = graded(
        tmp_path,
        no_tl=no_tl,
        no_tl_and_no_constant=no_tl.replace("BLOCK: tl.constexpr", "BLOCK"),
        no_numpy=ANSWER.replace(SUM, "x + np.float32(1) * y, mask"),
        of_the_interpreter=ANSWER.replace(SUM, "x + y * (inspect is not None), mask"),
    )

    not_defined = "next: that name has no value yet: is it spelt as it is where you make it?"
    assert {name: verdict.text.splitlines() for name, verdict in found.items()} == {
        "no_tl": [f"refused: crashed: line {line}: NameError: name 'tl' is not defined", not_defined],
        "no_tl_and_no_constant": [
            "refused on N=1 float32: crashed: line 23: AssertionError: "
            "triton.language must be visible from within jit'd function",
            "next: is `import triton.language as tl` at the top of your file?",
        ],
        "no_numpy": [
            "refused on N=1 float32: crashed: line 17: NameError: name 'np' is not defined",
            not_defined,
        ],
        "of_the_interpreter": [
            "refused on N=1 float32: crashed: line 17: NameError: name 'inspect' is not defined",
            not_defined,
        ],
    }


@by_all_labs
def test_what_only_the_interpreter_runs_is_refused_once_the_file_is_right(tmp_path):
    """Compiled for a card that is not here; the line is that of the file."""
    loop = "for k in range(3):\n        if k == 1:\n            break\n    tl.store(z_ptr"
    constant = "SCALES = (1.0, 2.0)\nBLOCK = 1024"
    texts = {
        "right": ANSWER,
        "numpy": ANSWER.replace(*NUMPY).replace(SUM, "x + np.float32(1) * y, mask"),
        "built_in": ANSWER.replace(SUM, "sum([y], x), mask"),
        "loop": ANSWER.replace("tl.store(z_ptr", loop),
        "of_the_file": ANSWER.replace("BLOCK = 1024", constant).replace(SUM, "SCALES[0] * x + y, mask"),
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    files = [tmp_path / f"{name}.py" for name in texts]
    found = dict(zip(texts, grade(FIRST, files, compile=True, environment=NO_GPU), strict=True))
    not_compiled = grade(FIRST, files, environment=NO_GPU)

    assert [verdict.found for verdict in not_compiled] == [RIGHT] * len(texts)
    assert found.pop("right").found == RIGHT
    begins = {
        "numpy": "line 18: CompilationError: TypeError(",
        "built_in": "line 17: CompilationError: NameError('sum is not defined')",
        "loop": "line 19: UnsupportedLanguageConstruct: unsupported AST node type: Break",
        "of_the_file": 'line 18: CompilationError: NameError("Cannot access global variable SCALES',
    }
    for name, verdict in found.items():
        assert verdict.text.startswith(f"refused: does not compile: {begins[name]}"), verdict.text
    assert found["built_in"].next == NEXT_OF_PYTHON_IN_A_KERNEL
    assert "as an argument" in found["of_the_file"].next


@by_all_labs
def test_a_last_task_is_compiled_too(tmp_path):
    solution = FIRST.solution("triton").read_text()
    before, store, behind = solution.rpartition("    tl.store(")
    assert "pair_sums" in before.rpartition("@triton.jit")[2]
    loop = "    for k in range(3):\n        if k == 1:\n            break\n"
    (file := tmp_path / "mine.py").write_text(before + loop + store + behind)
    (found,) = grade(FIRST, [file], compile=True, environment=NO_GPU)

    assert (found.found, found.alone.found) == (RIGHT, "does not compile")


def test_a_compiler_that_is_gone_refuses_nothing(tmp_path, monkeypatch):
    """It is a courtesy: who ends it as it reads the file has a right file all the same."""
    (file := tmp_path / "mine.py").write_text(
        f"import os\n{ANSWER}\nif os.environ['TRITON_INTERPRET'] == '0':\n    os._exit(3)\n"
    )
    (found,) = grade(FIRST, [file], compile=True, environment=NO_GPU)

    assert found.found == RIGHT


YES_OR_NO = {
    "and": "mask = (i >= 0) and (i < N)",
    "or": "mask = (i < 0) or (i < N)",
    "not": "mask = not (i >= N)",
    "chained": "mask = 0 <= i < N",
    "if": "mask = i < N if i < N else i < 0",
}


@by_all_labs
@pytest.mark.parametrize(
    ("door", "name", "line", "of"),
    [("triton", "mine.py", 14, "a block"), ("numpy", "mine_numpy.py", 11, "an array")],
)
def test_a_mask_that_is_asked_for_one_yes_or_no_gets_its_own_advice(tmp_path, door, name, line, of):
    answer = FIRST.snapshot(door, len(FIRST.stages)).read_text()
    texts = {key: answer.replace("mask = i < N", mask) for key, mask in YES_OR_NO.items()}
    assert answer not in texts.values()
    of_one_value = answer.replace("mask = i < N", "mask = i < (N if 0 < N and not N < 0 else 0)")
    actual = graded(tmp_path, name=name, of_one_value=of_one_value, **texts)

    assert actual.pop("of_one_value").found == RIGHT
    what = f"ValueError: The truth value of {of} with more than one element is ambiguous"
    said = [f"refused on N=1 float32: crashed: line {line}: {what}", f"next: {NEXT_OF_A_YES_OR_NO}"]
    assert {key: verdict.text.splitlines() for key, verdict in actual.items()} == dict.fromkeys(texts, said)


@by_all_labs
@pytest.mark.parametrize(
    ("mask", "said"),
    [
        ("0 <= i < N", "simultaneous multiple comparison is not supported"),
        ("i < N if i < N else i", "Boolean value of Tensor with more than one value is ambiguous"),
    ],
)
def test_what_the_compiler_for_a_card_says_of_such_a_mask_gets_the_same_advice(tmp_path, mask, said):
    from triton.compiler.errors import UnsupportedLanguageConstruct

    (file := tmp_path / "mine.py").write_text(ANSWER.replace("i < N", mask))
    source = "def vector_add_kernel(" + file.read_text().split("def vector_add_kernel(")[1]
    kernel = ast.parse(source).body[0]  # as the compiler reads it: its lines count from the `def`
    told = report(UnsupportedLanguageConstruct(source, kernel.body[2], said), file)
    verdict = broken(told.failed, told.why, "N=1 float32", "triton")

    assert verdict.text.splitlines() == [
        f"refused on N=1 float32: crashed: line 14: UnsupportedLanguageConstruct: {said}",
        f"next: {NEXT_OF_A_YES_OR_NO}",
    ]


@by_all_labs
def test_what_is_not_written_is_told_in_one_line_and_what_to_do_in_another(tmp_path):
    halves = {
        "first_kernel": ("mask = i < N", "mask = (i < N) & ((i % 2 == 0) | (N < 2))"),
        "grey": ("mask = column < W", "mask = column < (W + 1) // 2"),
        "transpose": ("(m[None, :] < M)", "(m[None, :] < (M + 1) // 2)"),
    }
    found = {}
    for name, (old, new) in halves.items():
        answer = LABS[name].snapshot("triton", len(LABS[name].stages)).read_text()
        assert old in answer
        (tmp_path / name).mkdir()
        found |= graded(tmp_path / name, LABS[name], **{name: answer.replace(old, new)})

    assert {name: verdict.text.splitlines() for name, verdict in found.items()} == {
        name: [f"refused on {size}: not written: {what}", f"next: {NEXT['not written']}"]
        for name, size, what in (
            ("first_kernel", "N=1000 float32", "500 of 1000 elements, the first is output[1]"),
            ("grey", "H=2 W=3 float32", "2 of 6 elements, the first is output[0, 2]"),
            ("transpose", "M=2 N=3 float32", "3 of 6 elements, the first is output[0, 1]"),
        )
    }


@by_all_labs
def test_axes_that_have_changed_places_show_in_the_first_stages_of_grey(tmp_path):
    lab = LABS["grey"]
    for stage in (1, 2):
        text = lab.snapshot("triton", stage).read_text()
        swapped = text.replace("_id(0)", "_id(2)").replace("_id(1)", "_id(0)").replace("_id(2)", "_id(1)")
        assert swapped != text
        (folder := tmp_path / str(stage)).mkdir()
        (found,) = graded(folder, lab, swapped=swapped).values()

        assert not same_lines(lab.prints("triton", stage), found.text), found.text


@by_all_labs
def test_nan_that_only_hard_values_bring_about_is_told_with_them(tmp_path):
    answer = ANSWER.replace("x + y, mask", "2 * (x + y) - (x + y), mask")
    assert answer != ANSWER
    (found,) = graded(tmp_path, made=answer).values()

    assert found.found == "not written"
    assert re.search(r" elements, output\[\d+\]: expected \S+, got nan, where x holds ", found.why)
    assert found.next == NEXT_OF_HARD_VALUES


@by_all_labs
def test_what_is_not_theirs_is_found_by_whatever_name(tmp_path):
    actual = graded(
        tmp_path,
        operator=HEAD + "    return x + y\n",
        function=HEAD + "    return torch.add(x, y)\n",
        method=HEAD + "    return x.add(y)\n",
        alias="from torch import add as empty\n\n\ndef vector_add(x, y):\n    return empty(x, y)\n",
        packet=HEAD + "    return torch.ops.aten.add(x, y)\n",
        primitive=HEAD + "    return torch.ops.prims.add(x, y)\n",
        in_place=HEAD + "    z = torch.zeros_like(x)\n    z += x\n    return z\n",
        out=HEAD + "    z = torch.empty_like(x)\n    torch.add(x, y, out=z)\n    return z\n",
        stack=HEAD + "    return torch.stack([x, y]).sum(0)\n",
        caught=HEAD
        + "    try:\n        return x + y\n    except Exception:\n        return torch.zeros_like(x)\n",
        by_numpy=HEAD + "    return torch.from_numpy(x.numpy() + y.numpy())\n",
        array="import numpy as np\n" + HEAD + "    return torch.from_numpy(np.add(x, y))\n",
        lists=HEAD + "    return torch.tensor([a + b for a, b in zip(x.tolist(), y.tolist())])\n",
        cached_module="from course_kernels.vector_add.problem import reference\n\n\ndef vector_add(x, y):\n"
        "    return reference(x, y).float()\n",
        importlib="import importlib\n\nlibrary = importlib.import_module('course_kernels.vector_add.library')\n"
        "vector_add = library.torch_add\n",
        dunder="vector_add = __import__('course_kernels.vector_add.library', fromlist=['torch_add']).torch_add\n",
        neighbour="import course_kernels.copy.k01_vectorised\n",
        answer=f"exec(open({str(FIRST.snapshot('triton', 4))!r}).read())\n",
    )

    assert {name: verdict.found for name, verdict in actual.items()} == dict.fromkeys(actual, "not yours")
    assert "line 5 calls torch's own operator: torch.add (aten.add.Tensor)" in actual["operator"].why
    assert "line 6 calls torch's own operator: torch.add (aten.add_.Tensor)" in actual["in_place"].why
    assert "line 6 calls torch's own operator: torch.add" in actual["caught"].why
    assert "line 5 takes the numbers out of torch with Tensor.numpy()" in actual["by_numpy"].why


@by_all_labs
def test_what_is_theirs_is_let_through(tmp_path):
    actual = graded(
        tmp_path,
        plain=ANSWER,
        zeros=ANSWER.replace("torch.empty_like(x)", "torch.zeros(N, device=x.device, dtype=x.dtype)"),
        views=ANSWER.replace("return z", "return z.view(N, 1).t().reshape(-1)[:N]"),
        arguments="from course_kernels.arguments import check_tensor\nfrom course_kernels.problem import Workload\n"
        + ANSWER,
        prints=ANSWER.replace("    return z", "    print('N is', N)\n    return z"),
    )

    assert {name: verdict.found for name, verdict in actual.items()} == dict.fromkeys(actual, "right")


def test_a_file_that_never_ends_is_ended_with_all_it_started(tmp_path):
    endless = tmp_path / "endless.py"
    endless.write_text(
        "import subprocess\nimport sys\nimport time\n\n\ndef vector_add(x, y):\n"
        "    print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']).pid, flush=True)\n"
        "    while True:\n        time.sleep(0.1)\n"
    )
    right = tmp_path / "right.py"
    right.write_text(ANSWER)

    # The first file is what PyTorch is imported for: the second has its seconds to itself.
    hasty = dataclasses.replace(FIRST, seconds=4)
    tasks = [(FIRST, "triton", right), (hasty, "triton", endless), (FIRST, "triton", right)]
    actual = list(grade_each(tasks, environment=NO_GPU))

    assert [verdict.text.splitlines()[0] for verdict in actual] == [
        "right: correct on every size tried; no speed claim: this machine has no GPU",
        "refused on N=1 float32: timed out: it ran for 4 s, the limit of all answers, and was ended",
        "right: correct on every size tried; no speed claim: this machine has no GPU",
    ]
    assert not is_alive(int(actual[1].printed))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "BLOCK = 1024",
            "DEVICE = triton.runtime.driver.active.get_active_torch_device()\nBLOCK = 1024",
            "not judged: needs a card: line 7 asks for a card\nnext: take the device of an input: device=x.device",
        ),
        (
            "    N = x.numel()",
            "    assert x.is_cuda\n    N = x.numel()",
            "not judged on N=1 float32: needs a card: line 21 asks for a card\nnext: leave that check out",
        ),
        (
            "x + y, mask",
            "tl.inline_asm_elementwise('', '=f,f', [x], tl.float32, True, 1), mask",
            "not judged on N=1 float32: needs a card: line 17 asks for inline assembly, which Triton's interpreter "
            "lacks\nnext: write that line differently, or have your file graded where there is a card.",
        ),
    ],
)
def test_what_asks_for_a_card_is_no_fault_of_the_file(tmp_path, old, new, said):
    assert ANSWER.count(old) == 1
    file = tmp_path / "asks.py"
    file.write_text(ANSWER.replace(old, new))
    verdict = grader_of("first_kernel", "triton").verdict(file, FIRST.seconds)

    assert (verdict.text, verdict.code) == (said, 2)
    assert "in Triton's interpreter, which is not a card" in verdict.ran


ANSWER_IN_CUDA = FIRST.snapshot("cuda", len(FIRST.stages)).read_text()


@pytest.mark.parametrize(
    ("text", "next_"),
    [
        ("#include <stdio.h>\n" + ANSWER_IN_CUDA, "printf, assert and the maths without an include"),
        ("#include <vector>\n" + ANSWER_IN_CUDA, "that header is the host's"),
        ("#include <cfloat>\n" + ANSWER_IN_CUDA, "write FLT_MAX as a number, 3.4028235e38f"),
        ("#include <stdint.h>\n" + ANSWER_IN_CUDA, "#include <cuda/std/cstdint>"),
        (
            ANSWER_IN_CUDA.replace("{\n", "{\n  float least = -INFINITY;\n", 1),
            "write __int_as_float(0x7f800000)",
        ),
        (ANSWER_IN_CUDA.replace("{\n", "{\n  float a = std::max(1.0f, 2.0f);\n", 1), "has no namespace"),
        (
            ANSWER_IN_CUDA + "int main() { return 0; }\n",
            "the grader launches it: leave out main, and what starts",
        ),
        (
            ANSWER_IN_CUDA + "void solve() { vector_add<<<1, 1>>>(nullptr, nullptr, nullptr, 0); }\n",
            "a kernel with <<<…>>>.",
        ),
    ],
)
def test_what_people_bring_from_nvcc_is_answered(tmp_path, text, next_):
    file = tmp_path / "brought.cu"
    file.write_text(text)
    verdict = grader_of("first_kernel", "cuda").verdict(file, FIRST.seconds)

    assert verdict.found in ("does not compile", NOT_RUN), verdict.text
    assert verdict.found == NOT_RUN or next_ in verdict.next


def test_a_byte_order_mark_is_no_token(tmp_path):
    file = tmp_path / "marked.cu"
    file.write_text("\ufeff" + ANSWER_IN_CUDA, encoding="utf-8")

    assert grader_of("first_kernel", "cuda").verdict(file, FIRST.seconds).found == NOT_RUN


def test_a_file_in_triton_is_graded_by_the_command_as_a_reader_gives_it():
    command = [sys.executable, "-m", "course_labs", "grade", "first_kernel", str(FIRST.snapshot("triton", 4))]
    done = subprocess.run(
        command, cwd=ROOT / "src", env=os.environ | NO_GPU, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("right: correct on every size tried"), done.stdout
    assert "in Triton's interpreter, which is not a card" in done.stdout


def test_a_grader_that_is_ended_takes_the_student_s_process_along(tmp_path):
    endless = tmp_path / "endless.py"
    endless.write_text("while True:\n    pass\n")
    arguments = ["grade", "roofline", str(endless)]
    grader = subprocess.Popen([sys.executable, "-m", "course_labs", *arguments], cwd=ROOT / "src")
    while len(started := processes.tree(grader.pid) - {grader.pid}) < 2 and grader.poll() is None:
        time.sleep(0.05)
    grader.kill()
    grader.wait()

    assert len(started) == 2  # the one that starts others, and the student's
    assert not [process for process in started if is_alive(process)]


def is_alive(pid, patience=2.0):
    """Whether a process runs; one that was just killed gets a moment to go."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        status = Path(f"/proc/{pid}/stat")
        if status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return False  # dead, and nobody has asked for its exit code
        time.sleep(0.05)
    return True


@pytest.mark.parametrize(
    ("line", "how", "advice"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV", NEXT["died"]),
        ("os._exit(0)", "exit code 0", ENDED_ITSELF),
        ("os._exit(1)", "exit code 1", ENDED_ITSELF),
    ],
)
def test_a_file_that_takes_the_process_down_is_told_so(tmp_path, line, how, advice):
    dying = tmp_path / "dying.py"
    dying.write_text(f"import os\nimport signal\n\n\ndef vector_add(x, y):\n    {line}\n")

    verdict = grade(FIRST, [dying], environment=NO_GPU)[0]

    assert verdict.text.splitlines() == [
        f"refused on N=1 float32: died: the process ended in the middle ({how})",
        f"next: {advice}",
    ]


@by_all_labs
def test_a_cuda_file_is_compiled_and_not_called_right(tmp_path):
    good = FIRST.snapshot("cuda", len(FIRST.stages)).read_text()
    merge = ROOT / "src/course_kernels/softmax/merge.cuh"
    actual = graded(
        tmp_path,
        name="mine.cu",
        good=good,
        undefined=good.replace("x[i] + y[i]", "x[i] + why[i]"),
        device_only=good.replace("__global__", "__device__"),
        included=f'#include "{merge}"\n' + good,
        in_brackets=f"#include <{merge}>\n" + good,
        through_the_toolkit=f"#include <{os.path.relpath(merge, toolkit_headers()[0])}>\n" + good,
        joined=f'#inc\\\nlude "{merge}"\n' + good,
        gone='#include "gone.cuh"\n' + good,
    )

    assert actual["good"].text.splitlines() == [
        "compiled for sm_90a, not run: this machine has no GPU",
        "alone: next, the lab's last task: add pair_sums to your file",
    ]
    assert actual["good"].code == 3
    assert actual["undefined"].text.startswith(
        'refused: does not compile: line 6: identifier "why" is undefined\nnext: '
    )
    assert actual["device_only"].found == "function missing"
    for name in ("included", "in_brackets", "through_the_toolkit", "joined"):
        assert actual[name].text.startswith("refused: not yours: reads src/course_kernels/softmax/merge.cuh")
    assert actual["gone"].found == "does not compile"


# --- the doors no lab of the course uses ---------------------------------------------------------

OTHER_DOORS = (
    """
name = "sums"
title = "Sums"
page = "docs/start_here.py"
problem = "vector_add"
minutes = 1
task = "Add."
not_yours = "Nothing."
try = ["dtype=float32,N=1", "dtype=float32,N=5"]
refuse = ["numpy.add"]
allow = ["numpy.cumsum", "numpy.ndarray.sum"]
hints = ["a", "b", "c"]
rubric = ["d"]
[doors.numpy]
prints = ""
[doors.python]
prints = ""
"""
    + 3
    * '[[stage]]\ntitle = "e"\n[stage.numpy]\ntype = ""\nprints = ""\n[stage.python]\ntype = ""\nprints = ""\n'
)


def make_lab(root, text, name="sums"):
    """The lab, with a problem for it, in a root of its own."""
    folder = root / "labs" / name
    for door in ("numpy", "python", "triton"):
        (folder / door).mkdir(parents=True)
        for stem in ("starter", "stage1", "stage2", "stage3"):
            (folder / door / f"{stem}.py").write_text("")
    problem = root / "src/course_kernels/vector_add/problem.py"
    problem.parent.mkdir(parents=True, exist_ok=True)
    problem.write_text("")
    shutil.copy(FIRST.folder / "truth.py", folder)
    (folder / "lab.toml").write_text(text)
    return folder / "lab.toml"


@by_all_labs
def test_a_numpy_door_watches_arrays(tmp_path):
    lab = load_lab(make_lab(tmp_path, OTHER_DOORS))
    head = "import numpy as np\n\n\ndef vector_add(x, y):\n"
    actual = graded(
        tmp_path,
        lab,
        right=head + "    return x - (-y)\n",
        loop=head
        + "    z = np.empty_like(x)\n    for i in range(len(x)):\n        z[i] = x[i] + y[i]\n    return z\n",
        refused=head + "    return x + y\n",
        reduced=head + "    return np.stack([x, y]).sum(0)\n",
        summed=head + "    return x - x + np.sum(y)\n",
        ufunc=head + "    return x - np.subtract.reduce(y)\n",
        allowed=head + "    np.cumsum(y).sum()\n    return x - (-y)\n",
        turned=head + "    return x.T - (-y)\n",
        kept=head + "    z = x.copy()\n    z -= -y\n    return z.copy()\n",
        met_again=head.replace("def", "LAST = {}\n\n\ndef")
        + "    if LAST.get('x') is not x:\n        LAST.update(x=x, z=x - (-y))\n    return LAST['z'].copy()\n",
        product=head + "    return x @ y\n",
        copied=head + "    u = np.zeros(3, dtype=x.dtype)\n    u[: len(x)] = x[:3]\n    return u @ u\n",
        unwrapped=head + "    return np.asarray(x) @ np.array(y)\n",
        own=head
        + "    z = np.zeros(len(x), dtype=x.dtype)\n    z[:] = x\n    z -= -y\n    return np.array(z)\n",
        modified=head + "    x -= -y\n    return np.array(x)\n",
        torch="import torch\n\n\ndef vector_add(x, y):\n    return x - (-y)\n",
        number=head + "    return 3.0\n",
        double=head + "    return x.astype(np.float64) - (-y)\n",
        chosen=head
        + "    np.where(x > y, x, y).round().argmax() if (x > y).any() else np.all(x > 0)\n"
        + "    return np.clip(x.astype(np.float64) - (-y), -np.inf, np.inf).astype(x.dtype)\n",
    )

    assert {name: verdict.found for name, verdict in actual.items()} == {
        "right": "right",
        "loop": "right",
        "refused": "not yours",
        "reduced": "not yours",
        "summed": "not yours",
        "ufunc": "not yours",
        "allowed": "right",
        "turned": "right",
        "kept": "right",
        "met_again": "cached result",
        "product": "not yours",
        "copied": "not yours",
        "unwrapped": "not yours",
        "own": "right",
        "modified": "input modified",
        "torch": "not yours",
        "number": "wrong result",
        "double": "wrong dtype",
        "chosen": "right",
    }
    assert (
        actual["right"].text == "right: correct on every size tried; no speed claim: this machine has no GPU"
    )


def test_what_a_student_holds_must_not_grow_with_the_inputs(tmp_path):
    text = OTHER_DOORS.replace("minutes = 1", "minutes = 1\nlongest = 3").replace("N=1", "N=3")
    head = "import numpy as np\n\n\ndef vector_add(x, y):\n"
    pieces = "    for i in range(0, len(x), 3):\n        z[i : i + 3] = x[i : i + 3] - (-y[i : i + 3])\n    return z\n"
    actual = graded(
        tmp_path,
        load_lab(make_lab(tmp_path, text)),
        pieces=head + "    z = np.empty_like(x)\n" + pieces,
        made_from_nothing=head + "    z = np.full(len(x), 0.0, dtype=x.dtype)\n" + pieces,
        views=head + "    z = np.empty_like(x)[:]\n    x, y = x[::-1][::-1], y[:]\n" + pieces,
        positions=head + "    z = np.empty_like(x)\n    i = np.arange(2 * len(x))\n    i = i - 1\n" + pieces,
        square=head
        + "    z = x[:, None] - (-y)[None, :]\n    return np.array([z[i, i] for i in range(len(x))])\n",
        sums=head + "    z = np.cumsum(np.zeros(len(x) + 1, dtype=x.dtype))\n    return z[1:] - (-x)\n",
        mask=head + "    seen = np.ones((len(x), 1)) > np.zeros((1, len(x)))\n    return x - (-y)\n",
        caught=head
        + "    try:\n        z = x[:, None] * y\n    except Exception:\n        pass\n    return x - (-y)\n",
    )

    assert {name: verdict.found for name, verdict in actual.items()} == {
        "pieces": "right",
        "made_from_nothing": "right",
        "views": "right",
        "positions": "right",
        "square": "holds too much",
        "sums": "holds too much",
        "mask": "holds too much",
        "caught": "holds too much",
    }
    assert actual["square"].text.splitlines() == [
        "refused on N=5 float32: holds too much: line 5 makes an array of 5 × 5, and 3 is the most along an axis",
        "next: bring one tile at a time: what you hold must not grow with the inputs.",
    ]


def test_what_is_held_is_weighed_whatever_it_is_called(tmp_path):
    """Positions and lists are no arrays of numbers, and hold as much."""
    text = OTHER_DOORS.replace(
        "minutes = 1", 'minutes = 1\nheld = { on = "dtype=float32,N=1000", bytes = 100_000 }'
    ).replace('refuse = ["numpy.add"]', "")
    head = "import numpy as np\n\n\ndef vector_add(x, y):\n"
    texts = {
        "plain": "    return x + y\n",
        "some": "    z = [float(v) for v in x]\n    return x + y\n",
        "positions": "    z = np.zeros((len(x), len(x)), dtype=np.int64)\n    return x + y\n",
        "lists": "    z = [[0.5 * i] * len(x) for i in range(len(x))]\n    return x + y\n",
    }
    lab = load_lab(make_lab(tmp_path, text))
    actual = graded(tmp_path, lab, **{name: head + body for name, body in texts.items()})
    stops = graded(tmp_path, lab, stops=f"import tracemalloc\n{head}    tracemalloc.stop()\n{texts['lists']}")

    assert [verdict.found for verdict in actual.values()] == ["right", "right", *["holds too much"] * 2]
    assert re.fullmatch(
        r"refused on N=1000 float32: holds too much: it holds 8\.\d+ MB at once, and 0\.1 MB is the most",
        actual["positions"].text.splitlines()[0],
    )
    assert stops["stops"].found == "not yours"
    with pytest.raises(LabError, match="`held` is"):
        load_lab(make_lab(tmp_path / "other", text.replace("100_000", '"many"')))


@by_all_labs
def test_a_square_of_the_attention_lab_is_found_in_lists_and_in_whole_numbers(tmp_path):
    lab = LABS["flash_attention"]
    answer = lab.snapshot("numpy", len(lab.stages)).read_text()
    begin = answer.index("def one_head")
    head, rest = answer[begin:].split("\n", 1)
    hold = {
        "positions": "np.zeros((len(Q), len(Q)), dtype=np.int64)",
        "lists": "[[0.0] * len(Q) for _ in range(len(Q))]",
    }
    actual = graded(
        tmp_path,
        lab,
        "mine.py",
        **{k: f"{answer[:begin]}{head}\n    square = {v}\n{rest}" for k, v in hold.items()},
    )

    assert {name: verdict.found for name, verdict in actual.items()} == dict.fromkeys(hold, "holds too much")


@by_all_labs
def test_a_tuned_kernel_is_right_where_there_is_no_card_to_tune_it_on(tmp_path):
    tuned = (
        ANSWER.replace(
            "@triton.jit\n",
            "@triton.autotune([triton.Config({'BLOCK': 256}, num_warps=2), triton.Config({'BLOCK': 512})], key=['N'])\n"
            "@triton.jit\n",
        )
        .replace(", BLOCK=BLOCK)", ")")
        .replace("(programs,)", "lambda meta: (triton.cdiv(N, meta['BLOCK']),)")
    )
    assert tuned != ANSWER
    (found,) = graded(tmp_path, tuned=tuned).values()

    assert found.found == RIGHT, found.text


@by_all_labs
def test_what_keeps_numbers_and_works_nothing_out_is_everybodys(tmp_path):
    kept = ANSWER.replace("return z", "return z.clone()")
    lab = LABS["transpose"]
    turned = lab.snapshot("triton", len(lab.stages)).read_text()
    name = re.search(r"def (transpose)\(x", turned)[1]
    by_torch = turned + f"\n\ndef {name}(x):\n    return x.t().contiguous()\n"

    assert graded(tmp_path, kept=kept)["kept"].found == RIGHT
    assert graded(tmp_path, lab, turned=by_torch)["turned"].found == "not yours"


@by_all_labs
def test_a_program_has_few_numbers_before_it_at_once(tmp_path):
    text = OTHER_DOORS.replace("minutes = 1", "minutes = 1\nat_once = 3").replace("N=1", "N=3")
    text = text.replace(
        '"numpy.ndarray.sum"]', '"numpy.ndarray.sum", "numpy.ndarray.T", "numpy.where"]'
    ).replace('refuse = ["numpy.add"]', "")
    head = "import numpy as np\n\n\ndef vector_add(x, y):\n"
    blocks = """    for program in range(-(-len(x) // 3)):
        vector_add_program(program, x, y, z)
    return z


def vector_add_program(program, x, y, z):
    i = program * 3 + np.arange(3)
    i = i[i < len(x)]
    z[i] = x[i] - (-y[i])
"""
    room = "    z = np.full(len(x), np.nan, dtype=x.dtype)\n"
    actual = graded(
        tmp_path,
        load_lab(make_lab(tmp_path, text)),
        blocks=head + room + blocks,
        positions=head + room + "    everywhere = np.arange(len(x)) < 4\n" + blocks,
        views=head + room + "    x, y = x[:].T, np.asarray(y.reshape(-1))\n" + blocks,
        one_by_one=head + room + "    for i in range(len(x)):\n        z[i] = x[i] - (-y[i])\n    return z\n",
        whole=head + "    return x - (-y)\n",
        in_place=head + room + "    np.subtract(x, y, out=z)\n" + blocks,
        written=head + room + "    z[:] = x\n" + blocks,
        filled=head + room + "    z[:] = 0.0\n" + blocks,
        read=head + room + "    x[np.arange(len(x))]\n" + blocks,
        reduced=head + room + "    x.sum()\n" + blocks,
        chosen=head + room + "    np.where(True, x, 0.0)\n" + blocks,
        copied=head + room + "    x = np.array(x)\n" + blocks,
        built_in=head + room + "    sum(x)\n" + blocks,
        from_a_list=head + "    return np.array([x[i] - (-y[i]) for i in range(len(x))])\n",
        caught=head + room + "    try:\n        z[:] = x\n    except Exception:\n        pass\n" + blocks,
    )

    assert {name: verdict.found for name, verdict in actual.items()} == {
        **dict.fromkeys(actual, "holds too much"),
        **dict.fromkeys(("blocks", "positions", "views"), "right"),
        "one_by_one": "not in blocks",
    }
    assert actual["whole"].text.splitlines()[0] == (
        "refused on N=5 float32: holds too much: line 5 works on 5 numbers in one step, and 3 is the most"
    )


@by_all_labs
def test_other_ways_to_walk_along_the_tiles_are_right_too(tmp_path):
    lab = LABS["flash_attention"]
    answer = lab.snapshot("numpy", len(lab.stages)).read_text()
    mask = "s = np.where(j + np.arange(TILE) < keys_of_row, s, -np.inf)"
    functions = {
        "s.max(axis=1)": "np.max(s, axis=1)",
        "p.sum(axis=1)": "np.sum(p, axis=1)",
        "q @ K_tile.T": "np.dot(q, np.transpose(K_tile))",
        "p @ V_tile": "np.matmul(p, V_tile)",
    }
    called = answer
    for old, new in functions.items():
        assert old in called
        called = called.replace(old, new)
    texts = {
        "larger_tiles": answer.replace("TILE = 16", "TILE = 64"),
        "functions": called,
        "mask_by_index": answer.replace(
            mask, mask.replace("s = np.where(", "s[~(s - s + ").replace(", s, ", ")] = ")[:-1]
        ),
        "mask_only": answer.replace("min(N, i + TILE) if causal else N", "N"),
        "base_two": answer.replace("/ sqrt(D)", "* (1.4426950408889634 / sqrt(D))").replace(
            "np.exp(", "np.exp2("
        ),
        "all_heads_at_once": "import numpy as np\n\n\ndef attention(q, k, v, *, causal=False):\n"
        """    N, D = q.shape[2:]
    o = np.empty_like(q)
    for i in range(0, N, 32):
        rows = q[:, :, i : i + 32] / np.sqrt(D)
        m = np.full((*rows.shape[:3], 1), -np.inf)
        l, acc = np.zeros_like(m), np.zeros_like(rows)
        for j in range(0, i + 32 if causal else N, 32):
            s = rows @ k[:, :, j : j + 32].swapaxes(2, 3)
            if causal:
                row, col = i + np.arange(s.shape[2])[:, None], j + np.arange(s.shape[3])
                s[:, :, col > row] = -np.inf
            m_new = np.maximum(m, s.max(axis=-1, keepdims=True))
            p = np.exp(s - m_new)
            l = l * np.exp(m - m_new) + p.sum(axis=-1, keepdims=True)
            acc = acc * np.exp(m - m_new) + p @ v[:, :, j : j + 32]
            m = m_new
        o[:, :, i : i + 32] = acc / l
    return o
""",
    }
    assert answer not in texts.values()
    actual = graded(tmp_path, lab, **texts)

    score = "s = q @ K_tile.T - slope * np.abs(row - key)"
    last_task = lab.solution("numpy").read_text()
    assert score in last_task
    rounded = f"{score.replace('= ', '= ((')}) * 1.4426950408889634).astype(np.float32)"
    base_two = last_task.replace(score, rounded).replace("K_tile.T  #", "K_tile.T * 1.4426950408889634  #")
    (of_last_task,) = graded(tmp_path, lab, last=base_two.replace("np.exp(", "np.exp2(")).values()
    assert (of_last_task.found, of_last_task.alone.found) == (RIGHT, RIGHT), of_last_task.text

    assert {name: verdict.text.splitlines()[0] for name, verdict in actual.items()} == dict.fromkeys(
        texts, "right: correct on every size tried; no speed claim: this machine has no GPU"
    )


@by_all_labs
def test_other_ways_to_write_a_plain_attention_are_right_too(tmp_path):
    lab = LABS["plain_attention"]
    answer = lab.snapshot("numpy", len(lab.stages)).read_text()
    mask = "        S[place > place[:, None]] = -np.inf  # right of the diagonal; e to it is 0\n"
    ways = {
        "functions": (
            ("S.max(axis=1, keepdims=True)", "np.max(S, 1)[:, None]"),
            ("P.sum(axis=1, keepdims=True)", "np.sum(P, axis=-1, keepdims=True)"),
            ("Q @ K.T", "np.dot(Q, np.transpose(K))"),
        ),
        "inner": (("Q @ K.T", "np.inner(Q, K)"),),
        "root_of_numpy": (("from math import sqrt\n\n", ""), ("sqrt(", "np.sqrt(")),  # makes it float64
        "mask_by_choice": ((mask, "        S = np.where(place > place[:, None], -np.inf, S)\n"),),
        "mask_row_by_row": ((mask, "        for m in place:\n            S[m, m + 1 :] = -np.inf\n"),),
        "divided_at_the_end": (
            ("    return P / P.sum(axis=1, keepdims=True)", "    return P"),
            (
                "return shares(Q, K, causal) @ V",
                "P = shares(Q, K, causal)\n    return P @ V / P.sum(1)[:, None]",
            ),
        ),
    }
    texts = {}
    for name, changes in ways.items():
        texts[name] = answer
        for old, new in changes:
            assert old in answer
            texts[name] = texts[name].replace(old, new)
    texts["all_heads_at_once"] = """import numpy as np


def attention(q, k, v, *, causal=False):
    S = q @ k.swapaxes(-1, -2) / np.float32(q.shape[3] ** 0.5)
    n = np.arange(q.shape[2])
    S = np.where(causal & (n > n[:, None]), np.float32(-np.inf), S)
    P = np.exp(S - S.max(axis=-1, keepdims=True))
    return P / P.sum(axis=-1, keepdims=True) @ v
"""
    actual = graded(tmp_path, lab, **texts)

    assert {name: verdict.text.splitlines()[0] for name, verdict in actual.items()} == dict.fromkeys(
        texts, "right: correct on every size tried; no speed claim: this machine has no GPU"
    )


def test_the_tests_at_the_foot_of_a_plain_attention_say_what_its_stages_promise(tmp_path):
    """A student's own four tests: all true of the answer, and the right ones fail for what the lab has them break."""
    lab = LABS["plain_attention"]
    answer = lab.snapshot("numpy", len(lab.stages)).read_text()

    def failed(name, *changes):
        text = answer
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (file := tmp_path / f"{name}.py").write_text(text)
        done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=True)
        assert len(done.stdout.splitlines()) == 4 + 4 + 1
        found = {"10": set(), "1000": set(), "three": set()}
        for line in done.stdout.splitlines():
            asked, _, said = line.rpartition(": ")
            number, _, what = asked.partition(" ")
            found[number] |= {what} - ({what} if said == "True" else set())
        assert found["10"] == found["1000"]
        return found["10"] | found["three"]

    largest, root = "    S = S - S.max(axis=1, keepdims=True)", " / sqrt(Q.shape[1])"
    sums, mask = "P.sum(axis=1, keepdims=True)", "        S[place > place[:, None]] = -np.inf"
    later = f"    P = P / {sums}\n    if causal:\n        P[place > place[:, None]] = 0\n    return P"
    both = {"causal, rows of P sum to 1", "causal, row 0 is V[0]"}
    assert failed("right") == set()
    assert failed("mask_behind", (mask, "        pass"), (f"    return P / {sums}", later)) == both
    assert (
        failed("wrong_axis", (sums, sums.replace("1", "0")))
        == {
            "rows of P sum to 1",
            "tokens, 4",
        }
        | both
    )  # not the one of equal keys
    # What none of them shows is the grader's to find: wrong_scale_forgotten, wrong_maximum_left_out.
    assert failed("no_root", (root, "")) == set()
    assert failed("no_largest", (largest, "")) == set()


@by_all_labs
def test_a_lab_may_try_large_inputs_too(tmp_path):
    text = OTHER_DOORS.replace("minutes = 1", "minutes = 1\nmagnify = 1000")
    head = "import numpy as np\n\n\ndef vector_add(x, y):\n"
    actual = graded(
        tmp_path,
        load_lab(make_lab(tmp_path, text)),
        right=head + "    return x - (-y)\n",
        clipped=head + "    z = x - (-y)\n    z[(abs(z) > 40) & (abs(z) < 1e6)] = 40\n    return z\n",
    )

    assert actual["right"].found == "right"
    assert actual["clipped"].text.startswith("refused on N=1 float32, inputs times 1000: wrong: ")


def test_a_constant_of_the_file_chooses_the_sizes():
    from course_kernels.problem import Workload

    lab = LABS["flash_attention"]
    grader = Grader(lab, "cuda", False, print)
    like = {"B": 1, "H": 2, "N": 129, "causal": True}

    assert lab.fixed == ("D",)
    assert grader._alike(Workload.of("float32", D=128, **like), grader.tries)
    assert not grader._alike(Workload.of("float32", D=64, **like), grader.tries)


@by_all_labs
def test_a_python_door_takes_lists(tmp_path):
    lab = load_lab(make_lab(tmp_path, OTHER_DOORS))
    lab = dataclasses.replace(lab, doors={"python": ""})
    texts = {
        "right": "    return [a + b for a, b in zip(x, y)]\n",
        "short": "    return [a + b for a, b in zip(x[1:], y)]\n",
        "ragged": "    return [[1.0], 2.0]\n",
        "modified": "    x[0] = 0.0\n    return [a + b for a, b in zip(x, y)]\n",
        "numpy": "    import numpy\n\n    return list(numpy.array(x) + y)\n",
        "wrong": "    return [a - b for a, b in zip(x, y)]\n",
        "nothing": "    pass\n",
    }
    actual = graded(
        tmp_path, lab, name="mine_python.py", **{n: f"def vector_add(x, y):\n{t}" for n, t in texts.items()}
    )

    assert {name: verdict.found for name, verdict in actual.items()} == {
        "right": "right",
        "short": "wrong shape",
        "ragged": "wrong result",
        "modified": "input modified",
        "numpy": "not yours",
        "wrong": "wrong",
        "nothing": "wrong result",
    }


# --- the commands -----------------------------------------------------------------------------


def test_the_labs_are_listed(capsys):
    assert main(["lab"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert any(
        line.split()[1:] == ["first_kernel", "25", "min", "triton,", "cuda,", "numpy", *line.split()[7:]]
        for line in lines
    )
    assert lines[-1] == "start one:  nox -s lab -- NAME        check it:  nox -s grade -- NAME"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["grade", "frist_kernel", "mine.py"],
            f"no lab 'frist_kernel'; did you mean first_kernel? There are {', '.join(sorted(LABS))}",
        ),
        (["lab", "gray"], f"no lab 'gray'; did you mean grey? There are {', '.join(sorted(LABS))}"),
        (["lab", "42"], f"no lab '42'; there are {', '.join(sorted(LABS))}"),
        (
            ["grade", "first_kernel", "gone.py"],
            "there is no file gone.py; the starter: nox -s lab -- first_kernel --door triton",
        ),
        (
            ["grade", "first_kernel", "notes.txt"],
            "notes.txt: first_kernel takes first_kernel.py, first_kernel.cu, first_kernel_numpy.py",
        ),
        (
            ["grade", "first_kernel", "a.py", "--door", "mojo"],
            "first_kernel has no door 'mojo'; it has triton, cuda, numpy",
        ),
        (
            ["lab", "first_kernel", "--door", "mojo"],
            "first_kernel has no door 'mojo'; it has triton, cuda, numpy",
        ),
        (
            ["lab", "first_kernel", "--stage", "9"],
            "first_kernel has no stage 9; it has 1 to 4, and 0 is the starter",
        ),
    ],
)
def test_a_slip_in_a_command_is_one_line(capsys, arguments, said):
    assert main(arguments) == 2
    assert capsys.readouterr().err == said + "\n"


def test_who_has_begun_two_doors_is_told_which_file_is_graded(tmp_path, capsys):
    make_lab(tmp_path, OTHER_DOORS)
    (tmp_path / "my_labs").mkdir()
    answers = {"sums.py": "return x - (-y)", "sums_python.py": "return [a + b for a, b in zip(x, y)]"}
    told = "my_labs/sums.py is graded; the other:  nox -s grade -- sums my_labs/sums_python.py"
    right = "right: correct on every size tried; no speed claim: this machine has no GPU"

    def lines(*more):
        assert main(["grade", "sums", *more], tmp_path) == 0
        return capsys.readouterr().out.splitlines()

    for number, (name, line) in enumerate(answers.items(), start=1):
        (tmp_path / "my_labs" / name).write_text(f"def vector_add(x, y):\n    {line}\n")
        assert lines() == ([told, right] if number == 2 else [right])
    for chosen in (["--door", "python"], ["--door", "numpy"], [str(tmp_path / "my_labs" / "sums_python.py")]):
        assert lines(*chosen) == [right]
    (tmp_path / "my_labs" / "sums.py").unlink()
    assert lines() == [right]


@pytest.mark.parametrize("seconds", ["inf", "nan", "-1", "0", "1e99", "soon"])
def test_a_time_limit_is_a_number_of_seconds(capsys, seconds):
    with pytest.raises(SystemExit) as ended:
        main(["grade", "first_kernel", f"--seconds={seconds}"])
    assert ended.value.code == 2
    assert f"{seconds} is no time limit: a number of seconds above 0, up to 3600" in capsys.readouterr().err


def test_an_option_may_stand_between_a_lab_and_its_file(tmp_path, capsys):
    right = tmp_path / "right.py"
    right.write_text(LABS["roofline"].snapshot("python", 5).read_text())
    assert main(["grade", "roofline", "--seconds", "20", str(right)]) == 0
    assert main(["grade", "--door", "python", "roofline", str(right)]) == 0


@pytest.mark.parametrize("arguments", [[], ["labs"], ["--help-me"]])
def test_a_command_that_is_none_is_one_line(capsys, arguments):
    assert main(arguments) == 2
    assert (
        capsys.readouterr().err
        == "usage: python -m course_labs lab|grade [options]; lab alone lists the labs\n"
    )


def test_grading_says_by_its_exit_code_what_it_found(tmp_path, capsys):
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(LABS["roofline"].snapshot("python", 5).read_text())
    wrong.write_text(LABS["roofline"].snapshot("python", 4).read_text())

    assert main(["grade", "roofline", str(right)]) == 0
    assert main(["grade", "roofline", str(wrong)]) == 1
    assert capsys.readouterr().out.splitlines()[-2:] == [
        verdict_of(LABS["roofline"].snapshot("python", 4)).text.splitlines()[0],
        "next: it returns nothing yet; end it with a `return`.",
    ]


def test_a_machine_whose_gpu_torch_cannot_use_is_told_so():
    with pytest.raises(CannotGrade, match="this machine has a GPU, but torch cannot use it"):
        grade(FIRST, [FIRST.snapshot("triton", 4)], needs_gpu=True, environment=NO_GPU)


def test_nox_writes_a_lab_without_installing_anything_in_a_terminal_of_an_old_encoding(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "nox", "-f", str(ROOT / "noxfile.py"), "-s", "lab"],
        capture_output=True,
        encoding="latin-1",
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTHONIOENCODING": "latin-1"},
    )

    assert done.returncode == 0, done.stderr
    # A lab of no session has a dash, which that encoding lacks.
    assert done.stdout.startswith("?   first_kernel")


# --- the student's folder -----------------------------------------------------------------------


def test_a_starter_is_written_once_and_then_left_alone(tmp_path):
    assert write(FIRST, tmp_path)[0] == "wrote my_labs/first_kernel.py: the starter"
    mine = tmp_path / "my_labs" / "first_kernel.py"
    assert mine.read_text() == FIRST.snapshot("triton", 0).read_text()

    mine.write_text("my work\n")
    assert write(FIRST, tmp_path)[0] == "my_labs/first_kernel.py is there already: left as it is"
    assert [path.name for path in mine.parent.iterdir()] == ["first_kernel.py"]
    assert mine.read_text() == "my work\n"


def test_what_is_written_where_nothing_is_kept_is_told_with_the_next_command(tmp_path):
    grade_it = "then:  nox -s grade -- first_kernel my_labs/first_kernel"
    again = "the starter again:  nox -s lab -- first_kernel"
    assert write(FIRST, tmp_path) == ["wrote my_labs/first_kernel.py: the starter", f"{grade_it}.py"]
    there = "my_labs/first_kernel.{} is there already: left as it is"
    assert write(FIRST, tmp_path) == [there.format("py"), f"{again} --stage 0", f"{grade_it}.py"]
    assert write(FIRST, tmp_path, stage=0) == ["my_labs/first_kernel.py is that already", f"{grade_it}.py"]
    assert write(FIRST, tmp_path, stage=4) == [
        "wrote my_labs/first_kernel.py: stage 4 of 4",
        "your file is kept as my_labs/first_kernel.before-stage-4.py",
        f"{grade_it}.py",
    ]
    assert write(FIRST, tmp_path, "cuda", 1) == [
        "wrote my_labs/first_kernel.cu: stage 1 of 4",
        f"{grade_it}.cu",
    ]
    assert write(FIRST, tmp_path, "cuda") == [
        there.format("cu"),
        f"{again} --door cuda --stage 0",
        f"{grade_it}.cu",
    ]
    for stage in (-1, 5):
        with pytest.raises(LabError, match=f"^first_kernel has no stage {stage}; it has 1 to 4"):
            write(FIRST, tmp_path, stage=stage)
    mode = (tmp_path / "my_labs" / "first_kernel.py").stat().st_mode
    assert mode & 0o777 == 0o644


def test_every_earlier_file_is_kept(tmp_path):
    mine = tmp_path / "my_labs" / "first_kernel.py"
    for text in ("one\n", "two\n", "three\n"):
        mine.parent.mkdir(exist_ok=True)
        mine.write_text(text)
        assert write(FIRST, tmp_path, stage=2)[0] == "wrote my_labs/first_kernel.py: stage 2 of 4"
    write(FIRST, tmp_path, stage=2)  # it is that already: nothing to keep
    write(FIRST, tmp_path, stage=0)

    assert {path.name: path.read_text() for path in mine.parent.iterdir()} == {
        "first_kernel.py": FIRST.snapshot("triton", 0).read_text(),
        "first_kernel.before-stage-2.py": "one\n",
        "first_kernel.before-stage-2-2.py": "two\n",
        "first_kernel.before-stage-2-3.py": "three\n",
        "first_kernel.before-stage-0.py": FIRST.snapshot("triton", 2).read_text(),
    }


def test_a_file_system_without_links_keeps_the_work_too(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    for text in ("one\n", "two\n"):
        (tmp_path / "my_labs").mkdir(exist_ok=True)
        (tmp_path / "my_labs" / "first_kernel.cu").write_text(text)
        write(FIRST, tmp_path, "cuda", 1)

    kept = {path.name: path.read_text() for path in (tmp_path / "my_labs").glob("*.before-*")}
    first, second = "first_kernel.before-stage-1.cu", "first_kernel.before-stage-1-2.cu"
    assert kept == {first: "one\n", second: "two\n"}


def test_a_write_that_fails_leaves_the_work_where_it_was(tmp_path, monkeypatch):
    mine = tmp_path / "my_labs" / "first_kernel.py"
    mine.parent.mkdir()
    mine.write_text("my work\n")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write(FIRST, tmp_path, stage=1)

    assert mine.read_text() == "my work\n"
    assert not [path for path in mine.parent.iterdir() if path.name.startswith(".")]


def test_git_leaves_the_students_folder_alone():
    assert "/my_labs/" in (ROOT / ".gitignore").read_text().splitlines()


# --- lab.toml ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('title = "Sums"', "", "needs `title`, a text"),
        ("minutes = 1", 'minutes = "1"', "needs `minutes`, a whole number"),
        ("minutes = 1", "minutes = 1\ncolour = 2", "unknown key `colour`"),
        ('"a", "b", "c"', '"a", "b"', "needs 3 hints, has 2"),
        ('rubric = ["d"]', "", "needs a `rubric`"),
        ('problem = "vector_add"', 'problem = "gone"', "there is no src/course_kernels/gone/problem.py"),
        ('problem = "vector_add"', "", "without a `problem` it needs `entry`"),
        ('try = ["dtype=float32,N=1", "dtype=float32,N=5"]', "", "needs `try`"),
        ("[doors.python]", "[doors.mojo]", "unknown door 'mojo'"),
        ("[doors.python]", "[doors.triton]", "needs `time`"),
        ("[doors.python]", '[doors.cuda]\nprints = ""\n[doors.python]', "a door `cuda` needs launch.py"),
        ('[doors.python]\nprints = ""', "[doors.python]", "[doors.python] needs `prints`"),
        (
            '[stage.python]\ntype = ""\n',
            "[stage.python]\n",
            "stage 1 needs [stage.python] with `type` and `prints`",
        ),
        ('title = "e"', 'title = "e"\nhints = "f"', "stage 1: unknown key hints"),
        ('title = "e"', 'title = "e"\nhint = 1', "stage 1: `hint` is a text without a block of code"),
        (
            'title = "e"',
            'title = "e"\nhint = """a\n```\nb\n```"""',
            "stage 1: `hint` is a text without a block",
        ),
        ("task =", "task", "cannot be read"),
        ("minutes = 1", 'minutes = 1\nfixed = ["N"]', "`fixed`: N is not one and the same in all of `try`"),
        ("minutes = 1", 'minutes = 1\nlongest = "N"', "`longest` is not a whole number"),
    ],
)
def test_a_wrong_lab_toml_is_one_line(tmp_path, old, new, said):
    assert old in OTHER_DOORS
    path = make_lab(tmp_path, OTHER_DOORS.replace(old, new))

    with pytest.raises(LabError) as refused:
        load_lab(path)

    assert said in str(refused.value)
    assert str(refused.value).startswith(f"{path}: ")
    assert "\n" not in str(refused.value)


FULL = OTHER_DOORS.replace("minutes = 1", "minutes = 1\nseconds = 2\nmagnify = 3\nlongest = 4\ntime = 'N=9'")
FULL = FULL.replace("longest = 4", "longest = 4\nat_once = 6\nrow_at_once = true")
FULL = FULL.replace("[doors.numpy]", 'fixed = ["M"]\nbeside = "gemm.x"\n[doors.numpy]')
FULL = FULL.replace('"dtype=float32,N=1", "dtype=float32,N=5"', '"M=2,N=1", "M=2,N=5"')
FULL = FULL.replace('prints = ""', 'prints = " p "\non_gpu = " g "').replace('type = ""', 'type = " t "')
FULL = FULL.replace("[doors.python]", 'answer = " because "\n[doors.python]').replace(
    '"e"', '"e"\ntext = " u "\nhint = " h "'
)


def test_a_lab_toml_is_read_word_for_word_and_what_it_leaves_out_is_nothing(tmp_path):
    path = make_lab(tmp_path, OTHER_DOORS)
    lab, e = load_lab(path), {"numpy": "", "python": ""}
    said = ["sums", "Sums", "docs/start_here.py", "vector_add", ("vector_add",), 1, 60, "Add.", "Nothing."]
    lists = [
        ("numpy.cumsum", "numpy.ndarray.sum"),
        ("numpy.add",),
        ("dtype=float32,N=1", "dtype=float32,N=5"),
    ]
    on_gpu = dict.fromkeys(e, ("",) * 4)
    rest = [0, (), 0, 0, False, "", "", ("a", "b", "c"), ("d",), e, on_gpu, e, (Stage("e", "", e, e),) * 3]
    assert lab == Lab(path.parent, *said, *lists, *rest)

    path.write_text(FULL)
    lab, p, typed = load_lab(path), dict.fromkeys(e, "p"), dict.fromkeys(e, "t")
    said[6], lists[2] = 2, ("M=2,N=1", "M=2,N=5")
    rest[:7] = [3, ("M",), 4, 6, True, "N=9", "gemm.x"]
    rest[9:] = [
        p,
        dict.fromkeys(e, ("g",) * 4),
        {"numpy": "because", "python": ""},
        (Stage("e", "u", typed, p, "h"),) * 3,
    ]
    assert lab == Lab(path.parent, *said, *lists, *rest)


def complaints(tmp_path, *changes, text=OTHER_DOORS):
    """All that is wrong with a lab.toml in which something was replaced."""
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "labs/sums/lab.toml"
    path = path if path.exists() else make_lab(tmp_path, OTHER_DOORS)
    return list(_complaints(tomllib.loads(text), path.parent))


STAGE = (
    '[[stage]]\ntitle = "e"\n[stage.numpy]\ntype = ""\nprints = ""\n[stage.python]\ntype = ""\nprints = ""\n'
)
TIMED = ("minutes = 1", 'minutes = 1\ntime = "N=9"')
KNOWN = (
    "name, title, page, minutes, task, not_yours, problem, entry, seconds, allow, refuse, try, magnify, fixed, "
    "longest, at_once, row_at_once, held, time, beside, hints, rubric, doors, stage, alone"
)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([], []),
        ([("minutes = 1", "minutes = 1\ncolour = 2")], [f"unknown key `colour`; known: {KNOWN}"]),
        ([("minutes = 1", "minutes = 1\nentry = 2")], ["`entry` is not a text or a list"]),
        ([("minutes = 1", 'minutes = 1\nentry = "f"')], []),
        ([("minutes = 1", 'minutes = 1\nentry = ["f"]')], ["`entry` of a lab with a problem is one name"]),
        ([('"sums"', '"two sums"')], ["`name` 'two sums' is no identifier, such as first_kernel"]),
        ([('"numpy.add"', '" "')], ["`refuse` is not a list of texts"]),
        ([('"numpy.add"', "1")], ["`refuse` is not a list of texts"]),
        ([('["a", "b", "c"]', "[]")], ["needs 3 hints, has 0"]),
        ([('"c"', '"c", "d"')], ["needs 3 hints, has 4"]),
        ([('["d"]', "[]")], ["needs a `rubric`, at least one line"]),
        ([('title = "e"\n', "")], [f"stage {n} needs a `title`" for n in (1, 2, 3)]),
        ([('title = "e"', 'title = "e"\nb = 1\na = 1')], [f"stage {n}: unknown key a, b" for n in (1, 2, 3)]),
        ([("[stage.numpy]", "[stage.numpy]\nx = 1")],
         [f"[stage.numpy] of stage {n} holds `type`, `prints` and `on_gpu` only" for n in (1, 2, 3)]),
        ([("[doors.numpy]", "[doors.numpy]\nx = 1")], ["[doors.numpy] holds `prints`, `on_gpu` and `answer` only"]),
        ([("minutes = 1", "minutes = 1\nlongest = 8")], []),
        ([("minutes = 1", "minutes = 1\nlongest = 8"), ("numpy]", "triton]"), TIMED],
         ["`longest` is for a door numpy"]),
        ([("minutes = 1", "minutes = 1\nat_once = 8"), ("numpy]", "triton]"), TIMED],
         ["`at_once` is for a door numpy"]),
        ([("minutes = 1", 'minutes = 1\nfixed = ["dtype"]')], []),
        ([("minutes = 1", 'minutes = 1\nfixed = ["dtype", "M"]')],
         ["`fixed`: M is not one and the same in all of `try`"]),
        ([("numpy]", "triton]")], ["needs `time`, the workload that is timed on a GPU"]),
        ([("numpy]", "triton]"), TIMED], []),
        ([('problem = "vector_add"', 'entry = ["f"]')], ["without a `problem` its one door is python"]),
        ([('problem = "vector_add"', "entry = []")],
         ["without a `problem` it needs `entry`, the list of functions to write",
          "without a `problem` its one door is python"]),
    ],
)  # fmt: skip
def test_all_that_is_wrong_with_a_lab_toml_is_told_word_for_word(tmp_path, changes, said):
    assert complaints(tmp_path, *changes) == said


ALONE = """
[alone]
title = "f"
task = "Do it."
entry = "sums_alone"
prints = {numpy = "g", python = "h"}
[doors.numpy]"""


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([], []),
        ([('title = "f"\n', "")], ["[alone] needs `title`, a text"]),
        ([("Do it.", "Do it.\"\nhint = \"no")],
         ["[alone] unknown key `hint`; known: title, task, entry, prints, try, time, fixed, magnify, refuse, longest"]),
        ([('entry = "sums_alone"', 'entry = ["a"]')], ["[alone] needs `entry`, a text"]),
        ([('"sums_alone"', '"two words"')], ["[alone] `entry` 'two words' is no name of a function"]),
        ([('"sums_alone"', '"vector_add"')],
         ["[alone] `entry`: vector_add is the lab's own; the last task is one more function"]),
        ([(', python = "h"', "")], ["[alone] `prints` needs a text for each of numpy, python, and for nothing else"]),
        ([('python = "h"', "python = 1")],
         ["[alone] `prints` needs a text for each of numpy, python, and for nothing else"]),
        ([("Do it.", "Do it.\"\nmagnify = \"2")], ["[alone] `magnify` is not a whole number"]),
        ([("[alone]", "[alone]\ntry = []")], ["[alone] `try` is empty"]),
        ([("[alone]", "[alone]\ntry = [1]")], ["[alone] `try` is not a list of texts"]),
        ([("[alone]", '[alone]\nfixed = ["N"]')],
         ["[alone] `fixed`: N is not one and the same in all of `try`"]),
        ([("[alone]", '[alone]\nfixed = ["N"]\ntry = ["dtype=float32,N=4"]')], []),
    ],
)  # fmt: skip
def test_all_that_is_wrong_with_a_last_task_is_told_word_for_word(tmp_path, changes, said):
    path = make_lab(tmp_path, OTHER_DOORS)
    for name in ("alone.py", "numpy/alone.py", "python/alone.py"):
        (path.parent / name).write_text("")
    whole = OTHER_DOORS.replace("[doors.numpy]", ALONE, 1)
    assert complaints(tmp_path, *changes, text=whole) == said


def test_the_files_of_a_last_task_that_are_not_there_are_told(tmp_path):
    assert complaints(tmp_path, ("[doors.numpy]", ALONE)) == [
        "[alone] needs alone.py with PROBLEM",
        "[alone] there is no numpy/alone.py: the answer and the function sums_alone",
        "[alone] there is no python/alone.py: the answer and the function sums_alone",
    ]
    (folder := tmp_path / "by_hand").mkdir()
    (folder / "truth.py").write_text("")
    text = OTHER_DOORS.replace("[doors.numpy]", ALONE).replace('problem = "vector_add"', 'entry = ["f"]')
    said = list(_complaints(tomllib.loads(text.replace("[alone]", "[alone]\nlongest = 3")), folder))
    assert "[alone] longest: only a lab with a problem has them" in said
    assert "[alone] needs alone.py with cases()" in said


def test_a_last_task_is_the_lab_but_for_what_it_says(tmp_path):
    path = make_lab(tmp_path, OTHER_DOORS)
    for name in ("alone.py", "numpy/alone.py", "python/alone.py"):
        (path.parent / name).write_text("")
    text = OTHER_DOORS.replace("[doors.numpy]", ALONE, 1)
    path.write_text(text)
    lab = load_lab(path)
    assert lab.alone == dataclasses.replace(
        lab, title="f", task="Do it.", entry=("sums_alone",), doors={"numpy": "g", "python": "h"},
        on_gpu={"numpy": ("",), "python": ("",)}, beside="", hints=(), rubric=(), answers={}, stages=(),
        alone=None, is_alone=True,
    )  # fmt: skip
    assert lab.solution("numpy") == path.parent / "numpy" / "alone.py"
    more = 'try = ["dtype=float32,N=2"]\ntime = "N=9"\nmagnify = 2\nlongest = 7\nrefuse = ["numpy.sum"]\nfixed = ["N"]'
    path.write_text(text.replace("[alone]", f"[alone]\n{more}"))
    assert load_lab(path).alone == dataclasses.replace(
        lab.alone,
        tries=("dtype=float32,N=2",),
        time="N=9",
        magnify=2,
        longest=7,
        refuse=("numpy.sum",),
        fixed=("N",),
    )


def test_a_lab_whose_truth_is_not_there_is_told_so(tmp_path):
    path = make_lab(tmp_path, OTHER_DOORS)
    (path.parent / "truth.py").unlink()
    assert complaints(tmp_path) == ["a door numpy needs truth.py with TRUTH, the problem in NumPy"]
    assert complaints(tmp_path, ('problem = "vector_add"', 'entry = ["f"]')) == [
        "without a `problem` it needs truth.py with cases()", "without a `problem` its one door is python"
    ]  # fmt: skip
    (path.parent / "truth.py").write_text("")
    with pytest.raises(CannotGrade, match=r"truth\.py has no TRUTH, which a door numpy is judged by$"):
        graded(tmp_path, load_lab(path), nothing="def vector_add(x, y):\n    return x\n")


@pytest.mark.parametrize(("n", "right"), [(0, False), (2, False), (3, True), (5, True), (6, False)])
def test_a_lab_toml_has_three_to_five_stages(tmp_path, n, right):
    text = OTHER_DOORS.split("[[stage]]")[0] + n * STAGE
    said = complaints(tmp_path, text=text)
    assert (f"needs 3 to 5 stages, has {n}" in said) is not right
    missing = [f"there is no {door}/stage{m}.py" for door in ("numpy", "python") for m in range(4, n + 1)]
    assert [line for line in said if line.startswith("there is no")] == missing


@pytest.mark.parametrize(
    ("doors", "file", "door", "name"),
    [
        ("triton cuda", "mine.py", "triton", "sums.py"),
        ("triton cuda", "mine.cu", "cuda", "sums.cu"),
        ("triton cuda", "mine.txt", None, None),
        ("triton numpy", "mine.py", "triton", "sums.py"),
        ("triton numpy", "mine_numpy.py", "numpy", "sums_numpy.py"),
        ("numpy triton", "mine.py", "numpy", "sums.py"),
        ("numpy triton", "triton/mine.py", "triton", "sums_triton.py"),
        ("triton numpy", "mine_cuda.py", "triton", "sums.py"),
    ],
)
def test_a_file_listed_under_no_door_has_it_by_its_name(doors, file, door, name):
    lab = dataclasses.replace(
        FIRST, name="sums", folder=Path("lab"), doors=dict.fromkeys(doors.split(), "starts")
    )
    assert lab.door_of(Path(file)) == door
    if door:
        assert lab.student_file(door) == name
        assert lab.snapshot(door, 0) == Path("lab", door, f"starter{Path(file).suffix}")
        assert lab.snapshot(door, 1) == Path("lab", door, f"stage1{Path(file).suffix}")
        assert lab.prints(door, 0) == "starts"


def test_what_is_printed_after_a_stage_is_that_of_the_stage_listed_there():
    for number, stage in enumerate(FIRST.stages, start=1):
        assert FIRST.prints("triton", number) == stage.prints["triton"]
    assert FIRST.prints("triton", 0) == FIRST.doors["triton"] != FIRST.stages[0].prints["triton"]


def test_a_missing_snapshot_and_a_folder_of_another_name_are_found(tmp_path):
    path = make_lab(tmp_path, OTHER_DOORS)
    (path.parent / "python" / "stage2.py").unlink()
    with pytest.raises(LabError, match=r"there is no python/stage2\.py"):
        load_lab(path)

    (path.parent / "python" / "stage2.py").write_text("")
    make_lab(tmp_path, OTHER_DOORS, "copy")
    with pytest.raises(LabError, match=r"copy/lab\.toml: the lab sums lies in labs/sums/"):
        find_lab(tmp_path, "sums")


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("right", "right\nmore", True),
        ("right\nmore", "right", False),
        ("right", "right: more", False),
        ("wrong: … got …", "wrong: expected 1, got 2", True),
        ("a … b … c", "a 1 b 2 c", True),
        ("a … b … c", "a 1 c", False),
        ("a … b", "c 1 b", False),
        ("a … b", "a 1 c", False),
        ("ab…b", "ab", False),
        ("ab…b", "abb", True),
        ("a…b…b", "ab", False),
        ("a…b…b", "abb", True),
        ("a…bc…c", "abc", False),
        ("a…", "a", True),
        ("…a", "ba", True),
        ("…a…", "bab", True),
        (" right ", "  right", True),
        ("", "anything", True),
        ("a\nb", "a\nc", False),
        ("a\nb", "a\nb", True),
        ("got nan", "got NaN", False),
    ],
)
def test_an_expected_output_is_compared_line_by_line(expected, printed, same):
    assert same_lines(expected, printed) is same


# --- on a page --------------------------------------------------------------------------------


def fold(css, summary, body):
    return f"<{css}: {summary}>\n{body}\n</>"


@pytest.mark.parametrize("name", LABS)
def test_a_page_shows_all_of_a_lab(name):
    lab = LABS[name]
    text = pages.markdown(lab, str, fold)

    for door in lab.doors:
        assert f"nox -s grade -- {name} my_labs/{lab.student_file(door)}" in text
        assert lab.snapshot(door, len(lab.stages)).read_text().strip() in text
        for stage in lab.stages:
            assert stage.type[door] in text
            assert stage.hint in text
    for number, stage in enumerate(lab.stages, start=1):  # once, however many doors there are
        assert text.count(f"**{number}. {stage.title}.** {stage.text}".rstrip()) == 1
        assert text.count(f"A hint for stage {number}>") == bool(stage.hint)
    assert [text.index(hint) for hint in lab.hints] == sorted(text.index(hint) for hint in lab.hints)
    assert all(line.splitlines()[0] in text for line in lab.rubric)


def stands_open(text):
    """What of a lab on its page nobody has to unfold; the doors stand side by side, each in a fold of its own."""
    found, folds = [], []
    for line in text.splitlines():
        if line.startswith(("<fold", "<answer")):
            folds.append("door-of-lab" not in line)
        elif line == "</>":
            folds.pop()
        elif not any(folds):
            found.append(line)
    assert not folds
    return "\n".join(found)


def code_standing_open(text):
    """Fences that are neither a command nor what the grader prints."""
    fences = re.findall(r"^[ >]*(?:```+|~~~+)[^\n]*\w[^\n]*$", stands_open(text), re.MULTILINE)
    return [fence for fence in fences if fence != "```bash" and ".output" not in fence]


@pytest.mark.parametrize("name", LABS)
def test_a_lab_asks_and_shows_no_code_that_nobody_unfolded(name):
    lab = LABS[name]
    text = pages.markdown(lab, str, fold)
    opened = stands_open(text)

    assert code_standing_open(text) == []
    assert lab.task in opened
    for door in lab.doors:
        for number, stage in enumerate(lab.stages, start=1):
            assert stage.text in opened
            assert said(lab, door, number) in opened
            typed = stage.type[door]
            assert typed not in opened
            which = f" in {DOORS[door]}" if len(lab.doors) > 1 else ""
            assert f"<fold: How it is typed{which}>\n{typed}" in text


def test_code_that_stands_open_in_a_lab_would_be_found():
    for lab in (
        dataclasses.replace(FIRST, task="Do:\n\n```python\nz = x + y\n```"),
        dataclasses.replace(
            FIRST, stages=(dataclasses.replace(FIRST.stages[0], text="Do:\n\n``` { .cuda }\nx;\n```"),) * 3
        ),
        dataclasses.replace(FIRST, alone=dataclasses.replace(FIRST.alone, task="Do:\n\n~~~ python\nz\n~~~")),
    ):
        assert code_standing_open(pages.markdown(lab, str, fold))
    unfolded = pages.markdown(FIRST, str, lambda css, summary, body: body)
    assert len(code_standing_open(unfolded)) > len(FIRST.stages)


@pytest.mark.parametrize("name", WITH_ALONE)
def test_a_last_task_stands_on_its_page_with_its_words_only(name):
    lab = LABS[name]
    text = pages.markdown(lab, str, fold)
    end = "" if lab.alone.title.endswith("?") else "."
    begin = text.index(f"**Alone: {lab.alone.title}{end}** {lab.alone.task}")
    part = text[begin : text.index("<fold: You are done when>")]

    assert "<" not in part.replace(lab.alone.task, "")  # nothing to unfold: no hint, no answer
    assert all(f"alone: {printed}" in part for printed in lab.alone.doors.values())
    assert begin > text.rindex("How it is typed")
    assert "**Alone" not in pages.markdown(dataclasses.replace(lab, alone=None), str, fold)


def test_a_stage_s_hint_is_unfolded_before_how_it_is_typed():
    text = pages.markdown(FIRST, str, fold)
    hint, typed = FIRST.stages[0].hint, FIRST.stages[0].type["triton"]

    assert f"<fold hint: A hint for stage 1>\n{hint}\n\n<fold: How it is typed in Triton>\n{typed}" in text


def test_a_hint_lies_inside_the_one_before():
    text = pages.markdown(FIRST, str, fold)
    first, second = (text.index(f"<fold hint: {name}>") for name in pages.HINTS[:2])

    assert "</>" not in text[first:second]


@pytest.mark.parametrize(
    ("verdict", "code", "said"),
    [
        (Verdict("right", "fast", "N=1", "", ("a", "b")), 0, "right: fast\na\nb"),
        (
            Verdict("right", "fast", alone=Verdict("not begun", "no f")),
            0,
            "right: fast\nalone: next, the lab's last task: no f",
        ),
        (
            Verdict("right", "fast", lines=("a",), alone=Verdict("right", "b")),
            0,
            "right: fast\na\nalone: right, and the lab is done: b",
        ),
        (
            Verdict("right", "fast", alone=Verdict("wrong", "b", "N=1", "c")),
            1,
            "right: fast\nalone: refused on N=1: wrong: b\nnext: c",
        ),
        (
            Verdict("not run", "compiled", alone=Verdict("not begun", "no f")),
            3,
            "compiled\nalone: next, the lab's last task: no f",
        ),
        (
            Verdict("not run", "compiled", alone=Verdict("function missing", "b", next="c")),
            1,
            "compiled\nalone: refused: function missing: b\nnext: c",
        ),
        (Verdict("not run", "compiled", "N=1"), 3, "compiled"),
        (Verdict("wrong", "why", "N=1", "look", ("a",)), 1, "refused on N=1: wrong: why\na\nnext: look"),
        (Verdict("wrong", "why"), 1, f"refused: wrong: why\nnext: {NEXT['wrong']}"),
        (Verdict("all NaN", "", "N=1"), 1, f"refused on N=1: all NaN\nnext: {NEXT['all NaN']}"),
    ],
)
def test_a_verdict_is_written_with_its_exit_code(verdict, code, said):
    assert (verdict.code, verdict.text) == (code, said)


def test_what_is_kept_in_the_student_s_folder_is_graded_first_by_its_door(tmp_path):
    folder = tmp_path / "my_labs"
    folder.mkdir()
    assert _first_file(FIRST, tmp_path, "") == folder / "first_kernel.py"
    (folder / "first_kernel.cu").write_text("")
    assert (
        _first_file(FIRST, tmp_path, "") == _first_file(FIRST, tmp_path, "cuda") == folder / "first_kernel.cu"
    )
    assert _first_file(FIRST, tmp_path, "triton") == folder / "first_kernel.py"
    assert _first_file(FIRST, tmp_path, "mojo") == folder / "first_kernel.cu"


def test_a_list_of_labs_is_written_in_columns(tmp_path, capsys):
    end = "start one:  nox -s lab -- NAME        check it:  nox -s grade -- NAME"
    assert main(["lab"], tmp_path) == 0
    assert capsys.readouterr().out == f"\n{end}\n"
    make_lab(tmp_path, OTHER_DOORS)
    make_lab(
        tmp_path,
        OTHER_DOORS.replace('"sums"', '"longer_sums"').replace("minutes = 1", "minutes = 100"),
        "longer_sums",
    )
    assert main(["lab"], tmp_path) == 0
    assert capsys.readouterr().out.splitlines() == [
        "—   longer_sums  100 min  numpy, python  Sums (docs/start_here.py)",
        "—   sums           1 min  numpy, python  Sums (docs/start_here.py)",
        "",
        end,
    ]


def test_labs_are_listed_as_the_road_comes_by_them(tmp_path, capsys):
    sessions, page = tmp_path / "handbook" / "sessions", "docs/start_here.py"
    sessions.mkdir(parents=True)
    halves = (f"[[road.course.half]]\nstops = {stops}\n" for stops in ('["b", "a"]', '["c"]'))
    (sessions / "road.toml").write_text("".join(halves))
    for stop in "abc":
        (sessions / f"{stop}.toml").write_text(
            f'student_page = "docs/{stop}.py"\nchapter = "handbook/{stop}.py"\n'
        )
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "b.py").write_text("# /// lab | late\n# ///\n# /// lab | early\n")
    of_a_page = {"off": page, "in_c": "docs/c.py", "early": "docs/b.py", "late": "docs/b.py"}
    for name, where in {**of_a_page, "taught_in_a": "handbook/a.py"}.items():
        text = OTHER_DOORS.replace('"sums"', f'"{name}"').replace(page, where)
        make_lab(tmp_path, text, name)

    assert main(["lab"], tmp_path) == 0
    listed = [line.split()[:2] for line in capsys.readouterr().out.splitlines()[:5]]
    assert listed == [["—", "off"], ["B", "late"], ["B", "early"], ["A", "taught_in_a"], ["C", "in_c"]]
    (sessions / "c.toml").write_text("no toml")
    assert main(["lab"], tmp_path) == 2
    assert capsys.readouterr().err.startswith(f"{sessions / 'c.toml'}: cannot be read: ")


def test_every_lab_is_listed_with_the_session_of_its_page(capsys):
    assert main(["lab"]) == 0
    listed = [line.split()[:2] for line in capsys.readouterr().out.splitlines()[: len(LABS)]]
    assert listed[:2] == [["—", "first_kernel"], ["L1", "roofline"]]
    assert [name for stop, name in listed if stop == "W4"] == ["add_rmsnorm", "paged"]
    assert dict(listed).keys() == {
        "—",
        "L1",
        "L2",
        "L3",
        "L4",
        "L5",
        "L6",
        "L7",
        "L8",
        "W1",
        "W2",
        "W3",
        "W4",
        "W5",
        "W6",
    }
    assert sorted(name for _, name in listed) == sorted(LABS)


@pytest.mark.parametrize(
    ("arguments", "needs"),
    [
        (["roofline"], ""),
        (["bottleneck"], "torch"),
        (["bottleneck", "my_labs/bottleneck.py", "--door", "python"], "torch"),
        (["roofline", "my_labs/roofline.py"], ""),
        (["paged"], ""),
        (["paged", "labs/paged/wrong/wrong_imports_the_engine.py"], ""),
        (["paged", wrong_of("paged", "wrong_whole_pages.py")], ""),
        (["paged", wrong_of("paged", "wrong_whole_pages_in_numpy.py")], "numpy"),
        (["weak_judge"], "numpy"),
        (["weak_judge", "notes.txt"], "numpy"),
        (["wmma", "my_labs/wmma.py"], "numpy"),
        (["wmma", "my_labs/wmma.cu"], "torch"),
        (["--seconds", "9", "wmma", "--door", "numpy"], "numpy"),
        (["wmma", "my_labs/wmma.py", "--door", "cuda"], "torch"),
        (["first_kernel", "my_labs/first_kernel.py"], "torch"),
        (["frist_kernel"], ""),
        (["wmma", "notes.txt"], ""),
        (["wmma", "--door", "mojo"], ""),
        (["wmma", "--seconds", "soon"], ""),
        (["--help"], ""),
        ([], ""),
    ],
)
def test_grading_installs_what_its_door_needs(capsys, arguments, needs):
    assert grading_needs(arguments) == needs
    assert capsys.readouterr() == ("", "")


def test_a_file_in_the_student_s_folder_says_what_grading_needs(tmp_path):
    make_lab(tmp_path, OTHER_DOORS)
    assert grading_needs(["sums"], tmp_path) == "numpy"
    (tmp_path / "my_labs").mkdir()
    (tmp_path / "my_labs" / "sums_python.py").write_text("")
    assert grading_needs(["sums"], tmp_path) == "numpy"


# --- doors that need no torch ---------------------------------------------------------------------

ON_NUMPY = [name for name, lab in LABS.items() if lab.problem and (lab.folder / "truth.py").exists()]
PARTS = [
    (name, part) for name in ON_NUMPY for part in ("TRUTH", "ALONE") if part == "TRUTH" or LABS[name].alone
]


def truth_and_problem(name, part):
    lab = LABS[name]
    truth = getattr(load_file(lab.folder / "truth.py", "truth"), part)
    if part == "ALONE":
        return lab.alone, truth, load_file(lab.folder / "alone.py", "alone").PROBLEM
    return lab, truth, importlib.import_module(f"course_kernels.{lab.problem}.problem").PROBLEM


@by_all_labs
@pytest.mark.parametrize(("name", "part"), PARTS)
def test_a_truth_in_numpy_is_that_of_the_problem(name, part):
    import numpy as np
    import torch

    from course_kernels.problem import Workload

    lab, truth, problem = truth_and_problem(name, part)
    assert truth.rows_apart == problem.rows_apart
    for w in map(Workload.parse, lab.tries):
        assert truth.max_error(w) == problem.max_error(w)
        assert truth.options(w) == problem.options(w)
        assert repr(truth.hard(w)) == repr(problem.hard(w))  # as text: a NaN differs from itself
        ours = truth.make_inputs(w, np.random.default_rng(1))
        theirs = problem.make_inputs(w, torch.Generator().manual_seed(1), "cpu")
        for mine, other in zip(ours, theirs, strict=True):
            # NumPy has no type of eight bits with a point: such codes come as bytes.
            kind = "uint8" if other.element_size() == 1 else w.dtype
            assert (mine.shape, str(mine.dtype)) == (tuple(other.shape), kind)
            assert mine.flags.c_contiguous
            if mine.size > 500:  # drawn by the same rule: as large, as far apart
                mine, other = mine.astype(float), other.double().numpy()
                for share in (0.25, 0.5, 0.75):
                    values = [np.quantile(array, share) for array in (mine, other)]
                    assert abs(values[0] - values[1]) < max(0.2, 0.2 * abs(values[1]))
                # A few values far larger than the rest decide mean and deviation alone.
                if abs(other).max() < 20 * np.quantile(abs(other), 0.75):
                    for of in (np.mean, np.std):
                        assert abs(of(mine) - of(other)) < 0.2
        for inputs in (ours, [array * 8 for array in ours]):
            due = as_arrays(problem.reference(*map(torch.from_numpy, inputs), **problem.options(w)))
            got = as_arrays(truth.reference(*inputs, **truth.options(w)))
            for mine, other in zip(got, due, strict=True):
                assert (mine.shape, mine.dtype) == (other.shape, other.dtype)
                np.testing.assert_allclose(mine, other, rtol=1e-11, atol=1e-12 * max(1.0, abs(other).max()))


def as_arrays(answer):
    """One answer or several, of torch or of NumPy."""
    answers = answer if isinstance(answer, tuple) else (answer,)
    return [it.numpy() if hasattr(it, "numpy") else it for it in answers]


def test_a_truth_that_is_off_would_be_found(monkeypatch):
    lab, truth, problem = truth_and_problem("first_kernel", "TRUTH")
    for changed in (
        {"reference": lambda x, y: x.astype(float) - y},
        {"max_error": lambda w: 1.0},
        {"hard": lambda w: ()},
        {"rows_apart": True},
        {"make_inputs": lambda w, generator: tuple(3 + x for x in truth.make_inputs(w, generator))},
    ):
        planted = (lab, dataclasses.replace(truth, **changed), problem)
        monkeypatch.setitem(globals(), "truth_and_problem", lambda *_, planted=planted: planted)
        with pytest.raises(AssertionError):
            test_a_truth_in_numpy_is_that_of_the_problem("first_kernel", "TRUTH")


# What a function of x and y does with them, once for tensors and once for arrays, and how it is refused.
FAULTS = {
    "wrong": lambda x, y: x - y,
    "one element": lambda x, y: put(x + y, 7, 1000.0),
    "all NaN": lambda x, y: x * float("nan"),
    "not written": lambda x, y: put(x + y, slice(3, 9), float("nan")),
    "shape": lambda x, y: (x + y)[:-1] * 1,
    "nothing": lambda x, y: None,
    "two": lambda x, y: (x, y),
    "shares": lambda x, y: x,
    "modified": lambda x, y: (put(x, 2, -3.0), x + y)[1],
    "a view": lambda x, y: of_two_columns(x + y)[:, 0],
    "NaN lost": lambda x, y: without_nan(x + y),
    "infinity lost": lambda x, y: clipped(x + y),
}  # fmt: skip


def of_two_columns(z):
    return z.reshape(-1, 1).repeat(1, 2) if hasattr(z, "numel") else z.reshape(-1, 1).repeat(2, 1)


def put(array, place, value):
    array[place] = value
    return array


def without_nan(z):
    z[z != z] = 0.0
    return z


def clipped(z):
    z[abs(z) > 1e38] = 1e38
    return z


@pytest.mark.parametrize("fault", FAULTS)
def test_an_array_is_refused_in_the_words_for_a_tensor(fault):
    import numpy as np
    import torch

    from course_kernels.measure.check import WrongResult, checked_error
    from course_kernels.measure.competitor import Competitor
    from course_kernels.problem import HARD, Workload
    from course_kernels.vector_add.problem import PROBLEM
    from course_labs.check import WrongArray, check

    _, truth, _ = truth_and_problem("first_kernel", "TRUTH")
    w = Workload.of("float32", N=1000)
    planted = {"NaN lost": HARD[2:3], "infinity lost": HARD[3:4]}.get(fault, HARD)
    numbers = [np.random.default_rng(5).standard_normal(1000, dtype="float32") for _ in range(2)]
    hard = {"hard": lambda w: ({0: planted},)}
    ours = dataclasses.replace(truth, make_inputs=lambda *_: tuple(x.copy() for x in numbers), **hard)
    problem = dataclasses.replace(
        PROBLEM, make_inputs=lambda *_: tuple(torch.from_numpy(x.copy()) for x in numbers), **hard
    )
    with pytest.raises(WrongArray) as array:
        check(ours, w, FAULTS[fault])
    with pytest.raises(WrongResult) as tensor:
        checked_error(Competitor("mine", problem, FAULTS[fault]), w, device="cpu")
    told = [str(array.value), tensor.value.why.replace("tensor(s)", "array(s)").replace("Tensor", "ndarray")]
    if "lost" in fault:  # each plants it at a place of its own
        told = [re.sub(r"output\[\d+\]: expected \S+, got [^\s,]+", "…", line) for line in told]
    assert told[0] == told[1]
    assert fault not in ("NaN lost", "infinity lost") or told[0].startswith(f"{fault}: 1 of 1000 elements")


def test_a_right_array_is_let_through_and_its_habits_are_not():
    import numpy as np

    from course_kernels.problem import Workload
    from course_labs.check import WrongArray, check

    _, truth, _ = truth_and_problem("first_kernel", "TRUTH")
    w, kept = Workload.of("float32", N=100), np.empty(100, np.float32)
    seen = {}

    def remembers(x, y):
        return seen.setdefault("answer", x + y).copy()

    assert check(truth, w, lambda x, y: x + y) <= truth.max_error(w)
    for function, words in (
        (remembers, "cached result: called again with new values, it gave the old answer"),
        (
            lambda x, y: np.add(x, y, out=kept),
            "same memory twice: the second output lies where the first one",
        ),
        (lambda x, y: (x + y).astype(float), "wrong dtype: output: expected float32, got float64"),
        (
            lambda x, y: np.ma.array(x + y),
            "not a plain array: output is a MaskedArray; return a numpy.ndarray",
        ),
        (lambda x, y: np.float32(1), "wrong result: expected 1 array(s), got (float32)"),
    ):
        with pytest.raises(WrongArray) as refused:
            check(truth, w, function)
        assert str(refused.value).startswith(words)
    endless = dataclasses.replace(truth, reference=lambda x, y: x / 0 * y)
    with pytest.raises(
        ValueError, match=r"^on N100-float32 the reference in NumPy is not finite; mend truth\.py$"
    ):
        check(endless, w, lambda x, y: x + y)


def test_room_in_numpy_that_nobody_writes_shows(tmp_path):
    head = "import numpy as np\n\n\ndef vector_add(x, y):\n"
    actual = graded(
        tmp_path,
        load_lab(make_lab(tmp_path, OTHER_DOORS)),
        like=head + "    return np.empty_like(x)\n",
        empty=head + "    z = np.empty(len(x), x.dtype)\n    z[:3] = x[:3] - (-y[:3])\n    return z\n",
    )
    assert actual["like"].text.splitlines()[0].startswith("refused on N=1 float32: all NaN: output[0]")
    assert (
        actual["empty"]
        .text.splitlines()[0]
        .startswith("refused on N=5 float32: not written: 2 of 5 elements")
    )


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory):
    """A Python of its own that has neither torch nor triton: bare, and the folder that adds NumPy to it."""
    import numpy

    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder / "venv", with_pip=False)
    only = folder / "numpy_only"
    only.mkdir()
    package = Path(numpy.__file__).parent
    (only / "numpy").symlink_to(package)
    if (libraries := package.with_name("numpy.libs")).exists():
        (only / "numpy.libs").symlink_to(libraries)
    return folder / "venv" / "bin" / "python", only


def run_bare(bare_python, *arguments, numpy=False):
    python, only = bare_python
    path = os.pathsep.join([str(ROOT / "src"), *([str(only)] if numpy else [])])
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(
        [python, *arguments],
        env=environment | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


# A lab of several kernels needs Triton for these, whatever its door is called: tests/cpu/test_diagnosis.py.
CHEAP = [
    (name, door)
    for name, lab in LABS.items()
    for door in lab.doors
    if door in ON_THE_CPU and not has_given_kernels(lab)
]


@by_the_lab
@pytest.mark.parametrize(("name", "door"), CHEAP)
def test_a_door_that_needs_no_torch_is_graded_where_there_is_none(bare_python, name, door):
    lab = LABS[name]
    numpy = door == "numpy" or needs_numpy(lab)
    for module in ("torch", "triton", *(() if numpy else ("numpy",))):
        assert (
            f"No module named '{module}'"
            in run_bare(bare_python, "-c", f"import {module}", numpy=numpy).stderr
        )
    last = lab.solution(door) if lab.alone else lab.snapshot(door, len(lab.stages))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run_bare(bare_python, "-m", "course_labs", "grade", name, str(last), "--door", door, numpy=numpy)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)

    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("right: ")
    assert not lab.alone or lines[-1].startswith("alone: right, and the lab is done: ")
    # Seconds of the processor, which no other test takes from it: about a second; importing torch alone takes more.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 20


def test_a_door_whose_packages_are_not_there_says_so(bare_python):
    answer = LABS["wmma"].snapshot("numpy", len(LABS["wmma"].stages))
    done = run_bare(bare_python, "-m", "course_labs", "grade", "wmma", str(answer))
    assert done.returncode == 2
    assert done.stderr == "NumPy is not installed here (No module named 'numpy'): nox -s grade installs it\n"
    done = run_bare(
        bare_python, "-m", "course_labs", "grade", "first_kernel", str(FIRST.snapshot("triton", 4))
    )
    assert done.returncode == 2
    assert done.stderr == "torch is not installed here (No module named 'torch'): nox -s grade installs it\n"


def test_who_stops_the_command_before_a_file_is_written_gets_no_traceback(monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("course_labs.__main__.find_labs", stop)
    assert main(["lab"]) == 130
