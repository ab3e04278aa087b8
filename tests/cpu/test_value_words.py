"""The words around a value are its own: whose number it is, what it counts, and whether anybody timed it."""

import pytest
from test_values import measurement
from test_values import scope as values

from course_site.lint.value_words import faults_of_prose
from course_site.values.values import Define


def one(median_us, kernel="sgemm/k01_naive", **more):
    return (
        measurement(median_us)
        | {"kernel": kernel, "reads_bytes": 10**8, "writes_bytes": 10**8, "flops": 10**9}
        | more
    )


def scope():
    page = values(
        ours=one(700.0),
        last=one(900.0, "sgemm/k12_persistent"),
        cublas=one(1000.0, "sgemm/library.cublas"),
        copy=one(100.0, "copy/k01_vectorised", flops=0),
        group={
            "naive": one(900.0),
            "tiled": one(800.0, "sgemm/k03_shared_tiles"),
            "padded": one(850.0, "sgemm/k04_padded"),
            "register_column": one(500.0, "sgemm/k05_register_column"),
        },
        by_type={kind: one(800.0) for kind in ("bf16", "fp32")},
        sizes={"n12": one(200.0), "n28": one(300.0)},
        paper={"kind": "quantity", "value": 3e-6, "unit": "s", "how": "given"},
        order=one(2.0),
        ridge_bf16={"kind": "quantity", "value": 206.0, "unit": "FLOP/B", "how": "computed"},
    )
    page.defines |= {
        "twice": Define("twice", "2 * copy.gb_per_s", "GB/s"),
        "lead": Define("lead", "cublas.us / ours.us", "×"),
        "lag": Define("lag", "ours.us / cublas.us", "×"),
    }
    return page


def said_of(text, beside=""):
    return "; ".join(faults_of_prose(text, scope(), beside))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        # a time that nobody took
        ("The floor was 1, the clock says {{ ours.floor_us }} µs.", "nobody timed it"),
        ("It took {{ ours.memory_floor_us:.0f }} µs.", "nobody timed it: show a measured time, or call it a floor"),
        ("Our kernel needs only {{ ours.compute_floor_us }} µs.", "nobody timed it"),
        ("{{ cublas.us:.0f }} µs, and ours {{ ours.floor_us:.0f }} µs.", "its words do not say so: call it the floor"),
        ("The clock says {{ paper * 1e6 }} µs.", "nobody timed it"),
        ("Measured: {{ ours.host_us:.0f }} µs.", "it is the time of the host"),
        ("For a call the clock says {{ ours.host_us }} µs.", "it is the time of the host"),
        # a number that counts something else
        ("The kernel keeps {{ ours.n }} registers a thread.", "counts the samples"),
        ("{{ ours.n }} warps wait.", "counts the samples"),
        ("In {{ ours.host_bound }} cycles nothing moves.", "waited for the host"),
        ("Each SM has {{ ours.N }} warps.", "it is the size N of a problem, and the words after it count 'warps'"),
        ("Each of {{ ours.N }} registers.", "it is the size N of a problem"),
        # arithmetic that bends
        ("It moves {{ 2 * copy.gb_per_s:.0f }} GB/s.", "multiplies a measured rate by the typed number 2"),
        ("It moves {{ twice:.0f }} GB/s.", "multiplies a measured rate by the typed number 2"),
        ("It has {{ ours.of_peak * 5 / 4:.0%}} of peak.", "multiplies a measured share by the typed number 5"),
        ("{{ cublas.us / ours.us * 5 / 4:.0%}} of cuBLAS.", "multiplies a measured share by the typed number 5"),
        ("It takes {{ ours.us / 2:.0f }} µs.", "multiplies a measured time by 2"),
        ("The forty take {{ 20 * ours.us:.0f }} µs.", "multiplies a measured time by 20"),
        ("Both: {{ ours.of_peak + cublas.of_peak:.0%}} of peak.", "adds two shares"),
        ("Ours reaches {{ max(ours.tflops, cublas.tflops):.0f }} TFLOP/s.", "it is one of several"),
        ("It takes {{ min(ours.us, last.us):.0f }} µs.", "it is one of several"),
        ("It moves {{ copy.gb_per_s + copy.gb_per_s + copy.gb_per_s:.0f }} GB/s.", "above the 4800 GB/s of"),
        # somebody else's
        ("It has {{ ours.us / cublas.us:.0%}} of cuBLAS.", "divided by ours.us, and the words after it say"),
        ("It has {{ cublas.tflops / ours.tflops:.0%}} of cuBLAS.", "divided by ours.tflops"),
        ("It has {{ lag:.0%}} of cuBLAS.", "and the words after it say *of cuBLAS*"),
        ("It has {{ last.us / ours.us:.0%}} of the library.", "and the words after it say *of library*"),
        ("Our naive kernel takes {{ cublas.us:.0f }} µs.", "it is the number of sgemm/library.cublas"),
        ("cuBLAS has {{ cublas.us:.0f }}, ours {{ cublas.us:.0f }} µs.", "the words before it say *ours*"),
        ("At 12 it takes {{ sizes.n28.us:.0f }} µs.", "the words before it say 12, and sizes.n28.us is of 28"),
        ("As a share of cuBLAS it has {{ ours.us / cublas.us:.0%}}.", "it is upside down for 'share of cuBLAS'"),
        ("In % of cuBLAS: {{ 100 * cublas.tflops / ours.tflops:.0f }}.", "it is upside down"),
        ("It is {{ ours.us / cublas.us:.1f }} times as fast as cuBLAS.", "it is upside down"),
        ("It has {{ lag:.1f }} times the speed of cuBLAS.", "it is upside down"),
        ("With 12 layers {{ sizes.n12.us:.0f }} µs, and tiled {{ group.naive.us:.0f }} µs.", "is called 'tiled'"),
        ("Naive {{ group.naive.us:.0f }}, register column {{ group.tiled.us:.0f }} µs.", "called 'register column'"),
        ("Padded {{ group.tiled.us:.0f }} µs.", "it is called 'padded', and group.tiled.us is another of its group"),
        ("The naive kernel takes 3, the tiled {{ group.padded.us:.0f }} µs.", "is called 'tiled'"),
        ("It runs at {{ last.us / ours.us:.1f }} and {{ ours.us / last.us:.1f }} times the speed.", "turn it round"),
        ("The shuffles are {{ group.tiled.us / group.naive.us:.2f }} times as fast.", "*times the speed*"),
        ("In fp32 it takes {{ by_type.bf16.us:.0f }} µs.", "it is of bf16, and its sentence speaks of fp32"),
        ("In fp32 the ridge is at {{ ridge_bf16:.0f }} operations.", "it is of bf16, and its sentence speaks of fp32"),
        # below a floor that the same sentence names
        ("Its floor is {{ cublas.us:.0f }} µs, and it took {{ ours.us:.0f }} µs.", "below the floor"),
        # in a table
        ("| kernel | time |\n|---|---|\n| ours | {{ ours.floor_us:.0f }} |", "call it the floor"),
    ],
)  # fmt: skip
def test_a_lie_in_words_is_refused_in_one_line(text, said):
    found = said_of(text)
    assert said in found, found
    assert "\n" not in found


@pytest.mark.parametrize(
    "text",
    [
        "The floor is {{ ours.floor_us:.0f }} µs, and the clock says {{ ours.us:.0f }} µs.",
        "The arithmetic alone takes {{ ours.compute_floor_us / 1e3:.1f }} ms at the data sheet's peak.",
        "Asking for it takes the host {{ ours.host_us:.1f }} µs.",
        "Each launch costs {{ ours.host_us:.1f }} µs.",
        "Medians of {{ ours.n }} rounds.",
        "It was timed {{ ours.n:.0f }} times; that is {{ ours.n * ours.s:.1f }} s.",
        "A list of {{ ours.N }} numbers, in {{ ours.N }} rows.",
        "It moves {{ copy.gb_per_s / 1000:.2f }} TB/s.",
        "960 orders: 960 × {{ order.us:.2f }} µs = {{ 960 * order.us / 1000:.1f }} ms a word.",
        "*Twenty in a row* take {{ 20 * ours.us:.0f }} µs.",
        "2<sup>19</sup> blocks, {{ 1000 * ours.us / 524288:.2f }} ns for each.",
        "The rest, {{ 2 * ours.us - last.us:.0f }} µs, is paid once.",
        "The better of the two reaches {{ max(ours.of_peak, last.of_peak):.0%}}.",
        "From {{ min(ours.tflops, last.tflops):.0f}} to {{ max(ours.tflops, last.tflops):.0f }} TFLOP/s.",
        "{{ ours.tflops / max(cublas.tflops, last.tflops):.0%}} of it.",
        "It has {{ cublas.us / ours.us:.0%}} of cuBLAS's speed.",
        "It has {{ ours.tflops / cublas.tflops:.0%}} of the library.",
        "It takes {{ ours.us / cublas.us:.1f}} of cuBLAS's time.",
        "It has {{ lead:.0%}} of cuBLAS.",
        "Ours takes {{ ours.us:.0f }} µs, cuBLAS {{ cublas.us:.0f }} µs.",
        "Copying reaches {{ ours.tflops:.0f }} with our kernel and {{ cublas.tflops:.0f }} with PyTorch.",
        "At 12 it takes {{ sizes.n12.us:.0f }} µs, at 28 {{ sizes.n28.us:.0f }} µs.",
        "{{ sizes.n12.us:.0f }} µs at 12, {{ sizes.n28.us:.0f }} µs at 28.",
        "{{ ours.us / cublas.us:.1f }} times as long, {{ 1 - ours.of_peak:.0%}} of the peak unused.",
        "| kernel | floor, µs |\n|---|---|\n| ours | {{ ours.floor_us:.0f }} |",
        "It would take {{ paper * 1e6 }} µs on paper.",
        "Naive {{ group.naive.us:.0f }}, tiled {{ group.tiled.us:.0f }}, padded {{ group.padded.us:.0f }} µs.",
        "The tiled kernel takes {{ group.tiled.us:.0f }}, against {{ group.naive.us:.0f }} µs.",
        "Tiled over naive: {{ group.naive.us / group.tiled.us:.1f }}.",
        "As a share of cuBLAS it has {{ cublas.us / ours.us:.0%}}.",
        "As a share of cuBLAS's time it takes {{ ours.us / cublas.us:.0%}}.",
        "It is {{ cublas.us / ours.us:.1f }} times as fast as cuBLAS.",
        "It is {{ ours.us / cublas.us:.1f }} times as slow as cuBLAS.",
        "It runs at {{ last.us / ours.us:.1f }} times the speed, {{ ours.us / last.us:.0%}} of the time.",
        "fp32 takes {{ by_type.fp32.us:.0f }} µs, and bf16 {{ by_type.bf16.us:.0f }} µs.",
    ],
)  # fmt: skip
def test_an_honest_sentence_passes(text):
    assert said_of(text) == ""


def test_what_stands_beside_a_cell_counts_as_its_words():
    assert said_of("{{ 20 * ours.us:.2f }}", "twenty in a row, µs") == ""
    assert "by 20" in said_of("{{ 20 * ours.us:.2f }}", "a run, µs")
    assert said_of("{{ max(ours.us, last.us):.2f }}", "the slower of the two") == ""
