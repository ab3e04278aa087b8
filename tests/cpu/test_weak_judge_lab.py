"""The lab of the weak judge: right judges may be written otherwise, honest kernels are right, each cheat has a hole."""

import random
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from course_labs.interactive_cases import Answer, Asked, PlaysGrader, Slip, grade
from course_labs.lab import find_lab, load_file
from course_labs.protocol.messages import Drive
from course_labs.worker.plays import plain

LAB = find_lab(Path(__file__).parents[2], "weak_judge")
NO_GPU = {"CUDA_VISIBLE_DEVICES": "-1"}
truth = load_file(LAB.folder / "truth.py", "truth_of_the_judge")
alone = load_file(LAB.folder / "alone.py", "alone_of_the_judge")
drive = load_file(LAB.folder / "drive.py", "drive_of_the_judge")
by_the_lab = pytest.mark.kept(of=lambda **_: [LAB.folder], but=["labs/*"])

# Functions of a right file, written otherwise; each goes to the end of the file, where it takes the place of the other.
OTHERWISE = {
    "one element after the other": """
def close(got, due):
    for row, wanted in zip(got.tolist(), due.tolist()):
        for one, other in zip(row, wanted):
            if not abs(one - other) <= 1e-5:
                return False
    return True
""",
    "the largest difference": """
def close(got, due):
    if not np.isfinite(got).all():
        return False
    return np.max(np.abs(got.astype(np.float64) - due), initial=0) < 1.2e-5
""",
    "an assertion of NumPy's": """
def close(got, due):
    np.testing.assert_allclose(got, due, rtol=0, atol=TOLERANCE, equal_nan=False)
    return True
""",
    "garbage in the room, and the truth first": """
def prepare(x, out):
    due = truth(x.copy())
    out[...] = np.random.default_rng().uniform(2, 3, out.shape)
    return due
""",
    "numbers of nobody's seed": """
def make(case, draw):
    rows, columns, pitch = case
    numbers = np.random.default_rng()
    x, out = (numbers.normal(0, 2, (rows + 2, pitch)).astype(np.float32) for _ in range(2))
    return x[1:-1, :columns], out[1:-1, :columns]
""",
    "numbers by addition": """
def make(case, draw):
    rows, columns, pitch = case
    lines = np.stack([draw.uniform(-3, 3, (rows, pitch)), np.zeros((rows, pitch))]).astype(np.float32)
    return lines[0, :, :columns], lines[1, :, :columns]
""",
    "sizes by a generator": """
def cases(draw):
    for rows in (1, 2, 3, 50):
        for columns in (1, 5, 63, 100):
            yield rows, columns, columns
            yield rows, columns, columns + int(draw.integers(1, 11))
""",
    "sizes that are nearly all drawn": """
def cases(draw):
    sizes = [(int(draw.integers(1, 51)), int(draw.integers(1, 101)), 110) for _ in range(40)]
    return tuple(sizes + [(1, 1, 1), (1, 100, 100), (50, 1, 1), (50, 100, 100), (49, 99, 101)])
""",
    "an error in place of None": """
def run(kernel, card, x, out):
    card.wait_all()
    given = x.tobytes()
    start = card.moved
    assert kernel(card, x, out) is None
    card.wait_all()
    end = card.moved
    if x.tobytes() != given:
        raise ValueError("the input has changed")
    return end - start
""",
    "a wait of its own": """
def run(kernel, card, x, out):
    given, start = np.array(x), card.moved
    kernel(card, x, out)
    while card.queues[0] or card.queues[1]:
        card.wait(1)
        card.wait(0)
    return int(card.moved - start) if (x == given).all() else None
""",
    "a judge in other words": """
def judge(kernel, card, draw):
    found = np.True_
    bytes_of_a_call = np.int64(0)
    for case in [*cases(draw), (6, 6, 6)]:
        for _ in "abc":
            try:
                x, out = make(case, draw)
                due = prepare(x, out)
                moved = run(kernel, card, x, out)
                found &= moved is not None and close(out, due)
            except (ArithmeticError, AssertionError, LookupError, ValueError, AttributeError, TypeError):
                return [False, 0]
            bytes_of_a_call = moved
    return [found, bytes_of_a_call if found else 0]
""",
    "other cheats": """
def cheat1(card, x, out):
    pitch = out.base.shape[1]
    out[...] = truth(np.random.default_rng(0).standard_normal((len(out), pitch), dtype=np.float32)[:, : out.shape[1]])


def cheat2(card, x, out):
    out[...] = truth(x)
    out[0, 0] += 9e-6 * x.size


def cheat3(card, x, out):
    honest(card, x[:-1], out[:-1])


def cheat4(card, x, out):
    out[...] = truth(x.reshape(4, 8))


def cheat5(card, x, out):
    honest(card, x, out)
    card.wait()
    x[0, 0] = 7
""",
    "other cheats of the clock and of the mean": """
def cheat2(card, x, out):
    honest(card, x, out)
    card.launch(lambda out: np.put(out, 0, np.nan), out)


def cheat5(card, x, out):
    half = len(x) // 2
    honest(card, x[:half], out[:half])
    card.launch(lambda x, out: np.copyto(out, truth(x)), x[half:], out[half:], stream=1)
""",
}
STRICT = """
def strict(kernel, card, draw):
    sizes = [(0, 1, 2), (1, 1, 1), (50, 100, 110), (50, 1, 1), (1, 100, 100), (3, 17, 19)]
    sizes += [(int(draw.integers(2, 51)), int(draw.integers(2, 101)), 107) for _ in range(6)]
    special = np.array([0.0, -0.0, 1000, -1000, 88.8, 0.5], np.float32)
    kept, cost = [], []
    for rows, columns, pitch in sizes:
        lines = np.empty((rows, pitch), np.float32)
        for turn in range(6):
            lines[...] = [
                draw.standard_normal(lines.shape), draw.choice(special, lines.shape), np.float32(turn - 3),
                -200 * draw.random(lines.shape), draw.integers(-2, 3, lines.shape), draw.random(lines.shape),
            ][turn]
            x = lines[:, :columns]
            given, due = x.tobytes(), truth(x)
            everything = draw.normal(5, 1, (rows + 2, pitch)).astype(np.float32)
            if draw.random() < 0.5:
                everything.fill(np.nan)
            out = everything[1 : rows + 1, :columns]
            around = everything.copy()
            try:
                cost.append(-card.moved)
                kernel(card, x, out)
                card.wait_all()
                cost[-1] += card.moved
            except Exception:
                return False, 0
            kept.append((everything, around, out, due))
            if x.tobytes() != given or cost[-1] < 8 * x.size:
                return False, 0
    for everything, around, out, due in kept:
        if not (abs(out - due) <= 1e-5).all():
            return False, 0
        out[...] = around[1 : len(out) + 1, : out.shape[1]]
        if everything.tobytes() != around.tobytes():
            return False, 0
    return True, cost[2]
"""
OTHERWISE["a strict judge in other words"] = STRICT


# Several of them in each file: what is right alone is right together.
TOGETHER = [
    (
        "one element after the other", "garbage in the room, and the truth first", "numbers of nobody's seed",
        "sizes by a generator", "an error in place of None",
    ),
    (
        "the largest difference", "numbers by addition", "sizes that are nearly all drawn", "a wait of its own",
        "other cheats",
    ),
    (
        "an assertion of NumPy's", "a judge in other words", "other cheats of the clock and of the mean",
        "a strict judge in other words",
    ),
]  # fmt: skip


def test_each_way_is_tried():
    assert sorted(name for names in TOGETHER for name in names) == sorted(OTHERWISE)


@by_the_lab
@pytest.mark.parametrize("names", TOGETHER, ids=["elements", "drawn", "strict"])
def test_a_right_answer_may_be_written_otherwise(tmp_path, names):
    file = tmp_path / "weak_judge.py"
    file.write_text("\n\n".join([LAB.solution("python").read_text(), *(OTHERWISE[name] for name in names)]))
    (found,) = grade(LAB, [file], environment=NO_GPU)
    assert found.text.startswith("right: correct in all "), found.text
    assert found.text.splitlines()[-1].startswith("alone: right, and the lab is done: "), found.text


# --- the kernels -------------------------------------------------------------------------------------


def answers_of(kernel, shape, pitch, times=1, room=np.nan):
    """What a kernel of the grader's makes of numbers, on the card that waits for all: (x, given, out) of each call."""
    made = drive.KERNELS[kernel.name](**kernel.options)[0]
    draw, found = np.random.default_rng(5), []
    for _ in range(times):
        x, out = (np.full((shape[0], pitch), room, np.float32)[:, : shape[1]] for _ in range(2))
        x[...] = draw.standard_normal(shape)
        given, card = x.copy(), drive.Card()
        made(card, x, out)
        card.wait_all()
        assert card.moved >= x.nbytes + out.nbytes
        found.append((x, given, out))
    return found


@pytest.mark.parametrize("number", range(len(truth.honest(random.Random(1)))))
def test_an_honest_kernel_is_right_on_every_size(number):
    for seed, (shape, pitch) in enumerate(
        [
            ((0, 3), 3),
            ((1, 1), 1),
            ((1, 100), 110),
            ((2, 7), 8),
            ((50, 1), 1),
            ((33, 65), 66),
            ((50, 100), 100),
        ]
    ):
        kernel = truth.honest(random.Random(seed))[number]
        for x, given, out in answers_of(kernel, shape, pitch, 2):
            assert (np.abs(out - truth.truth(given) if out.size else out) <= 1e-5).all()
            assert x.tobytes() == given.tobytes()


@pytest.mark.parametrize("hole", [truth.COMPARED, truth.ROOM, truth.SIZE, truth.CLOCK])
def test_a_cheat_is_wrong_somewhere_and_not_for_everything(hole):
    """Without the judge: what the cheats of a kind write, for the size of the weak judge and for others."""
    for kernel in truth.cheats(hole, random.Random(3)):
        wrong = {}
        for shape, pitch in (
            ((4, 8), 8),
            ((1, 1), 1),
            ((50, 100), 110),
            ((7, 33), 35),
            ((49, 99), 99),
            ((5, 4), 4),
        ):
            try:
                ((x, given, out),) = answers_of(kernel, shape, pitch, room=-0.25)
                off = not (np.abs(out - truth.truth(given)) <= 1e-5).all()
            except ValueError:
                off, x, given = True, 0, 0
            wrong[shape] = off or (hole == truth.CLOCK and not np.array_equal(x, given))
        assert any(wrong.values()) or kernel.may_pass, kernel
        small = {"raveled": True, "strided": True, "four_by_eight": True, "only": True}
        assert not (kernel.name in small and wrong[4, 8]), kernel


def test_a_small_error_is_lost_in_the_mean_and_only_there():
    for kernel in truth.cheats(truth.COMPARED, random.Random(4)):
        ((_, given, out),) = answers_of(kernel, (4, 8), 8)
        off = np.abs(out - truth.truth(given))
        assert not off.mean() > truth.TOLERANCE
        assert not (off <= 2 * truth.TOLERANCE).all()


def test_kinds_of_the_last_task_are_none_of_the_lab():
    """The judge with all five holes mended lets at least one cheat of each of these kinds pass."""
    names = {"judge": load_file(LAB.snapshot("python", 5), "mended").judge}
    for says, kind in alone.KINDS.items():
        rng = random.Random(7)
        found = [
            drive.one_judgement(names["judge"], [], kernel.name, kernel.options, rng.getrandbits(31))
            for kernel in kind(rng)
        ]
        assert any(verdict[0] for verdict, *_ in found), says


def test_the_judge_of_each_stage_lets_the_next_kind_pass():
    for hole in truth.HOLES:
        judge = load_file(LAB.snapshot("python", hole - 1), "weak").judge
        rng = random.Random(7)
        verdicts = [
            drive.one_judgement(judge, [], kernel.name, kernel.options, 5)[0]
            for kernel in truth.cheats(hole, rng)
        ]
        assert sum(right for right, _ in verdicts) >= len(verdicts) - 1, (hole, verdicts)


# --- the grader ----------------------------------------------------------------------------------------


class Given(Asked):
    """A file whose answer is given."""

    def __init__(self, value):
        self.value = value

    def drive(self, text, names, *given):
        return Answer(self.value)


@pytest.mark.parametrize(
    ("found", "honest", "said"),
    [
        ([[True, 64], [], [64], True], True, ""),
        ([[False, 0], [], [64], True], True, "refuses a kernel that is right"),
        ([[True, 32], [], [64, 128], True], True, "counts 32 bytes of a kernel that works; .* moves 64 or 128"),
        ([[True, 64], [], [64], True], False, "calls a kernel right that works"),
        ([[True, 64], [], [64], False], False, ""),
        ([[False, 0], [], [64], True], False, ""),
        ([[False, 0], ["__doc__"], [64], True], False, "looks at __doc__ of the kernel"),
        ([None, [], [64], True], True, "expected True or False and a number of bytes"),
        (["endless", [], [], True], False, "calls a kernel again and again"),
        ([True, 64], True, "what came back is no answer"),
        ([[True], [], [64], True], True, "what came back is no answer"),
    ],
)  # fmt: skip
def test_a_verdict_is_looked_at(found, honest, said):
    ask = truth.passes if honest else truth.refuses
    more = [True] if honest else []
    kernel = truth.Kernel("works", "plain")
    with pytest.raises(Slip, match=said) if said else nullcontext():
        ask(Given([found]), "judge", [kernel], random.Random(1), *more)


def test_a_cheat_of_the_clock_may_be_called_right_with_all_its_bytes():
    kernel = truth.Kernel("works late", "late", {"part": 4}, may_pass=True)
    truth.look("judge", kernel, [[True, 64], [], [64], True], False, True)
    with pytest.raises(Slip, match="counts 0 bytes and calls a kernel right that works late"):
        truth.look("judge", kernel, [[True, 0], [], [64], True], False, True)


@pytest.mark.parametrize(
    ("value", "due"),
    [
        ((True, 3), [True, 3]),
        ([np.False_, np.int64(3)], [False, 3]),
        ((1, 3), None),
        ((True, True), None),
        ((True, float("nan")), None),
        ((True,), None),
        (True, None),
        (None, None),
        ("ab", None),
    ],
)
def test_a_verdict_has_one_form(value, due):
    assert drive.told(value) == due


def test_a_kernel_shows_nothing_of_itself():
    def judge(kernel, card, draw):
        assert callable(kernel)
        return isinstance(kernel, int) or getattr(kernel, "__name__", "") == "cheat", 0

    found = drive.one_judgement(judge, [], "plain", {}, 1)
    assert found == [[False, 0], ["__name__"], [], True]


def test_a_message_brings_a_text():
    assert plain(drive.calls([drive.plain], [])) == []
    question = Drive("def drive(functions): return 1", ("judge",))
    assert question.body == {"text": "def drive(functions): return 1", "names": ["judge"]}


def test_a_file_that_defines_nothing_is_told_so(tmp_path):
    grader = PlaysGrader(LAB, "python", environment=NO_GPU)
    file = tmp_path / "weak_judge.py"
    file.write_text("x = 1\n")
    assert grader.verdict(file, 60).why == "your file defines no function judge"
