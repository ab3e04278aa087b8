"""The shape of blocks: what is read, and what is refused with its name."""

import pytest

from course_site.pages.blocks import Block, DirectiveError, parse


def test_prose_and_blocks_in_order():
    nodes = parse("before\n/// claim | a > b\nbody {{ a }}\n/// otherwise\nother\n///\nafter")
    assert nodes[0] == "before"
    assert nodes[1] == Block("claim", "a > b", ["body {{ a }}"], {"otherwise": ["other"]})
    assert nodes[2] == "after"


def test_blocks_nest_in_prose_parts():
    (block,) = parse("/// predict | How fast?\nguess\n/// reveal\n/// claim | a > 1\nyes\n///\n///")
    (inner,) = block.parts["reveal"]
    assert (inner.kind, inner.argument) == ("claim", "a > 1")


def test_fenced_code_is_left_alone():
    text = "```text\n/// claim | a\n```"
    assert parse(text) == [text]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/// clam | a > b\nx\n///", "unknown block `/// clam`"),
        ("/// claim\nx\n///", "`/// claim` has no head"),
        ("/// claim | a > b\nx", "`/// claim | a > b` is never closed"),
        ("x\n///", "closes a block that was never opened"),
        ("/// reveal\nx\n///", "is outside the block"),
        ("/// predict | q\nx\n///", "lacks its `/// reveal`"),
        ("/// chart | lines\n/// claim | a\n///\n///", "which holds settings only"),
        ("/// ledger | x\n///", "takes nothing after its name"),
        ("/// claim | a\nx\n/// otherwise\ny\n/// otherwise\nz\n///", "occurs twice"),
    ],
)
def test_a_wrong_block_is_named(text, said):
    with pytest.raises(DirectiveError) as error:
        parse(text)
    assert said in str(error.value)
