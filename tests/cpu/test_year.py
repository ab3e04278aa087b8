"""The year: 52 weeks as data, with everything that was asked of them, a map without a circle, and pages of one form."""

import dataclasses
import importlib
import itertools
import re
from pathlib import Path

import pytest
import torch

from course_judge.worker.card_arithmetic import as_on_a_card
from course_kernels.measure.check import checked_errors
from course_kernels.measure.competitor import competitor_of
from course_kernels.two_cards import together
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
    1: "intensity, ceiling, ridge point, HBM, SRAM, warp, profiler, GPT-2, A100, host, one token, 4096",
    2: "block, grid, shared memory, coalesc, occupancy, bank conflict, L1, L2, vector add, transpose",
    3: "parameters, 6ND, 2ND, KV cache, MFU, Chinchilla, square, 7B, forward pass",
    4: "traffic, tiles, online softmax, MQA, GQA, MLA, FlashAttention-2, NumPy, 8192",
    5: "after training, LLM.int8(), GPTQ, AWQ, draft, acceptance, perplexity, four bits",
    6: "prefill, decode, first token, continuous batching, paged, block table, fragmentation, SGLang, vLLM, 64, 7B",
    7: "AllReduce, tensor parallel, pipeline, bubble, 1F1B, micro-batch, all-gather, reduce-scatter, two cards",
    8: "ZeRO, FSDP, mixed precision, bf16, fp16, recomput, peak memory, 13B",
    9: "compiles, load, store, block, mask, tl.dot, autotun, fus, SiLU, functional.silu, two operators, bandwidth",
    10: "Dynamo, Inductor, reduce-overhead, max-autotune, graph break, does not pay, FlashAttention-3, LayerNorm, kept",
    11: "encoder, projector, token, resolution, decode, cross-attention, cache, vision",
    12: "serving, attention kernel, training, baseline, a number before, a number after, why, next",
    13: "shuffle, vote, reduction, WMMA, fragment, mma.sync, LayerNorm",
    14: "cp.async, stream, event, CUDA graph, cooperative group, two buffers, LayerNorm, % of bandwidth, stall",
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
    names = forecast_of_week_1()
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


def forecast_of_week_1():
    """The names of the first cell: it needs no card."""
    from course_site.pages.page import read_page

    names = {}
    exec(read_page(ROOT / FOLDER / "week_01.py", ROOT).code[0].source, names)
    return names


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


def test_week_11_times_a_tower_in_small_on_a_cpu():
    asked = []

    def measure(one, w, seconds):
        asked.append(w.label)
        return checked_errors({"it": competitor_of(one)}, w, 0, "cpu")["it"]

    small = {
        '"cuda"': '"cpu"', "SMALL, LARGE = 16, 336, 672": "SMALL, LARGE = 16, 28, 56", '"small": 16': '"small": 2',
        "VIT_L_14, Tower, ": "VIT_L_14, Shape, Tower, ",
        "PICTURES =": "VIT_L_14 = Shape(3, 128, 2, 256, 14)\nPICTURES =",
    }  # fmt: skip
    names = cell_of("week_11", small, measure=measure)
    assert asked[:4] == [*["B2-SIDE28-bfloat16"] * 3, "B2-N5-H2-D64-bfloat16"]
    assert asked[4:] == [*["B4-SIDE56-bfloat16"] * 3, "B4-N17-H2-D64-bfloat16"]
    assert set(names["timed"](28, 1, device="cpu")) == {"whole", "attention", "mlp", "core"}


def test_week_11_counts_a_picture_s_tokens():
    names = cell_of("week_11", measured=False)
    assert (names["tokens"](336), names["tokens"](672)) == (576, 2304)
    assert names["READERS"] * (576 + 64) == 10_240
    assert 10_240 * names["A_TOKEN"] == 5 * 2**30
    assert 16 * 64 * names["A_TOKEN"] == 2**29
    # What multiplies in the 7B of week 3: all parameters but the embedding.
    assert names["MODEL"] == pytest.approx(cell_of("week_03")["parameters"]() - 32000 * 4096, rel=1e-3)


def test_week_10_shows_the_lines_of_the_function_that_two_kernels_call():
    source = (ROOT / "src/course_kernels/layer_norm/k03_row_kept.py").read_text(encoding="utf-8")
    lines = re.search(r"@triton\.jit\ndef centred.*?(?=\n\n)", source, re.DOTALL)[0].splitlines()
    (told,) = [line for line in lines if '"""' in line]
    lines.remove(told)
    assert "```python\n" + "\n".join(lines) + "\n```\n" in text_of(YEAR.week(10))


def test_week_13_sums_in_a_warp_what_numpy_sums():
    names = cell_of("week_13")
    assert names["steps"] == 5
    assert abs(names["variance"] - names["true"]).max() < 1e-4 * names["true"]
    assert abs(names["mean"] - names["row"].mean()).max() < 1e-3
    assert abs(names["short_formula"](names["row"]) - names["true"]) > 100 * abs(
        names["variance"][0] - names["true"]
    )


def test_week_17_s_fp8_attention_is_better_in_blocks_and_rotated():
    names = cell_of("week_17", measured=False)
    assert names["mean"]["rotated"] < names["mean"]["blocks"] < names["mean"]["one"]
    # A rotation alone changes nothing: it is of queries and keys, both.
    q, k, v = (names["with_outliers"](names["drawn"]) for _ in range(3))
    turned = names["attention"](names["rotated"](q, 128), names["rotated"](k, 128), v)
    assert abs(turned - names["attention"](q, k, v)).max() < 1e-9


def test_week_17_races_and_measures_errors_in_small_on_a_cpu():
    """What the page runs on a card, with the rows of one short head: those in 8 bits, and the loop in Triton beside."""
    raced = []

    def compare(field, w, seconds):
        here = {name: one for name, one in field.items() if name in ("fp8", "rounding", "triton")}
        raced.append((w.label, set(field), checked_errors(here, w, 0, "cpu")))
        return here

    with as_on_a_card():
        names = cell_of(
            "week_17",
            {
                "= 512, 128, 64, 8": "= 128, 128, 64, 1",
                '"cuda"': '"cpu"',
                '"H": 16, "N": 8192': '"H": 1, "N": 80',
            },
            compare=compare,
        )
        on_the_card = names["on_the_card"](device="cpu")
    assert [label for label, *_ in raced] == ["B1-H1-N80-D128-bfloat16", "B1-H1-N80-D128-causal-bfloat16"]
    for _, field, errors in raced:
        assert field == {"fp8", "rounding", "triton", "wgmma", "flash", "cudnn"}
        assert errors["triton"] < 0.05 < errors["fp8"]
    assert on_the_card["fp8"] == pytest.approx(names["mean"]["blocks"] / names["size"], rel=0.1)
    assert on_the_card["bf16"] < on_the_card["fp8"] / 5


def test_week_20_adds_up_in_two_halves():
    names = cell_of("week_20")
    assert names["finished"] == [1] * 8
    assert names["by_ring"].sent == [14] * 8
    assert names["time_us"](0, 14, 1.75, 5.0, 450.0) == 70


def test_the_cells_of_week_20_run_without_its_cards(monkeypatch):
    """The same processes and lines, with short messages and the host's clock."""
    real = together.reduce

    def short(sizes, rounds):
        found = real([min(size, 2**12) for size in sizes], rounds=2, device="cpu", limit_s=240)
        assert rounds == 12
        return [{way: [1e9 * us for us in times] for way, times in one.items()} for one in found]

    monkeypatch.setattr(together, "reduce", short)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA H200")
    names = cell_of("week_20", with_cards=True)

    assert [*names["raced"]] == [1024 * 4**i for i in range(12)]
    assert names["kept"]["message"]["k4194304"].value == 2**32 / 1e3
    assert {*names["kept"]["ring"]} == {*names["kept"]["library"]} == {*names["kept"]["message"]}


# --- pages that measure: their cells on a CPU, checked and not timed -------------------------------------


@pytest.fixture
def untimed(monkeypatch):
    """Races without a clock: whoever would be timed is checked on the CPU, in Triton's interpreter."""
    torch = pytest.importorskip("torch")
    from course_kernels.measure.check import checked_errors
    from course_kernels.measure.competitor import competitor_of

    raced = []

    def compare(field, workload, *, seconds):
        assert 0 < seconds <= 0.5
        raced.append((list(field), workload))
        checked_errors({name: competitor_of(one) for name, one in field.items()}, workload, device="cpu")
        return dict.fromkeys(field)

    monkeypatch.setattr("course_kernels.measure.run.compare", compare)
    monkeypatch.setattr(torch, "compile", lambda function, **how: function)
    return raced


def problem_of(name):
    """A problem of the library."""
    return importlib.import_module(f"course_kernels.{name}.problem").PROBLEM


def smaller(monkeypatch, problem, *workloads):
    """A problem that is timed on workloads that a CPU bears."""
    module = importlib.import_module(f"course_kernels.{problem}.problem")
    monkeypatch.setattr(module, "PROBLEM", dataclasses.replace(module.PROBLEM, time_on=workloads))


def test_week_9_races_four_on_one_size(monkeypatch, untimed):
    from course_kernels.problem import Workload
    from course_kernels.silu import library

    library._compiled.cache_clear()
    (large,) = problem_of("silu").time_on
    assert 5 * large.N * large.element_bytes == 1_342_177_280
    small = Workload.of("float32", N=5000)
    smaller(monkeypatch, "silu", small)
    names = cell_of("week_09")
    library._compiled.cache_clear()
    assert untimed == [(["two", "torch", "compiled", "ours"], small)]
    assert names["MB"] == 0.02


def test_week_10_counts_the_compiler_s_loads_and_races_a_row_that_is_kept(monkeypatch, untimed):
    from course_kernels.layer_norm import library
    from course_kernels.problem import Workload

    (large,) = (w for w in problem_of("layer_norm").time_on if w.N == 4096)
    assert large.dims == {"M": 16384, "N": 4096}
    small = Workload.of("float32", M=3, N=4096)
    smaller(monkeypatch, "layer_norm", small)
    library._compiled.cache_clear()
    written = [
        "tmp0 = tl.load(in_ptr0 + (r0_1), mask)",
        "tl.load(in_ptr0 + (r0_1)); tl.load(in_ptr1 + (r0_1))",
    ]
    monkeypatch.setattr("torch._inductor.utils.run_and_get_code", lambda f, *inputs: (f(*inputs), written))
    names = cell_of("week_10")
    assert names["LOADS"] == 2
    assert names["TENSOR"] == 4 * 3 * 4096
    assert untimed == [(["eager", "twice", "compiled", "kept"], small)]
    written.clear()
    with pytest.raises(RuntimeError, match="no load of x"):
        names["loads_of_x"]("cpu")
    library._compiled.cache_clear()


def test_week_1_profiles_a_small_model(monkeypatch):
    """The whole cell on a CPU, with a model of one layer, and a profiler and a graph that do nothing."""
    torch = pytest.importorskip("torch")
    from contextlib import nullcontext
    from types import SimpleNamespace

    from course_kernels.measure import readings
    from course_models import gpt2, kernel_times

    names, rounds, watched = forecast_of_week_1(), [], []
    small = gpt2.Shape(layers=1, width=32, heads=2, words=50, places=600)
    monkeypatch.setattr(gpt2, "Shape", lambda *sizes: small if sizes == (12, 768, 12, 50257) else None)

    def stopwatch(works, *, n):
        rounds.append((list(works), n))
        return {name: work() for name, work in works.items()}

    def profiled(step, ranges):
        step()
        assert model[0].watched
        watched.append(ranges)
        return kernel_times.Seen(dict.fromkeys((*ranges, kernel_times.ELSE), 1e3), 7, 5.0)

    model = []
    real = gpt2.GPT2
    monkeypatch.setattr(gpt2, "GPT2", lambda *a, **how: model.append(real(*a, **how)) or model[0])
    monkeypatch.setattr(kernel_times, "profiled", profiled)
    monkeypatch.setattr(readings, "stopwatch", stopwatch)
    monkeypatch.setattr(torch.cuda, "Stream", lambda: None)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: SimpleNamespace(replay=lambda: "replayed"))
    monkeypatch.setattr(torch.cuda, "graph", lambda graph: nullcontext())
    names = cell_of("week_01", constants={"LENGTH": 40, "SEQUENCES": 2})
    assert names["words"].shape == (2, 40)
    assert names["step"]["forward"].shape == (2, 40, 50)
    assert names["step"]["decode"].shape == (1, 50)
    assert names["step"]["graph"] == "replayed"
    assert rounds == [(["forward"], 10), (["decode", "graph"], 50)]
    assert watched == [gpt2.LINES, gpt2.LINES]
    assert set(names["operators"]) == set(gpt2.LINES)
    assert small.decode_bytes(512, 2) == names["model"].shape.decode_bytes(names["HELD"], 2)
    model[0].layers[0].down.mul_(0.0)
    model[0].layers[0].lists[:32].mul_(-1.0)
    names["check"](model[0], names["drawn"](2, 12))
    exact = real(small, 1, device="cpu")
    monkeypatch.setattr(names["copy"], "deepcopy", lambda model: exact)
    with pytest.raises(RuntimeError, match=r"^logits are off by .*, more than 0\.03$"):
        names["check"](model[0], names["drawn"](2, 12))


def test_week_14_races_two_buffers_and_asks_the_counters(monkeypatch, untimed):
    from course_kernels.layer_norm import k03_row_kept, k04_two_buffers, library
    from course_kernels.measure.record_types import Counted
    from course_kernels.problem import Workload

    small = Workload.of("float32", M=5, N=4096)
    smaller(monkeypatch, "layer_norm", small)
    library._compiled.cache_clear()
    asked = []

    def count_many(jobs, metrics):
        asked.extend(jobs)
        told = {name: {"value": float(len(name)), "unit": ""} for name in metrics}
        return [
            Counted("k", w.as_json(), 2.0 * 5 * 4096 * 4, 1.0, [{"name": "k", "metrics": told}])
            for _, w in jobs
        ]

    monkeypatch.setattr("course_kernels.measure.counters.count_many", count_many)
    names = cell_of("week_14")
    library._compiled.cache_clear()
    assert untimed == [(["kept", "one", "two"], small)]
    assert [w for _, w in asked] == [small] * 4
    assert (names["KEPT"], names["STAY"]) == (4, 2)
    assert names["KEPT"] * names["THREADS"] == 4 * 32 * (4096 // k03_row_kept.A_WARP)
    assert names["STAY"] == k04_two_buffers.AT_WORK // 4096
    assert names["tallies"]["kept"].read_bytes / names["X"] == 2
    assert len(names["stalls"]["two"]) == 8


def cell_of(name, other=None, *, measured=True, with_cards=False, constants=None, **clock):
    """The names of the cells of a page, run here; "kept" has what the last of them recorded.

    Args:
        other: pieces of their text, and what is to stand there.
        measured: whether to run those that want a card.
        with_cards: whether to run those that want two of them.
        constants: other values of names that a cell defines, for the cells behind it.
        clock: `compare` or `measure`, what takes the place of the clock.
    """
    from course_site.pages.page import read_page

    page = read_page(ROOT / FOLDER / f"{name}.py", ROOT)
    names = {}
    for cell in page.code:
        of_the_clock = re.search(r"from course_kernels.measure import (compare|measure)\n", cell.source)
        if (of_the_clock and not measured) or ("two_cards" in cell.source and not with_cards):
            continue
        text = cell.source.replace("record(", "kept = dict(")
        if of_the_clock and clock:
            text = text.replace(of_the_clock[0], "")
            names |= clock
        for old, new in (other or {}).items():
            text = text.replace(old, new)
        exec(text, names)
        names |= {constant: value for constant, value in (constants or {}).items() if constant in names}
    return names
