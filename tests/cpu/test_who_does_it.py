"""W3's table of who does which job: its words are in the kernels, and its instructions in the machine code."""

import re

import pytest
from compiled import seen
from who_does_it import (
    GEMM,
    JOBS,
    PAGE,
    RUNGS,
    SAYS,
    SHOWS,
    card_text,
    faults_of_counts,
    other_text,
    overview,
    proofs,
)

TEXT = PAGE.read_text(encoding="utf-8")
CELLS = [(job, rung) for job in JOBS for rung in RUNGS]


def faults_of(job, rung, claims):
    """What a cell says that the files do not."""
    card, other = card_text(rung), other_text(rung)
    found = []
    for who, words, instructions in claims:
        if not words and not instructions:
            found.append(f"{who} has no proof")
        place = {"you": card, "part": card, "set": other}.get(who, "")
        found += [f"{who}: {word!r} is not there" for word in words if word not in place]
        found += [f"set: {word!r} is in the kernel" for word in words if who == "set" and word in card]
        if {"set", "you"} & {claim.who for claim in claims} or who not in ("tool", "none"):
            continue
        if said := re.search(SAYS[job], card):
            found.append(f"{who}, and the kernel says {said[0]!r}")
    if extra := {name for claim in claims for name in claim.instructions} - SHOWS[job]:
        found.append(f"{', '.join(extra)} proves nothing here")
    return found


@pytest.mark.parametrize(("job", "rung"), CELLS)
def test_a_cell_rests_on_words_of_the_kernel(job, rung):
    assert faults_of(job, rung, proofs(TEXT)[job][rung]) == []


def test_the_large_table_says_what_the_proofs_say():
    said = {job: {rung: claims[0].who for rung, claims in row.items()} for job, row in proofs(TEXT).items()}
    assert overview(TEXT) == said
    assert {who for row in said.values() for who in row.values()} == {
        *("you", "set", "tool", "part", "engine", "none"),
    }


def test_a_part_is_of_a_catalogue():
    for job, row in overview(TEXT).items():
        assert (row["cutlass"] == "part") == (job not in ("tails", "coalescing"))
        assert "part" not in [who for rung, who in row.items() if rung != "cutlass"]


def test_what_a_kernel_says_that_does_a_job_is_found_in_those_that_do():
    for job, words in SAYS.items():
        doing = [rung for rung, claims in proofs(TEXT)[job].items() if claims[0].who == "you"]
        assert doing
        assert [rung for rung in doing if not re.search(words, card_text(rung))] == []


@pytest.mark.parametrize(
    ("old", "new", "job", "rung", "says"),
    [
        ("you: `T.alloc_shared`", "tool: `T.alloc_shared`", "shared memory", "tilelang", "is not there"),
        ("you: `T.alloc_shared`", "you: `T.alloc_global`", "shared memory", "tilelang", "is not there"),
        ("you: `T.alloc_shared`", "tool: {{ code.tilelang.UTMALDG:.0f}} `UTMALDG`", "shared memory", "tilelang",
         "the kernel says 'shared'"),
        ('set: `"num_stages"`', "set: `hl.tile`", "pipeline", "helion", "is in the kernel"),
        ("you: `warp_specialize`", "you", "roles", "gluon", "no proof"),
        ("none: {{ code.triton.USETMAXREG:.0f}} `USETMAXREG`", "none: {{ code.triton.SYNCS:.0f}} `SYNCS`", "roles",
         "triton", "SYNCS proves nothing"),
    ],
)  # fmt: skip
def test_a_wrong_cell_is_seen(old, new, job, rung, says):
    assert old in TEXT
    found = faults_of(job, rung, proofs(TEXT.replace(old, new))[job][rung])
    assert any(says in fault for fault in found), found


def test_a_count_of_another_rung_is_seen():
    old = "{{ code.helion.STSM:.0f}} `STSM`"
    for new in ("{{ code.triton.STSM:.0f}} `STSM`", "{{ code.helion.STSM:.0f}} `UTMASTG`"):
        with pytest.raises(AssertionError, match="tool"):
            proofs(TEXT.replace(old, new))


def looked_at(code):
    """How often an instruction is in the machine code, by its name alone."""
    names = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9]*)", code.text)
    wanted = ("HGMMA", "UTMALDG", "LDG", "LDGSTS", "SYNCS", "USETMAXREG", "STSM", "UTMASTG", "STG")
    return {name: names.count(name) for name in wanted}


def test_the_machine_code_in_cuda_is_as_the_page_has_it():
    counts = seen(looked_at, GEMM / "k14_tuned.cu", "sm_90a")
    assert faults_of_counts(TEXT, "cuda", counts) == []
    assert faults_of_counts(TEXT, "cuda", counts | {"USETMAXREG": 0}) == []  # this cell rests on a word
    assert faults_of_counts(TEXT, "cuda", counts | {"LDG": 2})
    assert faults_of_counts(TEXT, "cuda", counts | {"UTMALDG": 0})
