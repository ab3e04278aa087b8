"""The field guide: each of forty topics has its page, a lesson's heading, or says that it is to come; what pages say of
other chips is what the records say.
"""

import math
import re
import tomllib
from pathlib import Path

import pytest

from course_chips import all_reduce, cited, kept, on_page, stale
from course_chips.offers import MODELS, OFFERS
from course_chips.sheets import SHEETS
from course_site.pages.page import read_page
from course_site.records.cpu_pages import computed
from course_site.values.units import unit_of

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs/field_guide"
PAGES = sorted(path.stem for path in GUIDE.glob("*.py"))

# --- the map --------------------------------------------------------------------------------------

# The topics, a line of the list that asked for the guide each, and what that line names: products, and words of its
# description. Each has to be spoken of on the topic's own page.
TOPICS = {
    "Ampere, Ada and Hopper": (
        "A100, H100, H200, RTX 4090, NVLink, transformer engine, FP8, "
        "Ampere, Ada, Hopper, training, inference"
    ),
    "TPU": "systolic array, XLA, JAX, topology, pod, compiled anew",
    "Why a GPU at all": "latency, throughput, CPU, SIMT",
    "A GPU in silicon": "multiprocessor, tensor core, roofline, shared memory, HBM, L2",
    "The multiprocessor": "scheduler, warp, register, shared memory, block, occupancy",
    "Accelerators side by side": "TPU, Trainium, LPU, WSE, Gaudi, Apple",
    "Apple's unified memory": "unified memory, MLX, llama.cpp, Neural Engine, CPU, one reader",
    "AWS's own chips": "Trainium, Inferentia, NeuronCore-v2, Neuron SDK, compiler, price",
    "Groq": "language processing unit, SRAM, compiler, timetable",
    "Cerebras": "wafer, communication, linear, training",
    "Intel Gaudi": "TPC, RoCE, SynapseAI, H100, price",
    "FPGAs": "HLS, Vitis AI, microsecond, quantiser, wires, GPU",
    "A rule for choosing an accelerator": (
        "NVIDIA, TPU, Trainium, Gaudi, Groq, ASICs, cost of ownership, ecosystem, team, waits for"
    ),
    "Which GPU for which work": "A10G, L40S, RTX 4090, A100, H100, training, inference",
    "Hardware for inference": "cost per token, batching, edge, speculative decoding, engine",
    "The whole road": "GPU, CUDA, custom silicon, framework, distributed, memory",
    "Your first kernel": "CUDA, Triton, thread, coalesc, divergence, Nsight",
    "The CUDA model": "host, launch, nvcc, cpp_extension",
    "Threads, warps, blocks, grids": "thread, warp, block, grid, two and three dimensions, occupancy",
    "Streams": "stream, copies, event, double buffering, training, hide",
    "Divergence": "warp, fork, shuffle, both sides",
    "Triton": "softmax, tl.dot, layer norm, attention, tile",
    "A fused bias and GELU": "bias, GELU, Triton, CUDA, error, block",
    "Memory spaces, which are not five": "register, shared, local, constant, global, L1, L2, multiply, latency",
    "The memory hierarchy": "register, shared memory, L1, L2, HBM, latency, bandwidth",
    "Coalescing and bank conflicts": "coalesc, bank, pad, transpose",
    "Memory of a model": "KV cache, PagedAttention, HBM, DRAM, quantis",
    "Interconnects in a machine": "PCIe, NVLink, NVSwitch, tensor parallelism, NCCL",
    "Clusters": "InfiniBand, AllReduce, topology, NVLink, interrupt, faulty",
    "The roofline": "intensity, ridge, compute, memory",
    "Occupancy's trap": "occupancy, register, block, places",
    "Vectors, unrolling, ILP": "float4, in flight, unrolling, instruction-level parallelism, schedul",
    "Tiling": "tile, cp.async, convolution, attention, shared memory, HBM, double buffering",
    "Programming tensor cores": "WMMA, mma.sync, tl.dot, CUTLASS, idle, shape",
    "Precision on tensor cores": "BF16, FP16, FP8, TF32, mixed-precision training",
    "Quantised kernels": "W4A16, FP8, INT8, INT4, FP16, BF16",
    "Fusion": "torch.compile, Inductor, Triton, HBM",
    "FlashAttention": "online softmax, FlashAttention-2, FlashAttention-3, HBM, N × N, IO",
    "Kernels in a framework": "Triton, torch.compile, CUTLASS, FlashAttention, XLA, fus",
    "Profiling": "Nsight Compute, torch.profiler, Nsight Systems, stall, roofline",
}
# What else was asked for by name, and the page that speaks of it.
ALSO = {
    "amd.py": "gfx942, gfx950, MFMA",
    "blackwell.py": "B200, sm_100, sm_120",
    "intel.py": "ocloc, sub-group",
    "timelines.py": "Nsight Systems, event",
    "convolution.py": "tile, convolution",
    "short_numbers.py": "mixed-precision training, INT8, loss scaling",
}
# What still has neither a page nor a lesson. These two may only shrink.
AWAITED: set[str] = set()
TO_COME: dict[str, str] = {title: TOPICS[title] for title in AWAITED}
AT_MOST = {"topics": 0, "words": 0}
BESIDE = "### Beside the forty"
ITEM = re.compile(
    r"^- (?:\[\*\*(?P<linked>[^*]+)\*\*\]\((?P<link>[^)]+)\)|\*\*(?P<plain>[^*]+)\*\*)(?P<rest>.*)$"
)


def items(text):
    """The topics of a map: title, the link of the title or "", all links, and the words behind *To come*."""
    found = {}
    for line in text[text.index("## The map") : text.index(BESIDE)].splitlines():
        if match := ITEM.match(line):
            title = match["linked"] or match["plain"]
            assert title not in found, title
            _, _, behind = match["rest"].partition("To come: ")
            words = {word.strip() for word in behind.split(". ")[0].rstrip(".").split(",") if word.strip()}
            links = re.findall(r"\]\(([^)]+)\)", line)
            found[title] = (match["link"] or "", links, words)
    return found


LINK = re.compile(r"\[[^\]]*\]\([^)]*\)|\[\^[\w.-]+\]")
NO_PROSE = re.compile(
    r"^```.*?^```$|^#+ .*?$|^/// (?!predict|exercise).*?$|^\w+: .*?$", re.DOTALL | re.MULTILINE
)
END = re.compile(r"(?<=[.?!;])\s+|\n\s*\n|\n(?=[-|] |\d\. )")


def sentences(path, root=ROOT):
    """What a page says in words, a sentence or a row of a table each: links, headings, code and captions left out."""
    page = read_page(path, root)
    text = "\n\n".join(cell.source for cell in page.cells if cell.kind == "markdown")
    text = LINK.sub("", re.sub(r"\{\{.*?\}\}", "0", NO_PROSE.sub("", text), flags=re.DOTALL))
    said = (" ".join(one.replace("*", "").split()).casefold() for one in END.split(text))
    return [one for one in said if len(re.findall(r"\w+", one)) > 2]


def unsaid(path, words, root=ROOT):
    """Those of some words that no sentence of a page has."""
    said = sentences(path, root)
    return [word for word in words if not any(word.casefold() in one for one in said)]


def source(link):
    return (GUIDE / link.partition("#")[0]).resolve()


def faults(text, pages=PAGES, to_come=TO_COME):
    """What is wrong with a map, a line each."""
    topics = items(text)
    for title in topics.keys() ^ TOPICS.keys():
        yield f"{title}: is in the map or in this list alone"
    own = [Path(link).stem for link, _, _ in topics.values() if link and "/" not in link]
    own += re.findall(r"^- \[\*\*[^*]+\*\*\]\((\w+)\.py\)", text[text.index(BESIDE) :], re.MULTILINE)
    for page in pages:
        if own.count(page) != 1:
            yield f"{page}: is the page of {own.count(page)} topics"
    for title in topics.keys() & TOPICS.keys():
        link, links, words = topics[title]
        awaited = {word.strip() for word in to_come.get(title, "").split(",") if word.strip()}
        if bool(link) == (title in AWAITED):
            yield f"{title}: has a page and is awaited, or neither"
        for missing in (one for one in links if not source(one).is_file()):
            yield f"{title}: there is no {missing}"
        own_page = source(link).read_text().casefold() if link and source(link).is_file() else ""
        wanted = [one.strip() for one in TOPICS[title].split(",")]
        for word in (one for one in wanted if one in awaited):
            if not any(word.casefold() in said.casefold() for said in words):
                yield f"{title}: {word} is awaited, and the map does not say so"
            if word.casefold() in own_page:
                yield f"{title}: {word} is awaited, and its page speaks of it"
        if own_page:
            for word in unsaid(source(link), [one for one in wanted if one not in awaited]):
                yield f"{title}: no sentence of its page speaks of {word}"


MAP = (GUIDE / "index.md").read_text(encoding="utf-8")


def test_every_topic_and_every_product_has_its_page_a_lesson_or_is_said_to_come(capsys):
    assert len(TOPICS) == 40
    assert list(faults(MAP)) == []
    words = sum(len(one.split(",")) for one in TO_COME.values())
    with capsys.disabled():
        print(f"\nfield guide: {len(AWAITED)} of {len(TOPICS)} topics to come, {words} words")
    assert len(AWAITED) <= AT_MOST["topics"]
    assert words <= AT_MOST["words"]


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("[**Groq**](groq.py)", "**Groq**", "Groq: has a page and is awaited, or neither"),
        ("[**Cerebras**](cerebras.py)", "[**Cerebra**](cerebras.py)", "Cerebras: is in the map or in this list alone"),
        ("[**TPU**](tpu.py)", "[**TPU**](gpu.py)", "TPU: there is no gpu.py"),
        ("[**FPGAs**](fpga.py)", "[**FPGAs**](groq.py)", "FPGAs: no sentence of its page speaks of Vitis AI"),
    ],
)  # fmt: skip
def test_a_fault_in_the_map_is_seen(old, new, fault):
    assert old in MAP
    found = list(faults(MAP.replace(old, new)))
    assert fault in [line.partition("#")[0] for line in found]


@pytest.mark.parametrize("name", ALSO)
def test_what_else_was_asked_for_by_name_has_its_page(name):
    assert unsaid(GUIDE / name, [word.strip() for word in ALSO[name].split(",")]) == []


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("fpga.py", "**Vitis AI** is AMD's other way", "[Vitis AI](apple.py) is AMD's other way"),
        ("whole_road.md", "All this is the layer below the framework", "[All this is below the framework](tpu.py)"),
        ("streams.md", "An *event* is a mark", "## An event is a mark"),
    ],
)  # fmt: skip
def test_a_word_of_a_link_or_a_heading_is_no_sentence(tmp_path, name, old, new):
    """A page that only leads to what it was asked for is seen."""
    text = (GUIDE / name).read_text(encoding="utf-8")
    assert old in text
    page = tmp_path / "docs" / name
    page.parent.mkdir()
    page.write_text(text)
    word = {"fpga.py": "Vitis AI", "whole_road.md": "framework", "streams.md": "another stream can wait"}[
        name
    ]
    assert unsaid(page, [word], tmp_path) == []
    page.write_text(text.replace(old, new))
    assert unsaid(page, [word], tmp_path) == [word]


def test_a_page_that_no_topic_leads_to_and_a_product_that_has_come_are_seen():
    assert list(faults(MAP, pages=[*PAGES, "mine"])) == ["mine: is the page of 0 topics"]
    text = re.sub(r"(- \[\*\*TPU\*\*\].*)", r"\1 To come: systolic array.", MAP)
    spoken = TO_COME | {"TPU": "systolic array"}
    assert list(faults(text, to_come=spoken)) == ["TPU: systolic array is awaited, and its page speaks of it"]


# --- the pages ------------------------------------------------------------------------------------


BEGINS = ("By the end of this page you can", "**In one sentence:**", "/// figure")
ENDS = ("**Where the course teaches it:**", "/// exercise", "/// answer")
PARTS = {
    # Our kernels are compiled for it.
    "compiled": (
        *BEGINS,
        "/// callout | trip",
        "*Compiled here, not run*",
        "/// predict",
        "/// table",
        "## And of our attention",
        "## When it wins, when it trips",
        "## The numbers that matter",
        "*Measured here*",
        "## What to type",
        "nox -s chips --",
        "compilers\n",
        *ENDS,
    ),
    # Its own code works out answers anywhere: no machine code of it is to be had.
    "run on a CPU": (
        *BEGINS,
        "/// callout | trip",
        "*Run here on a CPU*",
        "/// predict",
        "/// table",
        "## And of our attention",
        "## When it wins, when it trips",
        "## The numbers that matter",
        "*Measured here*",
        "## What to type",
        "nox -s chips --",
        "compilers\n",
        *ENDS,
    ),
    # Nothing of it runs or compiles here, and the page says why; what it shows instead comes from lessons' records, or
    # runs in its own cell.
    "a chip that is cited": (
        *BEGINS,
        "/// callout | trip",
        "nothing was compiled",
        "*cited*",
        "*Measured here*",
        "record(",
        "/// predict",
        "## When it wins, when it trips",
        "## The numbers that matter",
        "*Measured here*",
        "## What to type",
        "python -m course_chips.",
        *ENDS,
    ),
    # No chip: what lies between them, what is done on them.
    "a topic": (
        *BEGINS,
        "/// callout | trip",
        "*Cited*",
        "*Measured here*",
        "/// predict",
        "## When it wins, when it trips",
        "## The numbers that matter",
        "*Measured here*",
        "## What to type",
        *ENDS,
    ),
    "a choice": (
        *BEGINS,
        "/// callout | trip",
        "*Cited*",
        "*Computed*",
        "*Measured here*",
        "/// predict",
        "## When it wins, when it trips",
        "## The numbers that matter",
        "*Measured here*",
        "## What to type",
        "nox -s ",
        *ENDS,
    ),
}
KINDS = {
    "compiled": ["amd", "ampere_ada_hopper", "blackwell", "intel", "tpu"],
    "run on a CPU": ["apple", "fpga"],
    "a chip that is cited": ["aws_chips", "cerebras", "gaudi", "groq", "side_by_side"],
    "a topic": ["clusters", "convolution", "interconnects", "short_numbers", "timelines"],
    "a choice": ["choosing", "inference", "which_gpu"],
}
CITED = KINDS["a chip that is cited"]
KIND_OF = {name: kind for kind, names in KINDS.items() for name in names}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_every_part_of_its_kind_in_order(name):
    text = (GUIDE / f"{name}.py").read_text(encoding="utf-8")
    at = 0
    for part in PARTS[KIND_OF[name]]:
        at = text.find(part, at)
        assert at >= 0, part
    assert "# /// table" in text or KIND_OF[name] not in ("compiled", "a chip that is cited")
    # What a compiler made is told of a chip for which something was compiled, and of no other.
    assert ("course_chips.on_page" in text) == (KIND_OF[name] in ("compiled", "run on a CPU"))


def kernel(chip, name):
    return kept.read(chip)["kernels"][name]


def counted(chip, name, *begins):
    return on_page.listing.beginning(kernel(chip, name)["counts"], *begins)


def test_tiles_that_pages_type_are_those_that_triton_was_given():
    for chip in ("gfx942", "gfx950", "gfx1250", "sm_80", "sm_89", "sm_100", "sm_120"):
        tile = kernel(chip, "multiply_triton")["tile"]
        assert (tile["M"], tile["N"], tile["K"], tile["num_warps"]) == (128, 128, 32, 8)
    tile = kernel("sm_90", "multiply_triton")["tile"]
    assert (tile["M"], tile["N"], tile["K"], tile["num_warps"]) == (128, 256, 64, 8)
    rows = {chip: kernel(chip, "attention_triton")["tile"]["M"] for chip in ("sm_80", "sm_89", "sm_90")}
    assert rows == {"sm_80": 128, "sm_89": 128, "sm_90": 64}
    macros = {chip: kernel(chip, "multiply_mma")["macros"]["BK"] for chip in ("sm_80", "sm_89", "sm_90")}
    assert macros == {"sm_80": 32, "sm_89": 32, "sm_90": 64}


def test_what_pages_say_in_words_is_in_the_code():
    # Ampere, Ada, Hopper.
    names = set(kernel("sm_90", "multiply_triton")["counts"])
    assert "HGMMA.64x256x16.F32.BF16" in names
    assert counted("sm_80", "attention_triton", "HMMA") == counted("sm_89", "attention_triton", "HMMA")
    for chip in ("sm_80", "sm_89", "sm_90"):
        assert counted(chip, "attention_plain", *on_page.listing.MATRIX) == 0
    # A step of cuTile's loop, by four warps: three times for sm_80, twice for sm_89.
    step = 128 * 128 * 64 // (16 * 8 * 16) // 4
    for chip, times in (("sm_80", 3), ("sm_89", 2)):
        tile = kernel(chip, "multiply_cutile")["tile"]
        assert (tile["M"] * tile["N"] * tile["K"], tile["worker_warps"]) == (128 * 128 * 64, 4)
        assert counted(chip, "multiply_cutile", "HMMA") == times * step
        assert kept.read(chip)["refused"]["multiply_cute_wgmma"]["said"].endswith(f"sm_90a, but got {chip}")
    # Hopper's product is refused for both Blackwells, and tensor memory's for an RTX 5090.
    for chip in ("sm_100", "sm_120"):
        assert "multiply_cute_wgmma" in kept.read(chip)["refused"]
    assert "multiply_cute_tcgen05" in kept.read("sm_120")["refused"]
    # In cuTile, the copy engine fetches for both; no thread does.
    for chip in ("sm_100", "sm_120"):
        assert counted(chip, "multiply_cutile", "UTMALDG") > 0 == counted(chip, "multiply_cutile", "LDGSTS")
    # Blackwell: threads fetch the tiles of this source on all three, and only sm_100 has tensor memory.
    for chip in ("sm_80", "sm_100", "sm_120"):
        assert counted(chip, "multiply_triton", "LDGSTS") > 0
        assert counted(chip, "multiply_triton", "UTMALDG") == 0
    for name in kept.read("sm_120")["kernels"]:
        assert counted("sm_120", name, "UTC", "LDTM", "HGMMA") == 0
    # AMD: gfx942 rounds with a test for NaN, v_cmp_o; gfx950 has one instruction.
    assert counted("gfx942", "multiply_triton", "v_cmp_o_f32") > 0
    assert counted("gfx950", "multiply_triton", "v_cmp_o_f32") == 0
    assert "v_wmma_f32_16x16x32_bf16" in kernel("gfx1250", "multiply_triton")["counts"]


# --- what a page is told of a chip ----------------------------------------------------------------


def test_counts_texts_and_the_sheet_come_as_they_are():
    found = on_page.told("gfx942", products="v_mfma", rounded="v_cvt_pk_bf16")
    said = kept.read("gfx942")
    multiply = found["multiply_triton"]
    assert multiply["products"].value == counted("gfx942", "multiply_triton", "v_mfma") > 0
    assert (multiply["lines"].value, multiply["lines"].how) == (
        kernel("gfx942", "multiply_triton")["lines"],
        "counted",
    )
    assert multiply["rounded"].value == 0  # which gfx950 has
    assert (multiply["shared_bytes"].unit, multiply["vgpr_count"].unit) == ("B", "1")
    assert found["compilers"].value.splitlines() == [f"{name} {v}" for name, v in said["packages"].items()]
    assert found["sheet"]["bf16_tflops"].value == SHEETS["gfx942"].bf16_tflops
    assert "sheet" not in on_page.told("gfx1250")


@pytest.mark.parametrize(
    ("chip", "groups", "message"),
    [
        ("mi300", {}, "mi300"),
        ("gfx942", {"products": "HMMA"}, "products: nothing in the code for chips of this kind begins with 'HMMA'"),
        ("gfx942", {"lines": "v_mfma"}, "lines: a record has something of that name already"),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_refused(chip, groups, message):
    with pytest.raises((ValueError, KeyError), match=re.escape(message)):
        on_page.told(chip, **groups)


def test_a_record_that_does_not_hold_is_told_to_no_page(monkeypatch):
    monkeypatch.setattr(stale, "reasons", lambda chip: ["src/a.cu has changed"])
    with pytest.raises(on_page.DoesNotHold) as refused:
        on_page.told("gfx942")
    assert str(refused.value) == (
        "records/chips/gfx942.json does not hold: src/a.cu has changed; make it anew: nox -s chips -- gfx942"
    )


def test_a_page_depends_on_the_records_and_on_all_that_decides_them():
    """So it is executed again when one of these changes, and told to no reader where the record does not hold."""
    page = read_page(GUIDE / "amd.py", ROOT)
    manifest = computed([page], ROOT)[page.id].meta["manifest"]
    for chip in ("gfx942", "gfx950", "gfx1250"):
        assert {f"records/chips/{chip}.json", *kept.read(chip)["sources"]} <= set(manifest)
    assert "pyproject.toml" in manifest  # which pins the compilers


@pytest.mark.parametrize("name", PAGES)
def test_a_page_cites_the_source_of_every_sheet_it_shows(name):
    text = (GUIDE / f"{name}.py").read_text(encoding="utf-8")
    known = tomllib.loads((ROOT / "docs/bibliography.toml").read_text(encoding="utf-8"))
    for chip, sheet in SHEETS.items():
        assert chip in kept.CHIPS
        assert set(sheet.sources) <= set(known)
        if f'told("{chip}"' in text or f'"{chip}", ' in text:
            assert all(f"[^{key}]" in text for key in sheet.sources), chip
    if "**offered(" in text:
        cards = re.search(r"^CARDS = \(([^)]*)\)", text, re.MULTILINE)
        for chip in re.findall(r'"(\w+)"', cards[1]) if cards else OFFERS:
            assert all(f"[^{key}]" in text for key in OFFERS[chip].sources), chip
    if "**to_serve(" in text:
        assert all(f"[^{key}]" in text for model in MODELS.values() for key in model.sources)


def test_pages_of_the_guide_measure_nothing():
    for name in PAGES:
        page = read_page(GUIDE / f"{name}.py", ROOT)
        assert page.runs, name
        assert not page.measures, name


def test_the_guide_is_rendered_within_seconds(our_course, capsys):
    course, rendered = our_course
    took = {page.path: rendered[page.id].seconds for page in course.pages if "field_guide" in page.path.parts}
    assert len(took) > len(TOPICS)
    assert min(took.values()) > 0
    with capsys.disabled():
        print(f"\nfield guide: {len(took)} pages rendered in {sum(took.values()):.1f} s")
    assert sum(took.values()) < 8  # of the processor: less than four on a machine that does nothing else


def test_a_page_is_read_in_a_few_minutes(our_course):
    course, rendered = our_course
    pages = [page for page in course.pages if "field_guide" in page.path.parts and page.id != "field_guide"]
    took = {page.path.stem: rendered[page.id].minutes[0].rounded()["reading"] for page in pages}
    assert {name: minutes for name, minutes in took.items() if not 3 <= minutes <= 7} == {}


KNOWN = tomllib.loads((ROOT / "docs/bibliography.toml").read_text(encoding="utf-8"))
FIGURES = [
    (chip, name, one) for chip, cited_chip in cited.CHIPS.items() for name, one in cited_chip.figures.items()
]


@pytest.mark.parametrize(
    ("chip", "name", "figure"), FIGURES, ids=lambda it: it if isinstance(it, str) else ""
)
def test_a_cited_figure_has_its_source_and_its_date(chip, name, figure):
    source = KNOWN[figure.source]
    assert "read" in source or (source["verified"] is False and source["note"])
    assert re.fullmatch(r"20\d\d(-[01]\d)?", figure.dated)
    assert int(figure.dated[:4]) <= source["year"]
    assert figure.value > 0
    assert figure.unit == "1" or unit_of(figure.unit) or figure.unit == "tokens/s"


@pytest.mark.parametrize("name", CITED)
def test_a_page_that_cites_names_the_source_of_every_chip_that_it_tells_of(name):
    text = (GUIDE / f"{name}.py").read_text(encoding="utf-8")
    told = re.findall(r'told\("(\w+)"((?:, "\w+")*)\)', text)
    assert told
    for chip, sheet in SHEETS.items():
        if f'SHEETS["{chip}"]' in text:
            assert all(f"[^{key}]" in text for key in sheet.sources), chip
    for chip, names in told:
        figures = cited.CHIPS[chip].figures
        for figure in re.findall(r"\w+", names) or figures:
            assert f"[^{figures[figure].source}]" in text, (chip, figure)


def test_every_cited_chip_is_told_on_some_page():
    text = "".join((GUIDE / f"{name}.py").read_text(encoding="utf-8") for name in CITED)
    assert set(re.findall(r'told\("(\w+)"', text)) == set(cited.CHIPS)


def test_a_chip_is_told_whole_or_by_the_names_of_its_figures():
    assert set(cited.told("groq_lpu")) == set(cited.CHIPS["groq_lpu"].figures)
    [(name, memory)] = cited.told("groq_lpu", "memory_mb").items()
    assert (name, memory.value, memory.unit, memory.how) == ("memory_mb", 230.0, "MB", "given")
    for wrong in (("lpu",), ("groq_lpu", "memory_gb")):
        with pytest.raises(KeyError, match=wrong[-1]):
            cited.told(*wrong)


def test_the_picture_of_all_chips_has_each_where_its_figures_put_it():
    """Ten times as long is one mark further, from 1 µs on."""
    drawn = (ROOT / "docs/assets/figures/read_it_all.svg").read_text(encoding="utf-8")
    dots = {name: float(x) for name, x in re.findall(r'data-chip="(\w+)" cx="([\d.]+)"', drawn)}
    marks = sorted({float(x) for x in re.findall(r'd="M([\d.]+) 30 L\1 176"', drawn)})
    assert len(marks) == 7
    assert len(dots) == 8
    for name, x in dots.items():
        if name in SHEETS:
            gb, gb_per_s = SHEETS[name].memory_gb, SHEETS[name].gb_per_s
        else:
            figures = cited.CHIPS[name].figures
            [gb] = [
                one.value * unit_of(one.unit).size / 1e9
                for key, one in figures.items()
                if key.startswith("memory_")
            ]
            gb_per_s = figures["gb_per_s"].value
        us = 1e6 * gb / gb_per_s
        assert x == pytest.approx(marks[0] + (marks[1] - marks[0]) * math.log10(us), abs=0.1), name


def test_the_command_prints_a_figure_with_its_source_and_refuses_a_name_that_is_none(capsys):
    assert cited.main(["groq_lpu"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"memory_mb +230 MB +techpowerup-groq, 2024-02", shown)
    assert "Groq 3" not in shown
    assert cited.main([]) == 0
    assert all(chip.title in capsys.readouterr().out for chip in [cited.CHIPS["groq_3"]])
    assert cited.main(["lpu"]) == 2
    assert "no such chip: lpu" in capsys.readouterr().err


# --- what a page works out ------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 16, 31])
def test_every_card_has_every_sum_and_sends_what_the_page_says(n):
    cards = [[card * n + 7 * piece + 1 for piece in range(n)] for card in range(n)]
    kept_as = [list(card) for card in cards]
    sums = [sum(column) for column in zip(*cards, strict=True)]
    ring, tree = all_reduce.ring(cards), all_reduce.tree(cards)
    assert ring.rounds[-1] == tree.rounds[-1] == [sums] * n
    assert ring.rounds[0] == tree.rounds[0] == cards == kept_as
    assert ring.sent == [2 * (n - 1)] * n  # pieces, of n
    assert len(ring.rounds) - 1 == 2 * (n - 1)
    assert len(tree.rounds) - 1 == 2 * (n.bit_length() - 1)
    assert max(tree.sent) <= 3 * n
    # Two trees with half of the numbers each, the second with the cards in the opposite order.
    if n % 2 == 0:
        assert max(a + b for a, b in zip(tree.sent, reversed(tree.sent), strict=True)) / 2 <= 2 * n


def test_each_sum_is_complete_somewhere_after_half_of_the_ring_and_nowhere_before():
    run = all_reduce.ring([[1, 10, 100, 1000], [2, 20, 200, 2000], [3, 30, 300, 3000], [4, 40, 400, 4000]])
    sums = [10, 100, 1000, 10000]
    where = [[[card[i] == sums[i] for i in range(4)] for card in cards] for cards in run.rounds]
    assert sum(map(sum, where[2])) == 0
    assert where[3] == [[i == (card + 1) % 4 for i in range(4)] for card in range(4)]


def test_cards_with_another_number_of_pieces_are_refused():
    with pytest.raises(ValueError, match=re.escape("expected 2 numbers on each of 2 cards, got [2, 1]")):
        all_reduce.ring([[1, 2], [3]])
