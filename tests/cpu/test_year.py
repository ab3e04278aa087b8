"""The year: 52 weeks as data, with everything that was asked of them, a map without a circle, and pages of one form."""

import itertools
import re
from pathlib import Path

import pytest

from course_site.charts.year_map import BOX, HEIGHT, Box, draw_year
from course_site.pages.bibliography import load
from course_site.sessions.plan_file import PlanError
from course_site.sessions.units import read_units
from course_site.sessions.year import FILE, FOLDER, ROAD, entries, read_year

ROOT = Path(__file__).resolve().parents[2]
YEAR = read_year(ROOT)
DONE = [week for week in YEAR.weeks if (ROOT / week.page).exists()]

# What each week must have: words of its ideas, of what is done in it, and of its milestone. A week with a page has them
# there; one that is to come has them in the data. `~` before a word: changed on purpose, and the page says so.
ASKED = {
    1: "intensity, ceiling, ridge point, HBM, SRAM, warp, profiler, GPT-2, A100, 4096",
    2: "block, grid, shared memory, coalesc, occupancy, bank conflict, L1, L2, vector add, transpose",
    3: "parameters, 6ND, 2ND, KV cache, MFU, Chinchilla, square, 7B, forward pass",
    4: "traffic, tiles, online softmax, MQA, GQA, MLA, FlashAttention-2, NumPy, 8192",
    5: "after training, LLM.int8(), GPTQ, AWQ, draft, acceptance, perplexity, four bits",
    6: "prefill, decode, first token, continuous batching, paged, block table, fragmentation, SGLang, vLLM, 64, 7B",
    7: "AllReduce, tensor parallel, pipeline, bubble, 1F1B, micro-batch, all-gather, reduce-scatter, two cards",
    8: "ZeRO, FSDP, mixed precision, bf16, fp16, recomput, peak memory, 13B",
    9: "compiles, load, store, block, mask, tl.dot, autotun, fus, SiLU",
    10: "Dynamo, Inductor, reduce-overhead, max-autotune, graph break, does not pay, FlashAttention-3, LayerNorm",
    11: "encoder, projector, token, resolution, decode, cross-attention, cache, vision",
    12: "serving, attention kernel, training, baseline, a number before, a number after, why, next",
    13: "shuffle, vote, reduction, WMMA, fragment, mma.sync, LayerNorm",
    14: "cp.async, stream, event, CUDA graph, cooperative group, buffer, stall",
    15: "CUTLASS, 2.x, layout, epilogue, mainloop, producer, Triton, bias, ReLU, cuBLAS",
    16: "TMA, descriptor, wgmma, cluster, distributed shared memory, persistent, ping-pong, SASS",
    17: "TMA, ping-pong, FP8, share, Blackwell, e4m3, roofline, FlashAttention-2",
    18: "ncu, speed of light, memory workload, stall, scheduler, Nsight Systems, bottleneck, profile",
    19: "TPU, systolic, ICI, XLA, HLO, SPMD, PyTorch/XLA, HIP, 64, MI300X, Groq, Cerebras, Gaudi, AMD",
    20: "NVLink, NVSwitch, InfiniBand, RDMA, GPUDirect, ring, tree, NVSHMEM, ReduceScatter, AllGather",
    21: "tensor parallel, sequence parallel, ring attention, Ulysses, four dimensions, Megatron-Core, TorchTitan",
    22: "sparse, top-k, balance, Switch, capacity, GShard, expert choice, padding",
    23: "all-to-all, latency, fine-grained, shared experts, MegaBlocks, pipeline parallel, collapse, 47B",
    24: "loading, WebDataset, StreamingDataset, DALI, memory-mapped, mixing, deduplication, filter",
    25: "failure, sharded, asynchronous, NCCL, elastic, SLURM, watching",
    26: "bytes a parameter, LoRA, QLoRA, NF4, PEFT, IA3, merge",
    27: "four models, KL, rollouts, OpenRLHF, packing, reward model, PPO",
    28: "DPO, GRPO, RLOO, KTO, ORPO, online, offline, margin",
    29: "RoPE, extrapolation, interpolation, NTK, YaRN, LongRoPE",
    30: "chunked prefill, prefix, H2O, SnapKV, StreamingLLM, SAGE-KV, 32K",
    31: "E4M3, E5M2, Transformer Engine, SmoothQuant, GGUF, QuIP#, AQLM, each layer, calibration, perplexity",
    32: "SparseGPT, Wanda, structured, 2:4, distil, Minitron",
    33: "acceptance, Medusa, tree, EAGLE, EAGLE-2, layers skipped, 70B",
    34: "profiles, Splitwise, DistServe, tensor parallel, vLLM, Dynamo, LMCache",
    35: "service level, scheduling, replicas, scaling, Triton Inference Server, TensorRT-LLM, cost",
    36: "selective, associative scan, fused, fixed size, Mamba-2",
    37: "blocks of a sequence, Triton, Jamba, Zamba, flash-linear-attention",
    38: "routing, small batches, host, servers, dense",
    39: "kernel trick, weak, GLA, RWKV, RetNet, library",
    40: "passes, DDIM, DPM-Solver, flow matching, consistency, DiT, U-Net",
    41: "guidance, DistriFusion, PipeFusion, BigBird, Longformer, ALiBi, 256",
    42: "patches, discrete, space and time, tubes, Whisper, EnCodec, Q-Former, 256K",
    43: "SSA, MLIR, dialects, PTX, Dynamo, graph breaks",
    44: "TensorIR, MetaSchedule, Ansor, HLO, SPMD, GSPMD, TVM",
    45: "forward and reverse, JAX, vmap, derivatives of your own, autograd, AOTAutograd, log-softmax",
    46: "caching allocator, fragmentation, cudaMallocAsync, snapshot, offload",
    47: "ring, double binary tree, LL128, tune, overlap, SHARP",
    48: "MLflow, W&B, ONNX, Kubernetes, cost",
    49: "section by section, Nsight Systems, hangs, snapshot, straggler",
    50: "SASS, fuse, Inductor, go round, operator of your own",
    51: "papers, derivations, profiles",
    52: "three subjects, baseline, before and after, roofline, next",
}
# The parts of the subject, by the weeks that have them; and which needs which.
WEEKS_OF = {
    "roofline": (1, 2), "sums": (3,), "attention": (4,), "serving": (5, 6), "parallel": (7, 8), "kernels": (9, 10),
    "cuda": (13, 14), "cutlass": (15,), "hopper": (16, 17), "profiling": (18,), "links": (20,),
    "sequences": (21,), "experts": (22, 23), "data": (24,), "tuning": (26,), "rlhf": (27, 28),
    "long": (29, 30), "bits": (31,), "drafts": (33,), "apart": (34,), "production": (35,),
    "mamba": (36, 37), "experts served": (38,), "linear": (39,), "diffusion": (40, 41),
    "mlir": (43,), "tvm": (44,), "derivatives": (45,), "allocator": (46,), "nccl": (47,),
}  # fmt: skip
ARROWS = {
    "sums": "roofline", "kernels": "roofline", "attention": "sums", "serving": "attention", "parallel": "attention",
    "cuda": "roofline", "cutlass": "kernels, cuda", "hopper": "cutlass", "profiling": "hopper", "links": "parallel",
    "sequences": "parallel", "experts": "parallel", "data": "sums", "tuning": "serving", "rlhf": "tuning, sequences",
    "long": "attention", "bits": "serving, hopper", "drafts": "serving", "apart": "serving", "production": "serving",
    "mamba": "hopper, kernels", "linear": "attention", "diffusion": "sums", "experts served": "experts, apart",
    "mlir": "hopper, kernels", "tvm": "mlir", "allocator": "cuda", "nccl": "links", "derivatives": "kernels",
}  # fmt: skip
FORM = [
    "Why this week",
    "Before you begin",
    "Read",
    "Ideas",
    "Do",
    "Milestone",
    "What could not run here",
    "What next",
]


def text_of(week):
    """The page of a week without its marks, or its data."""
    if week in DONE:
        return re.sub(r"^# ?", "", (ROOT / week.page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    said = [week.title, *week.ideas, week.do, week.milestone, *(one.title for one in week.reading)]
    return "\n".join(said)


@pytest.mark.parametrize("number", ASKED)
def test_a_week_has_all_that_was_asked_of_it(number):
    text = " ".join(text_of(YEAR.week(number)).split()).casefold()
    missing = [word for word in ASKED[number].split(", ") if word.casefold() not in text]
    assert not missing, f"week {number} says nothing of {', '.join(missing)}"


def test_the_hours_are_the_sum_of_what_is_read_and_done():
    assert len(YEAR.weeks) == len(ASKED) == 52
    assert YEAR.hours == 595.5
    assert {number: YEAR.week(number).hours for number in (3, 37, 43, 44)} == {3: 9.5, 37: 17, 43: 23, 44: 19}
    assert [week.number for week in YEAR.weeks if not week.hours] == [12, 52]
    assert sum(len(week.reading) for week in YEAR.weeks) == 184


def test_every_arrow_is_on_the_map():
    arrows = [(target, one) for target, sources in ARROWS.items() for one in sources.split(", ")]
    assert len(arrows) == 35
    for target, source in arrows:
        needs = {need for number in WEEKS_OF[target] for need in YEAR.week(number).needs}
        assert needs & set(WEEKS_OF[source]), f"{target} needs {source}, and no week of it says so"
    for weeks in WEEKS_OF.values():
        for before, after in itertools.pairwise(weeks):
            assert before in YEAR.week(after).needs


@pytest.mark.parametrize(
    ("number", "needs", "said"),
    [
        (3, "[40]", "week 3, needs: needs itself: "),
        (3, "[4]", "week 3, needs: needs itself: "),
        (3, "[9]", "week 3, needs: 'week_09' comes later on this road"),
        (3, "[60]", "week 3, needs: 'week 60' is neither a unit nor hardware"),
        (3, '["2"]', "week 3, needs: needs a list of weeks by number"),
    ],
)
def test_a_wrong_arrow_is_refused(tmp_path, number, needs, said):
    text = (ROOT / FILE).read_text(encoding="utf-8")
    wrong = re.sub(rf"(number = {number}\n(?:.*\n)*?needs = ).*", rf"\g<1>{needs}", text, count=1)
    with pytest.raises(PlanError, match=re.escape(said)) as error:
        read_units(planted(tmp_path, wrong))
    assert str(error.value).startswith(f"{FILE}: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("number = 7\n", "number = 8\n", "week 7, number: is 8, and the weeks before it count to 6"),
        ('card = "two"', 'card = "three"', "card: 'three' is none of '', 'one', 'two'"),
        ("last = 12\n", "last = 11\n", "part 2, first: begins with week 13; write 12"),
        ("hours = 1.5", "hours = 0", "hours: needs a number of hours above 0, got 0"),
        ("box = ", "bocks = ", "unknown key; known: "),
        ("last = 52\n", "last = 51\n", "no part has week 52"),
    ],
)
def test_weeks_that_do_not_hold_together_are_refused(tmp_path, old, new, said):
    text = (ROOT / FILE).read_text(encoding="utf-8")
    assert old in text
    with pytest.raises(PlanError, match=re.escape(said)):
        read_year(planted(tmp_path, text.replace(old, new, 1)))


def planted(root, text):
    """A repository with these weeks and the real sessions."""
    (root / FOLDER).mkdir(parents=True)
    (root / FILE).write_text(text, encoding="utf-8")
    (root / "handbook").mkdir()
    (root / "handbook/sessions").symlink_to(ROOT / "handbook/sessions")
    return root


def test_a_repository_without_a_year_has_no_weeks(tmp_path):
    assert read_year(tmp_path).weeks == ()


def test_the_weeks_are_units_that_say_what_they_run_on():
    units = {unit.name: unit for unit in read_units(ROOT)[ROAD].units}
    assert units["week_03"].hardware == ()
    assert units["week_09"].hardware == ("gpu",)
    assert units["week_08"].hardware == ("gpus 2",)
    assert units["week_12"].needs == ("week_06", "week_08", "week_10")


@pytest.mark.parametrize("week", DONE, ids=lambda week: week.name)
def test_a_page_has_the_form_of_a_week(week):
    text = (ROOT / week.page).read_text(encoding="utf-8")
    headings = re.findall(r"^# ## (.*)$", text, re.MULTILINE)
    assert [heading for heading in headings if heading in FORM] == FORM
    assert f'nav: "{week.number} · ' in text
    assert f"# # Week {week.number}: " in text
    assert text.count("# /// week\n") == text.count("# /// reading\n") == 1 or not week.reading
    assert "# /// predict" in text
    assert "# /// exercise" in text[text.index("# ## Milestone") :]
    ideas = text[text.index("# ## Ideas") : text.index("# ## Do")]
    told = ideas.count("# /// idea | ") + len(re.findall(r"^# - .*(?:\n#  +.*)*", ideas, re.MULTILINE))
    assert told >= len(week.ideas), f"{told} ideas are told, and there are {len(week.ideas)}"


def test_every_reading_of_a_week_with_a_page_is_in_the_bibliography():
    known = load(ROOT / "docs/bibliography.toml")
    for week in DONE:
        for one in week.reading:
            assert one.key in known, f"week {week.number}: {one.title}"


REPLACED = {  # of what lists name and could not be found: its week, and the key of what stands there now
    "Unleashing the Power of Triton": (9, "adil2024"),
    "AI Accelerators Beyond GPUs": (19, "alcf2024"),
    "InfiniBand or RoCE": (20, "llama3"),
}


@pytest.mark.parametrize("title", REPLACED)
def test_a_reading_that_was_replaced_is_gone_and_its_page_says_why(title):
    number, key = REPLACED[title]
    week = YEAR.week(number)
    assert title not in [one.title for one in week.reading]
    assert key in [one.key for one in week.reading]
    said = re.search(rf'^{key}: "(.+)"$', text_of(week), re.MULTILINE)
    assert re.search(r"in place of .+ that lists name and that we could not find", said[1])


def test_the_pages_are_listed_in_their_order():
    named = re.search(r"^pages: \[(.*)\]$", (ROOT / FOLDER / "index.md").read_text(), re.MULTILINE)
    assert named[1].split(", ") == [week.name for week in DONE]
    assert [path.stem for path in sorted((ROOT / FOLDER).glob("week_*.py"))] == [week.name for week in DONE]


# --- the map -------------------------------------------------------------------------------------------


def test_the_map_has_a_box_for_each_week_an_arrow_for_each_need_and_a_link_for_each_page():
    parts = [
        (
            part.name,
            [Box(week.number, week.box, week.needs, "there.html" * (week in DONE)) for week in part.weeks],
        )
        for part in YEAR.parts
    ]
    drawn = draw_year(parts, "weeks")
    assert [int(number) for number in re.findall(r'data-week="(\d+)"', drawn)] == list(range(1, 53))
    needs = {(need, week.number) for week in YEAR.weeks for need in week.needs}
    found = re.findall(r'class="arrow from(\d+) to(\d+)"', drawn)
    assert {(int(source), int(target)) for source, target in found} == needs
    assert len(found) == len(needs)
    assert drawn.count("<a ") == len(DONE)
    places = [tuple(map(float, place)) for place in re.findall(r'<rect x="([^"]+)" y="([^"]+)"', drawn)]
    for i, (x, y) in enumerate(places):
        for other_x, other_y in places[i + 1 :]:
            assert abs(x - other_x) >= BOX or abs(y - other_y) >= HEIGHT
    assert max(len(f"{week.number} {week.box}") for week in YEAR.weeks) <= 18


def test_the_calendar_has_a_day_for_each_week():
    made = entries(YEAR, {week.page: week for week in DONE})
    assert [entry.day for entry in made] == [7 * number for number in range(52)]
    assert made[2].page == "curriculum/week_03.html"
    assert made[2].title == "Week 3: Arithmetic of a transformer"
    assert "9.5 hours: 6.5 to read, 3 to do" in made[2].text
    assert made[51].page == ""


# --- worked out once more ------------------------------------------------------------------------------


def test_week_1_places_a_multiply_under_the_roof():
    """Far right of the ridge of 156: 1365 operations for each byte, 440 µs of arithmetic, 50 µs of bytes."""
    names = cell_of("week_01")
    operations, moved = names["multiply"](4096, 4096, 4096)
    assert round(operations / moved) == 1365
    assert round(1e6 * operations / names["PEAK"]) == 441
    assert round(1e6 * moved / names["BANDWIDTH"]) == 50
    assert names["PEAK"] / names["BANDWIDTH"] == 156
    # GPT-2 has 124 million parameters, each used once for each token: 2ND, and the pairs of attention beside it.
    lines = names["operators"]
    products = sum(
        cost[0]
        for name, cost in lines.items()
        if name in ("queries, keys, values", "output of attention", "feed-forward", "logits")
    )
    assert products == 2 * names["TOKENS"] * (12 * 12 * 768**2 + 50257 * 768)
    assert lines["scores and sums of attention"][0] == 12 * 8 * 12 * 2 * 2 * 1024**2 * 64


def test_week_3_counts_the_parameters_that_are_published():
    """Llama 2 7B has 6,738,415,616; its cache is half a mebibyte for each token."""
    names = cell_of("week_03")
    assert names["parameters"]() == 6_738_415_616
    assert names["cache"](1) == 32 * 524_288
    assert names["scores"](2048) == 32 * 4 * 32 * 32 * 128 * 2048**2


def test_week_5_rounds_a_row_as_by_hand():
    names = cell_of("week_05")
    step = 60 / 127
    assert names["together"].tolist() == pytest.approx([0, -step, 0, step, 0, step, 0, 60])
    assert abs(names["apart"][:-1] - names["small"]).max() <= 0.4 / 127 / 2 * (1 + 1e-9)


def test_week_7_s_pipeline_has_the_bubble_of_the_formula():
    names = cell_of("week_07")
    assert names["off"] < 1e-14
    for stages in (1, 2, 4, 8):
        for batches in (1, 3, 8, 32):
            ticks, bubble, held = names["pipeline"](stages, batches)
            assert ticks == 3 * (batches + stages - 1)
            assert bubble == pytest.approx((stages - 1) / (batches + stages - 1))
            assert held == min(stages, batches)


def test_week_8_makes_the_same_step_in_every_stage():
    names = cell_of("week_08")
    assert names["same"]
    held = [names["runs"][stage][1] / names["N"] for stage in range(4)]
    assert held == [16, 2 + 2 + 12 / 4, 2 + (2 + 12) / 4, 16 / 4]
    sent = [names["runs"][stage][2] for stage in range(4)]
    assert sent == [sent[0], sent[0], sent[0], 1.5 * sent[0]]
    assert names["plain"] == 0
    assert abs(names["scaled"] - names["SMALL"]) < 2**-11 * names["SMALL"]


def test_week_11_counts_a_picture_s_tokens():
    names = cell_of("week_11")
    assert (names["tokens"](336), names["tokens"](672)) == (576, 2304)
    assert names["READERS"] * (576 + 64) == 10_240
    assert 10_240 * names["A_TOKEN"] == 5 * 2**30
    assert 16 * 64 * names["A_TOKEN"] == 2**29
    # What multiplies in the 7B of week 3: all parameters but the embedding.
    assert names["MODEL"] == pytest.approx(cell_of("week_03")["parameters"]() - 32000 * 4096, rel=1e-3)


def test_week_13_sums_in_a_warp_what_numpy_sums():
    names = cell_of("week_13")
    assert names["steps"] == 5
    assert abs(names["variance"] - names["true"]).max() < 1e-4 * names["true"]
    assert abs(names["mean"] - names["row"].mean()).max() < 1e-3
    assert abs(names["short_formula"](names["row"]) - names["true"]) > 100 * abs(
        names["variance"][0] - names["true"]
    )


def test_week_17_s_fp8_attention_is_better_in_blocks_and_rotated():
    names = cell_of("week_17")
    assert names["mean"]["rotated"] < names["mean"]["blocks"] < names["mean"]["one"]
    # A rotation alone changes nothing: it is of queries and keys, both.
    q, k, v = (names["with_outliers"](names["drawn"]) for _ in range(3))
    turned = names["attention"](names["rotated"](q, 128), names["rotated"](k, 128), v)
    assert abs(turned - names["attention"](q, k, v)).max() < 1e-9


def test_week_20_adds_up_in_two_halves():
    names = cell_of("week_20")
    assert names["finished"] == [1] * 8
    assert names["by_ring"].sent == [14] * 8
    assert names["time_us"](0, 14, 1.75, 5.0, 450.0) == 70


def cell_of(name):
    """The names of the cells of a page that runs anywhere."""
    from course_site.pages.page import read_page

    page = read_page(ROOT / FOLDER / f"{name}.py", ROOT)
    names = {}
    for cell in page.code:
        exec(cell.source.replace("record(", "dict("), names)
    return names
