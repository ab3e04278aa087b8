"""Every page of the course on cards that nobody has: made up here from the records, by hand, and measured by nothing.

Three things happen to somebody who measures the course elsewhere: a library that we race against is not installed, a
claim is false there, and none of the choices of a prediction is right. None of them may stop a build.
"""

import ast
import dataclasses
import re

import numpy as np
import pytest

from course_site.pages.blocks import parse as blocks_of
from course_site.pages.blocks import walk_blocks
from course_site.pages.choices import taken_apart
from course_site.site.render.data_blocks import define_all
from course_site.site.render.page import BLOCKS, _render
from course_site.site.render.writer import Writer
from course_site.values import claims
from course_site.values.values import parse, walk_leaves

INVENTED = "Invented for a test 9000"


@pytest.fixture(scope="module")
def course(our_course):
    return our_course[0]


@pytest.fixture
def changed(course):
    """The course, to be changed by one test: its pages, scopes and problems are of its own."""
    return dataclasses.replace(course, problems=[], undecided=[], scopes=dict(course.scopes), _references={})


def blocks_in(page):
    """The blocks of a page's Markdown cells, also those inside others."""
    for cell in page.cells:
        if cell.kind == "markdown":
            yield from walk_blocks(blocks_of(cell.source))


def says(block, part):
    """Whether a part of a block, such as its *otherwise*, has a word or a block in it."""
    return any(not isinstance(text, str) or text.strip() for text in block.parts.get(part, []))


def measured(course):
    return [page for page in course.pages if page.measures and course.has_numbers(page.id)]


def claiming(course):
    """Pages with a claim on recorded numbers, their own or those of other pages."""
    found = [page for page in course.pages if any(block.kind == "claim" for block in blocks_in(page))]
    return [page for page in found if not page.measures or course.has_numbers(page.id)]


def rendered(course, pages, names=lambda page, names: names, **of_scope):
    """The Markdown of pages with other names recorded; what is wrong is in the course's problems."""
    writers = []
    for page in pages:
        scope = course.scope(page)
        course.scopes[page.id] = dataclasses.replace(scope, names=names(page, scope.names), **of_scope)
        writers.append(Writer(course, page, BLOCKS))
    for writer in writers:
        define_all(writer)
    return {writer.page.id: _render(writer) for writer in writers}


def quoting(course, page_id):
    """Pages that show a value of this one, and itself."""
    shows = re.compile(rf"(?<![\w.]){page_id}\.[a-z_]\w*")
    return [p for p in measured(course) if p.id == page_id or any(shows.search(c.source) for c in p.cells)]


# --- a library that is not installed -------------------------------------------------------------------

# Libraries that README's road does not bring: what their kernels are called, and what a page records of each; with a
# space between them where it records that at two places.
PEERS = {
    "FlashInfer": (
        re.compile("flashinfer"),
        {
            "w1": "guests.raced",
            "attention": "peers.fa3",
            "w4": "peers.flashinfer",
            "w6": "mla_peers.flashinfer guest.flashinfer",
        },
    ),
    "FlashAttention-4": (re.compile("flash_attention_4|fa4"), {"attention": "peers.fa4"}),
}


def without(names, peer, fact):
    """What a page would have recorded without a peer: nothing under its names, and 0 for whether it is there."""
    theirs, others = set(), set()
    for path, leaf in walk_leaves(names):
        if "kernel" in leaf:
            (theirs if is_of(peer, leaf) else others).update(path.split("."))

    def pruned(found):
        return {
            name: pruned(inside) if isinstance(inside, dict) and "kind" not in inside else inside
            for name, inside in found.items()
            if name not in theirs - others
        }

    left = pruned(names)
    for one in fact.split():
        group, _, name = one.partition(".")
        left[group] = names[group] | {name: names[group][name] | {"value": 0}}
    return left


def is_of(peer, leaf):
    return bool(PEERS[peer][0].search(str(leaf.get("kernel", ""))))


WITHOUT = [(peer, page, fact) for peer, (_, facts) in PEERS.items() for page, fact in facts.items()]


def test_every_peer_that_a_page_asks_for_is_known(course):
    """A page that comes with a further peer is found here, and is then built without it below."""
    asked = {
        (page.id, name)
        for page in course.pages
        for block in blocks_in(page)
        if block.kind == "when"
        for name in parse(block.argument).names
        if name.partition(".")[0] in ("peers", "guests", "mla_peers", "guest")
    }
    assert asked == {(page, one) for _, page, fact in WITHOUT for one in fact.split()}
    raced = {
        (peer, page.id)
        for peer in PEERS
        for page in measured(course)
        for _, leaf in walk_leaves(course.records[page.id].names)
        if is_of(peer, leaf)
    }
    assert raced <= {(peer, page) for peer, page, _ in WITHOUT}


@pytest.mark.parametrize(("peer", "page_id", "fact"), WITHOUT)
@pytest.mark.parametrize("beside", [False, True], ids=["reference", "beside it"])
def test_a_page_builds_without_a_peer(changed, peer, page_id, fact, beside):
    gone = without(changed.records[page_id].names, peer, fact)
    if beside:
        changed.reference = "none of ours"
    changed.rebuilt = True
    known = {name: course_names.names for name, course_names in changed.scopes.items()}

    pages = quoting(changed, page_id)
    texts = rendered(changed, pages, lambda page, _: gone if page.id == page_id else known[page.id])

    assert page_id in texts
    assert [str(problem) for problem in changed.problems] == []


def test_a_definition_over_a_peer_outside_its_when_is_seen(changed):
    page = changed.page("w4")
    cells = tuple(
        dataclasses.replace(
            cell, source=cell.source + "\n\n/// define | planted = served.b1.tensor_cores.us\n///\n"
        )
        if cell.kind == "markdown" and "over_flashinfer.b64" in cell.source
        else cell
        for cell in page.cells
    )
    changed.rebuilt = True
    gone = without(changed.records["w4"].names, "FlashInfer", "peers.flashinfer")

    rendered(changed, [dataclasses.replace(page, cells=cells)], lambda *_: gone)

    assert any("served.b1.tensor_cores" in str(problem) for problem in changed.problems)


# --- a card that turns every claim round, and on which no choice is right --------------------------------


def test_every_claim_says_what_is_so_otherwise(course):
    asked = [
        (page.path, block) for page in course.pages for block in blocks_in(page) if block.kind == "claim"
    ]
    assert len(asked) > 200
    assert [f"{path}: {block.argument}" for path, block in asked if not says(block, "otherwise")] == []


def false_everywhere(condition, scope, judge=claims.judge):
    return dataclasses.replace(judge(condition, scope), holds=False, vacuous=False, support=0.0)


@pytest.fixture(scope="module")
def turned(course):
    """Every page with numbers or a claim, on an invented card on which no condition is true; its problems."""
    changed = dataclasses.replace(
        course, problems=[], undecided=[], scopes=dict(course.scopes), _references={}
    )
    changed.reference = "none of ours"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims, "judge", false_everywhere)
        pages = {page.id: page for page in [*measured(changed), *claiming(changed)]}.values()
        texts = rendered(changed, pages, gpu=INVENTED)
    return texts, [str(problem) for problem in changed.problems]


def test_a_card_that_turns_every_claim_round_and_fits_no_choice_stops_nothing(turned):
    assert turned[1] == []


def test_every_claim_that_is_false_there_says_what_is_so(course, turned):
    count = 0
    for page in claiming(course):
        asked = [block for block in blocks_in(page) if block.kind == "claim"]
        text = turned[0][page.id].inlined()
        assert text.count('class="claim otherwise"') == len(asked), page.path
        assert 'class="claim"' not in text
        count += len(asked)
    assert count > 200


def test_a_prediction_that_fits_nobody_marks_no_choice_as_right(course, turned):
    count = 0
    for page in measured(course):
        asked = [taken_apart(block)[1] for block in blocks_in(page) if block.kind == "predict"]
        typed = sum(any(choice.is_right for choice in choices) for choices in asked)
        assert turned[0][page.id].inlined().count(" data-right") == typed, page.path
        count += sum(any(choice.condition for choice in choices) for choices in asked)
    assert count > 80


# --- choices that leave nobody out -----------------------------------------------------------------------

# What is so on every card, because it is worked out from shapes alone: without it some choices would overlap.
ALWAYS = {
    "hand.register_column.turns": "hand.register_column.turns <= hand.shared_tiles.turns",
    "intensity.square.n512": "intensity.square.n512 < intensity.square.n1024",
    # The same operations, and flash carries fewer bytes for them.
    "big.flash.gflop": "big.flash.gflop / counted.flash.gb > big.materialised.gflop / counted.materialised.gb",
}


def what_is_wrong_with(conditions):
    """How choices fail: positive numbers for which none of them is right, or more than one; empty if there are none."""
    expressions = [parse(condition) for condition in conditions]
    names = sorted({name for expression in expressions for name in expression.names})
    bounds = sorted(
        {
            abs(float(node.value))
            for expression in expressions
            for node in ast.walk(expression.tree)
            if isinstance(node, ast.Constant) and node.value
        }
    )
    found = points(len(names), bounds)
    columns = dict(zip(names, found.T, strict=True))

    def true(expression):
        truth = expression.compute([columns[name] for name in expression.names])
        return np.broadcast_to(np.asarray(truth, dtype=bool), len(found))

    possible = np.all([np.ones(len(found)), *(true(parse(ALWAYS[n])) for n in names if n in ALWAYS)], axis=0)
    right = np.sum([true(expression) for expression in expressions], axis=0)
    for said, wrong in (("none is right", right == 0), ("several are right", right > 1)):
        if (wrong & possible).any():
            row = found[np.flatnonzero(wrong & possible)[0]]
            where = ", ".join(f"{name} = {value:.4g}" for name, value in zip(names, row, strict=True))
            return f"{said} where {where}"
    return ""


def points(count, bounds):
    """Positive numbers, row by row: near the bounds and far from them, and exactly on each."""
    draw = np.random.default_rng(7)
    rows = [
        np.exp(draw.normal(0, spread, (3000, count))) * draw.choice(bounds or [1.0], (3000, columns))
        for spread in (0.05, 0.3, 1.5, 6)
        for columns in (1, count)
    ]
    on_them = np.ones((len(bounds) * count, count))
    for number, bound in enumerate(bounds):
        on_them[number * count : (number + 1) * count][np.diag_indices(count)] = bound
    return np.concatenate([*rows, on_them])


def test_exactly_one_choice_is_right_whatever_a_card_measures(course):
    asked = [
        (page, block.argument, [choice.condition for choice in taken_apart(block)[1]])
        for page in course.pages
        for block in blocks_in(page)
        if block.kind == "predict" and any(choice.condition for choice in taken_apart(block)[1])
    ]
    assert len(asked) > 80
    wrong = [
        f"{page.path}: {question}: {why}"
        for page, question, conditions in asked
        if (why := what_is_wrong_with([one for one in conditions if one]))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("conditions", "said"),
    [
        (["a < 1", "a >= 1"], ""),
        (["a / b < 0.8", "0.8 <= a / b < 1.2", "a / b >= 1.2"], ""),
        (["a > max(b, c)", "b > max(a, c)", "c > max(a, b)"], ""),
        (["a < 1", "a > 1"], "none is right where a = 1"),
        (["a < 206", "a >= 295"], "none is right"),
        (["a < 1", "a >= 0.99"], "several are right"),
        (["a < b and c < b", "a >= b and c >= b"], "none is right"),
        (["hand.register_column.turns > hand.shared_tiles.turns", "b > 0"], ""),
    ],
)  # fmt: skip
def test_a_gap_and_an_overlap_are_seen(conditions, said):
    assert what_is_wrong_with(conditions).startswith(said)
    assert bool(said) == bool(what_is_wrong_with(conditions))
