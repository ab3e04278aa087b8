"""Messages: each comes out as it went in, and one of another form is refused in one line."""

import dataclasses
import json
import math

import pytest

from course_judge.protocol import messages
from course_judge.protocol.layout import Place
from course_judge.protocol.limits import Limits
from course_judge.protocol.messages import (
    DEEPEST,
    Again,
    Answer,
    Batch,
    Block,
    Call,
    Confined,
    End,
    Failed,
    Go,
    Hold,
    Import,
    Imported,
    Load,
    Malformed,
    Memory,
    Output,
    Outputs,
    Question,
    Sampled,
    Start,
    Started,
    Sweep,
    Swept,
    Time,
    plain,
    question_in,
    read,
)
from course_labs.protocol import messages as of_labs
from course_labs.protocol.messages import (
    ArrayCall,
    ArrayOutputs,
    Case,
    Compile,
    Compiled,
    Do,
    Drive,
    LabTask,
    Launch,
    Launched,
    Launches,
    Make,
    NotRun,
    PlayCall,
    Played,
    Reason,
    Returned,
)

PLACE = Place(4096, 6, 4, "float32", (2, 3), (3, 1))
OUTPUT = Output("Tensor", True, "float32", (2, 3), (3, 1), "cpu", 64, 0, True)
LAUNCH = Launch("add", {"x": "*fp32"}, {"N": 3, "flag": True, "none": None}, {"num_warps": 4})
EXAMPLES = [
    Answer(),
    Import(("torch", "numpy")),
    Imported("torch", "No module named 'torch'"),
    Start(
        "/a/file.py", "add", True, "a.module", "/tmp/x", {"HOME": "/tmp"}, Limits(seconds=3), {"gpu": False}
    ),
    Started(17),
    Sweep(17),
    Swept(-9, 2),
    Swept(),
    Confined(("the network",)),
    Load(),
    End(),
    Go(),
    Memory(2**20, "cuda", "ab" * 64),
    Call((PLACE,), {"causal": True}, 128, poisoned=True, keep=True, number=3),
    Again(3, 128, let_go=True),
    Hold((PLACE,), (PLACE,), (PLACE,), {}, 128),
    Batch(((PLACE, PLACE), (PLACE,)), {"scale": 0.5}, 128, 64),
    Time(0.3, 5),
    Block(Memory(5), (PLACE,), {}, 64),
    Sampled("block"),
    Sampled(samples_us=(1.5, 2.0), blocks=(0, 1)),
    Outputs((OUTPUT, Output("NoneType"))),
    Failed("wrong", "why", "next"),
    LabTask("/a/lab.toml", False, "numpy", False, True),
    ArrayCall((PLACE,), {}, 64, "every", keep=True, weigh=True),
    ArrayOutputs((OUTPUT,), 100, 3, True),
    NotRun(),
    Reason("no GPU"),
    Launches(),
    Launched((LAUNCH,)),
    Compile((LAUNCH,)),
    Compiled("line 3: no"),
    Case("peak", {"width": 3.5, "name": "x"}),
    Returned(3),
    Returned(math.inf),
    Returned(strange="[1]"),
    PlayCall("append", (1, [2, 3]), 1, (4, 5)),
    Drive("def drive(functions, n): return n", ("judge", "cheat1"), (4,)),
    Make("Pages", (16,)),
    Do("take", (1,), "KeyError"),
    Played([1, [2, "x"]], "", "", (1, None), 2),
]


def kinds_of(module):
    return {
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind.__module__ == module.__name__
    }


def test_every_message_has_an_example():
    within = {Question, Output, Launch}  # inside of others
    assert {type(one) for one in EXAMPLES} == (kinds_of(messages) | kinds_of(of_labs)) - within


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda message: type(message).__name__)
def test_a_message_comes_out_as_it_went_in(message):
    over_the_wire = json.loads(json.dumps(plain(message)))
    assert read(type(message), over_the_wire) == message
    if isinstance(message, Question):
        sent = json.loads(json.dumps({message.key: message.body}))
        assert question_in(sent, (Load, type(message))) == message


def test_no_two_questions_that_one_process_hears_have_the_same_name():
    questions = [
        k for k in kinds_of(messages) | kinds_of(of_labs) if issubclass(k, Question) and k is not Question
    ]
    assert len({kind.key for kind in questions}) == len(questions) > 15


def test_what_has_its_default_is_left_out():
    assert plain(Output("NoneType")) == {"type": "NoneType"}
    assert Load().body is True


DEEP = 0
for _ in range(DEEPEST + 1):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("kind", "data", "said"),
    [
        (Outputs, [], "Outputs: expected a table, got []"),
        (Outputs, {}, "Outputs: no outputs"),
        (Outputs, {"outputs": 5}, "Outputs.outputs: expected a list, got 5"),
        (Outputs, {"outputs": [5]}, "Outputs.outputs: expected a table, got 5"),
        (Outputs, {"outputs": [], "verdict": "right"}, "Outputs: unknown 'verdict'"),
        (Outputs, {"outputs": [{"type": 5}]}, "Output.type: expected a text, got 5"),
        (
            Outputs,
            {"outputs": [{"type": "T", "shape": [1.5]}]},
            "Output.shape: expected a whole number, got 1.5",
        ),
        (Outputs, {"outputs": [{"type": "T", "at": True}]}, "Output.at: expected a whole number, got True"),
        (Outputs, {"outputs": [{"type": "T", "plain": 1}]}, "Output.plain: expected null, got 1"),
        (Failed, {"failed": [], "why": ""}, "Failed.failed: expected a text, got []"),
        (Failed, {"failed": "wrong"}, "Failed: no why"),
        (Sampled, {"samples_us": ["1"]}, "Sampled.samples_us: expected a number, got '1'"),
        (Sampled, {"samples_us": [10**400]}, "Sampled.samples_us: expected a number, got 1"),
        (Confined, {"open": "the network"}, "Confined.open: expected a list, got 'the network'"),
        (Swept, {"status": "0"}, "Swept.status: expected null, got '0'"),
        (Returned, {"value": [1]}, "Returned.value: expected null, got [1]"),
        (Played, {"value": DEEP}, f"Played.value: expected at most {DEEPEST} lists in each other"),
        (Answer, {"outputs": []}, "Answer: unknown 'outputs'"),
    ],
)
def test_a_message_of_another_form_is_refused_in_one_line(kind, data, said):
    with pytest.raises(Malformed) as caught:
        read(kind, data)
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_a_question_that_a_process_does_not_know_is_named():
    with pytest.raises(Malformed, match="unknown question answers"):
        question_in({"answers": True}, (Load, Call))
