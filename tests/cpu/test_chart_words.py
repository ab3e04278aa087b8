"""A label is that of what is drawn: whose kernel, which unit, which row, and nothing measured is a data sheet's."""

import pytest
from test_values import measurement

from course_kernels.measure.machine import machine_for
from course_site.lint.chart_words import faults_of_alt, faults_of_chart, faults_of_row, faults_of_table
from course_site.values.values import Scope

KERNELS = {
    "naive": "sgemm/k01_naive", "register_tile": "sgemm/k05_register_tile", "cublas": "sgemm/library.cublas",
    "torch": "copy/library.torch_copy",
}  # fmt: skip


def scope():
    names = {name: measurement(100.0) | {"kernel": kernel} for name, kernel in KERNELS.items()}
    names["sheet"] = {"kind": "quantity", "value": 989.0, "unit": "TFLOP/s", "how": "given"}
    names["chain"] = {"kind": "samples", "unit": "cycles", "how": "counted", "n": 3, "samples": [29.0] * 3}
    names["chain"] |= {"quantiles": {"0": 29.0, "0.5": 29.0, "1": 29.0}}
    names["vital"] = {
        name: {"kind": "quantity", "value": 0.9, "unit": "1", "how": "counted"} for name in ("ours", "cublas")
    }
    names["sizes"] = {
        f"n{n}": measurement(float(n), N=n) | {"kernel": KERNELS["naive"]} for n in (64, 128, 512)
    }
    names["row"] = {f"m{n}": measurement(float(n)) for n in (64, 512)}
    return Scope("w1", names, machine_for("NVIDIA H200"))


def bars(*pairs, axis="TFLOP/s", references=()):
    return {
        "x_label": axis,
        "bars": [{"label": label, "name": name} for label, name in pairs],
        "references": [{"label": label, "value": value} for label, value in references],
    }


def lines(y="us", y_label="time, µs", x="N", x_label="N"):
    series = [{"label": "naive", "name": "sizes.*"}]
    return {"x": x, "y": y, "x_label": x_label, "y_label": y_label, "series": series}


LIBRARY = "% of the library"
SHEET_LINE = ("data sheet", "cublas.tflops / cublas.of_peak")
NAIVE, CUBLAS = "naive.tflops", "cublas.tflops"


@pytest.mark.parametrize(
    ("chart", "said"),
    [
        (bars(("cuBLAS", NAIVE)), "names cuBLAS, and what is drawn is naive.tflops, a kernel of ours"),
        (bars(("PyTorch", "100 * naive.of_peak")), "names PyTorch"),
        (bars(("ours", CUBLAS)), "says that it is ours, and what is drawn is cublas.tflops, a library's"),
        (bars(("k05 register tile", CUBLAS)), "says that it is ours"),
        (bars(("naive", "register_tile.tflops"), ("register tile", NAIVE)), "are two labels exchanged?"),
        (bars(("naive", NAIVE), references=[("data sheet", CUBLAS)]), "'data sheet' is drawn from cublas.tflops"),
        (bars(("naive", "100 * naive.of_peak"), axis="% of peak", references=[("best copy", 100)]), "at 100"),
        (bars(("naive", f"100 * {NAIVE} / {CUBLAS}"), axis=LIBRARY, references=[("data sheet", 100)]), "at 100"),
        (lines(y_label="time, ms"), "its y axis says 'time, ms', and what is drawn is in µs"),
        (lines(y="tflops", y_label="GB/s"), "what is drawn is in TFLOP/s"),
        (lines(x_label="K"), "its x axis says 'K', and what is drawn along it is N"),
        (lines(x_label="time, ms"), "what is drawn along it is N, a size"),
        (bars(("naive", f"100 * {CUBLAS} / {NAIVE}"), axis="% of cuBLAS"), "is upside down for '% of cuBLAS'"),
        (bars(("naive", "100 * naive.us / cublas.us"), axis=LIBRARY), "is upside down"),
        (bars(("naive", NAIVE), axis="GB/s") | {"caption": "Lower is better."}, "says 'Lower is better' over 'GB/s'"),
        (bars(("a", "100 * naive.of_peak"), axis="% of peak") | {"alt": "The shorter bar is better."}, "shorter bar"),
        (lines(y="tflops", y_label="TFLOP/s") | {"caption": "The lower the line, the faster."}, "'The lower the line"),
        (lines() | {"caption": "Higher is better."}, "says 'Higher is better' over 'time, µs'"),
        (bars(("naive", NAIVE)) | {"title": "The register tile beats them all"}, "its title ranks ('beats')"),
        (bars(("naive", NAIVE)) | {"title": "Nobody is faster"}, "its title ranks"),
        (bars(("naive", NAIVE)) | {"title": "Ours, ahead at every size"}, "its title ranks ('ahead')"),
        (bars(("naive", NAIVE)) | {"title": "Our kernels and cuBLAS"}, "its title speaks of 'cuBLAS', and no bar"),
        (lines() | {"caption": "On par with PyTorch from 512 on."}, "its caption speaks of 'PyTorch'"),
        (bars(("naive", NAIVE)) | {"alt": "{{ naive.tflops }}, {{ register_tile.tflops }}."}, "tells of register_tile"),
        (bars(("naive", NAIVE)) | {"alt": "The library has {{ cublas.tflops:.1f }}."}, "no bar, line or reference"),
        (bars(("naive", NAIVE), references=[SHEET_LINE]) | {"alt": "cuBLAS is the line."}, "speaks of 'cuBLAS'"),
        (bars(("by hand", NAIVE)), "'by hand' is drawn from naive.tflops, which a run found"),
        (bars(("a forecast", "chain")), "'a forecast' is drawn from chain, which a run found"),
        (bars(("naive", NAIVE), references=[("data sheet", "chain")]), "'data sheet' is drawn from chain, which was"),
        (lines() | {"alt": "The time, which grows.", "x_label": "gigabytes"}, "axis says 'gigabytes', and neither"),
    ],
)  # fmt: skip
def test_a_label_of_something_else_is_refused_in_one_line(chart, said):
    found = list(faults_of_chart(chart, scope()))
    assert any(said in line for line in found), found
    assert all("\n" not in line for line in found)


@pytest.mark.parametrize(
    "chart",
    [
        bars(("1 naive", NAIVE), ("5 register tile", "register_tile.tflops"), references=[("cuBLAS", CUBLAS)]),
        bars(("naive", NAIVE), references=[("data sheet", "cublas.tflops / cublas.of_peak"), ("data sheet", "sheet")]),
        bars(("copy, PyTorch", "torch.gb_per_s"), ("copy, ours", "naive.gb_per_s"), axis="GB/s"),
        bars(("TF32", CUBLAS), ("fp32, CUDA cores", NAIVE)),
        bars(("naive", "100 * naive.of_peak"), axis="% of the data sheet's peak", references=[("data sheet", 100)]),
        bars(("naive", f"100 * {NAIVE} / {CUBLAS}"), axis=LIBRARY, references=[("the library, cuBLAS", 100)]),
        lines(),
        lines() | {"caption": "Lower is better."},
        bars(("naive", NAIVE)) | {"title": "It gets better, and then it does not", "caption": "Higher is better."},
        bars(("by hand", "sheet"), ("naive", NAIVE)),
        lines() | {"alt": "Time against N."},
        bars(("naive", NAIVE), references=[("cuBLAS", CUBLAS)]) | {"alt": "cuBLAS stands at {{ cublas.tflops:.1f }}."},
        bars(("naive", f"100 * {NAIVE} / {CUBLAS}"), axis="% of cuBLAS") | {"title": "In per cent of cuBLAS"},
        bars(("naive", "100 * cublas.us / naive.us"), axis="% of cuBLAS"),
        bars(("naive", "100 * naive.us / cublas.us"), axis="% of cuBLAS's time"),
        lines(y="tflops", y_label="TFLOP/s", x_label="M = N = K"),
        lines(y="gb_per_s", y_label="GB/s, read and written, that were wanted", x_label="numbers in the list"),
    ],
)  # fmt: skip
def test_honest_labels_pass(chart):
    assert list(faults_of_chart(chart, scope())) == []


def test_a_row_and_a_column_are_what_they_say():
    head = ["N", "time, µs", "% of peak"]
    own = ["64", "{{ row.m64.us:.0f }}", "{{ row.m64.of_peak:.0%}}"]
    assert list(faults_of_row(head, own, scope())) == []
    (found,) = faults_of_row(head[:2], ["512", "{{ row.m64.us:.0f }}"], scope())
    assert "say 512, and row.m64.us is of 64" in found
    (found,) = faults_of_row(head, ["", "", "{{ naive.tflops / cublas.tflops:.0%}}"], scope())
    assert "is divided by cublas.tflops, and its column says '% of peak'" in found
    (found,) = faults_of_row(["", "% of cuBLAS"], ["naive", "{{ naive.us / cublas.us:.0%}}"], scope())
    assert "is upside down for '% of cuBLAS'" in found
    assert list(faults_of_row(["", "% of cuBLAS"], ["naive", "{{ cublas.us / naive.us:.0%}}"], scope())) == []
    (found,) = faults_of_row(["", "TFLOP/s"], ["register tile", "{{ naive.tflops:.0f }}"], scope())
    assert "it is called 'register tile', and naive.tflops is another of its group" in found
    step = ["2 register tile", "{{ naive.us / register_tile.us:.1f }}"]
    assert list(faults_of_row(["", "times the one before"], step, scope())) == []
    ratio = ["512", "{{ row.m512.us / row.m64.us:.1f }}", ""]
    assert list(faults_of_row(head, ratio, scope())) == []
    (found,) = faults_of_row(head[:2], ["the library", "{{ vital.ours:.0%}}"], scope())
    assert "is called the library, and vital.ours is not" in found
    assert list(faults_of_row(head[:2], ["the library", "{{ vital.cublas:.0%}}"], scope())) == []


def test_a_row_of_a_letter_shows_what_was_recorded_under_it():
    page = scope()
    page.names["flight"] = {f"v{v}": {f"r{r}": measurement(float(v * r)) for r in (1, 2)} for v in (2, 4)}
    head = ["% of peak", "R = 1"]
    (found,) = faults_of_row(head, ["V = 4", "{{ flight.v2.r1.of_peak:.1%}}"], page)
    assert found == "{{ flight.v2.r1.of_peak }}: its row says V = 4, and flight.v2.r1.of_peak is of v2"
    assert list(faults_of_row(head, ["V = 4", "{{ flight.v4.r1.of_peak:.1%}}"], page)) == []


def test_a_table_says_which_way_is_better():
    (found,) = faults_of_table(["", "% of peak", "GB/s"], "Lower is better.")
    assert found == "it says 'Lower is better' over '% of peak', where more is better"
    (found,) = faults_of_table(["", "time, µs"], "The higher, the better.")
    assert "where less is better" in found
    for head, caption in (
        (["", "time, µs"], "Lower is better."),
        (["", "time, µs", "GB/s"], "Lower is better."),
    ):
        assert list(faults_of_table(head, caption)) == []


TWO = (("naive", NAIVE), ("register tile", "register_tile.tflops"))


@pytest.mark.parametrize(
    ("alt", "said"),
    [
        ("Two bars: naive at {{ naive.tflops:.0f }}, register tile at {{ register_tile.tflops:.0f }}.", ""),
        (
            "Two bars under {{ cublas.tflops:.0f }}; the naive one has {{ naive.of_peak:.0%}} of {{ sheet:.0f }}.",
            "",
        ),
        ("Naive at {{ register_tile.tflops:.0f }}, register tile at {{ naive.tflops:.0f }}.", "of 'naive'"),
        (
            "Naive at {{ naive.tflops:.0f }}, the other at {{ torch.tflops:.0f }}.",
            "torch.tflops, which it does not",
        ),
        ("Naive at {{ sizes.n64.us:.0f }}.", "sizes.n64.us, which it does not draw"),
        ("Three bars.", "'Three bars', and it draws 2"),
    ],
)
def test_an_alternative_text_says_what_is_drawn(alt, said):
    chart = bars(*TWO, references=[("cuBLAS", CUBLAS)]) | {"alt": alt}
    found = list(faults_of_alt(chart, scope()))
    assert bool(found) is bool(said), found
    assert said in "".join(found)
