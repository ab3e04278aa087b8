"""Everything derived from samples: statistics, rates, floors, units, JSON; and that none of it needs torch."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from course_kernels.measure import provenance as provenance_module
from course_kernels.measure.derive import ATTRIBUTES, derive, spread
from course_kernels.measure.machine import MACHINES, machine_for
from course_kernels.measure.provenance import provenance, slug_of
from course_kernels.measure.record_types import Counted, Measurement, Quantity, Text, Trace, leaf_from_json
from course_kernels.measure.roofline import FasterThanFloor, bound, check_floor, floor_us
from course_kernels.measure.summary import measurement_of
from course_kernels.problem import MATHS, Problem, Workload

W = Workload.of("bfloat16", N=1000)
H200 = machine_for("NVIDIA H200")


def cost(reads=0, writes=0, flops=0, math="bf16"):
    return Problem(
        name="fake",
        formula="",
        make_inputs=lambda w, generator, device: (),
        reference=lambda: None,
        reads_bytes=lambda w: reads,
        writes_bytes=lambda w: writes,
        flops=lambda w: flops,
        math=lambda w: math,
        max_error=lambda w: 0.5,
        check_on=(W,),
        time_on=(W,),
    )


READING = {
    "sm_mhz": 1000,
    "memory_mhz": 2000,
    "power_w": 100.0,
    "temperature_c": 30,
    "throttle": [],
}


def measured(samples, problem, **how):
    how = {"host_us": [7.0], "running": [READING], **how}
    return measurement_of("fake/k01", W, problem, samples, group="g", error=0.25, **how)


def test_quantiles_are_of_all_samples():
    m = measured(np.arange(1.0, 1001.0), cost(1))

    assert m.n == m.rounds == 1000
    assert len(m.samples_us) == 200
    assert m.quantiles_us["0"] == 1.0
    assert m.quantiles_us["0.5"] == m.median_us == 500.5
    assert m.quantiles_us["1"] == 1000.0
    assert list(m.quantiles_us) == ["0", "0.05", "0.25", "0.5", "0.75", "0.95", "1"]


def test_a_round_that_is_not_stored_still_counts_for_the_quantiles():
    samples = np.ones(1000)
    samples[1] = 50.0

    m = measured(samples, cost(1))

    assert max(m.samples_us) == 1.0
    assert m.quantiles_us["1"] == 50.0


def test_stored_samples_are_the_same_rounds_for_a_whole_group():
    rounds = np.arange(777.0)

    a, b = measured(rounds, cost(1)), measured(rounds + 10_000, cost(1))

    assert [value + 10_000 for value in a.samples_us] == b.samples_us
    assert (a.samples_us[0], a.samples_us[-1]) == (0.0, 776.0)


def test_few_samples_are_all_kept():
    assert measured([3.0, 1.0, 2.0], cost(1)).samples_us == [3.0, 1.0, 2.0]


def test_microseconds_are_kept_to_the_nanosecond():
    m = measured([1.23456] * 3, cost(1), host_us=[7.65432])

    assert (m.samples_us, m.blocks_us) == ([1.235] * 3, [1.235])
    assert set(m.quantiles_us.values()) == {1.235}
    assert set(m.host_us.values()) == {7.654}


def test_spread_is_how_far_apart_the_blocks_lie():
    blocks = [0, 0, 0, 1, 1, 1, 2, 2, 2]
    m = measured([9.0, 10.0, 99.0, 10.0, 10.0, 10.0, 11.0, 11.0, 0.0], cost(1), blocks=blocks)

    assert m.blocks_us == [10.0, 10.0, 11.0]
    assert spread(m) == derive(m, "spread") == pytest.approx(1 / 10)
    assert spread(Measurement.from_json({**m.as_json(), "blocks_us": []})) == 0


def test_rates():
    m = measured([10.0], cost(reads=3_000_000, writes=1_000_000, flops=8_000_000))

    assert derive(m, "us") == 10.0
    assert derive(m, "ms") == 0.01
    assert derive(m, "s") == pytest.approx(1e-5)
    assert derive(m, "tflops") == pytest.approx(0.8)
    assert derive(m, "gflops") == pytest.approx(800)
    assert derive(m, "gb_per_s") == pytest.approx(400)
    assert derive(m, "tb_per_s") == pytest.approx(0.4)
    assert derive(m, "hbm_mb") == pytest.approx(4)
    assert derive(m, "hbm_gb") == pytest.approx(0.004)
    assert derive(m, "gflop") == pytest.approx(0.008)
    assert derive(m, "intensity") == pytest.approx(2)
    assert derive(m, "error") == 0.25
    assert derive(m, "n") == 1


def test_every_attribute_takes_an_array_of_times():
    m = measured([10.0], cost(reads=3_000_000, writes=1_000_000, flops=8_000_000))
    times = np.array([5.0, 10.0, 20.0])

    for name in ATTRIBUTES:
        value, values = derive(m, name, 10.0, H200), derive(m, name, times, H200)
        assert np.broadcast_to(values, 3)[1] == pytest.approx(value), name
    assert list(derive(m, "gb_per_s", times)) == pytest.approx([800, 400, 200])


def test_an_unknown_attribute_names_the_known_ones():
    with pytest.raises(KeyError, match="no 'speed'; it has us, ms"):
        derive(measured([1.0], cost(1)), "speed")


def test_of_peak_takes_the_peak_that_binds():
    copying = measured([1000.0], cost(reads=10**9, writes=10**9, flops=10))
    multiplying = measured([1000.0], cost(reads=10**6, writes=10**6, flops=10**11))

    assert bound(copying, H200) == "memory"
    assert derive(copying, "of_peak", None, H200) == derive(copying, "of_bandwidth", None, H200)
    assert derive(copying, "of_peak", None, H200) == pytest.approx(
        2e9 / 1e-3 / (H200.bandwidth_gb_per_s * 1e9)
    )
    assert bound(multiplying, H200) == "compute"
    assert derive(multiplying, "of_peak", None, H200) == pytest.approx(
        1e11 / 1e-3 / (H200.peak_tflops["bf16"] * 1e12)
    )


def test_without_a_data_sheet_there_is_no_percent_of_peak():
    m = measured([10.0], cost(reads=1, flops=1, math="fp8"))

    for name in ("of_peak", "of_compute", "of_bandwidth", "floor_us"):
        assert derive(m, name, 10.0, None) is None
    a100 = machine_for("NVIDIA A100-SXM4-80GB")
    assert derive(m, "of_compute", 10.0, a100) is None  # no fp8 there
    assert derive(m, "of_peak", 10.0, a100) is None


def test_state_is_the_median_of_the_readings_while_it_ran():
    running = [{**READING, "sm_mhz": mhz, "power_w": None} for mhz in (1000, 1900, 2000)]
    m = measured([1.0], cost(1), running=running)

    assert derive(m, "sm_mhz") == 1900
    assert derive(m, "power_w") is None
    assert derive(measured([1.0], cost(1), running=[]), "sm_mhz") is None


def test_the_hosts_cost_has_quantiles_of_its_own():
    m = measured([1.0] * 3, cost(1), host_us=[40.0, 44.0, 900.0], host_bound=1)

    assert m.host_us == {"0.25": 42.0, "0.5": 44.0, "0.75": 472.0}
    assert derive(m, "host_us") == 44.0
    assert derive(m, "host_bound") == 1


def test_floor_leaves_out_writes_that_fit_into_the_cache():
    bandwidth = H200.bandwidth_gb_per_s * 1e3  # bytes per µs
    read = measured([1.0], cost(reads=480_000_000))
    small_write = measured([1.0], cost(reads=480_000_000, writes=H200.l2_bytes))
    large_write = measured([1.0], cost(reads=480_000_000, writes=H200.l2_bytes + 4800))

    assert floor_us(read, H200) == pytest.approx(480_000_000 / bandwidth)
    assert floor_us(small_write, H200) == floor_us(read, H200)
    assert floor_us(large_write, H200) == pytest.approx(floor_us(read, H200) + 4800 / bandwidth)


def test_faster_than_the_floor_is_refused():
    m = measured([1.0], cost(reads=480_000_000))
    floor = floor_us(m, H200)

    check_floor("fake", floor, m, H200)
    check_floor("fake", 0.0, m, None)
    for median in (floor * 0.999, 0.0, float("nan")):
        with pytest.raises(FasterThanFloor, match="fake: faster than the floor: "):
            check_floor("fake", median, m, H200)


def test_json_round_trips():
    leaves = [
        measured([1.5, 2.5], cost(reads=3, writes=4, flops=5)),
        Counted("fake/k01", W.as_json(), 3.0, 4.0, [{"name": "k", "read_bytes": 3.0, "write_bytes": 4.0}]),
        Quantity(1.5, "B", "counted"),
        Text("a line"),
        Trace({"t_s": [0.0, 0.1], "power_w": [1.0, 2.0]}),
    ]

    for leaf in leaves:
        data = json.loads(json.dumps(leaf.as_json(), allow_nan=False))
        assert data["kind"] == leaf.kind
        assert leaf_from_json(data) == leaf


def test_a_later_versions_key_is_ignored():
    m = measured([1.0], cost(1))

    assert Measurement.from_json({**m.as_json(), "later": 1}) == m


def test_a_record_from_before_the_blocks_can_be_read():
    old = {key: value for key, value in measured([1.0], cost(1)).as_json().items() if key not in
           ("blocks_us", "every", "seed", "host_us", "host_bound", "running")}  # fmt: skip

    m = Measurement.from_json({**old, "before": {}, "after": {}})

    assert (m.median_us, m.every, m.blocks_us) == (1.0, 1, [])
    assert (m.seed, m.host_us, m.host_bound, m.running) == (0, {}, 0, [])
    assert derive(m, "host_us") is None


def test_recording_needs_neither_torch_nor_numpy():
    code = (
        "import sys\n"
        "from course_kernels.measure import quantity, record, text, trace, Measurement\n"
        "record(a=quantity(1), b=text('x'), c=trace({'t_s': [1]}))\n"
        "print(sorted({'torch', 'numpy', 'pynvml'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"


def test_unknown_data_is_one_line():
    with pytest.raises(
        ValueError, match="expected a kind out of measurement, counted, quantity, samples, text, trace"
    ):
        leaf_from_json({"kind": "speed"})


def test_machines_are_complete():
    for machine in MACHINES:
        assert set(machine.peak_tflops) <= set(MATHS)
        assert {"bf16", "fp16", "fp32", "tf32"} <= set(machine.peak_tflops)
        assert machine.source == f"nvidia-{machine.slug}"
        sms = machine.multiprocessors
        if sms is None:
            continue
        # A data sheet's peak is no more than what its multiprocessors do at their highest clock, and a round figure.
        for math, per_clock in {**sms.tensor_flops, "fp32": 2 * sms.fp32_lanes}.items():
            by_hand = per_clock * sms.count * sms.max_mhz / 1e6
            assert 0.99 * machine.peak_tflops[math] < by_hand < 1.1 * machine.peak_tflops[math]
    assert len({machine.slug for machine in MACHINES}) == len(MACHINES)


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA B200", "b200"),
    ],
)
def test_a_card_is_known_by_its_drivers_name(name, slug):
    assert machine_for(name).slug == slug


@pytest.mark.parametrize(
    "name",
    ["NVIDIA H200 NVL", "NVIDIA H100 PCIe", "NVIDIA H100 NVL", "NVIDIA L40", "NVIDIA A100-SXM4-40GB", ""],
)
def test_a_card_with_other_peaks_is_not_taken_for_it(name):
    assert machine_for(name) is None


def test_slug():
    assert slug_of("NVIDIA H200") == "nvidia-h200"
    assert slug_of("NVIDIA GeForce RTX 4090") == "nvidia-geforce-rtx-4090"
    assert slug_of("NVIDIA A100-SXM4-80GB") == "nvidia-a100-sxm4-80gb"


def test_provenance_without_anything(monkeypatch):
    monkeypatch.setattr(provenance_module, "_module", lambda name: None)
    monkeypatch.setattr(provenance_module, "_git", lambda *arguments: None)

    found = provenance()

    assert {key for key, value in found.items() if value is None} == {
        "gpu", "slug", "uuid", "driver", "cuda", "torch", "triton", "commit", "dirty",
    }  # fmt: skip
    assert found["count"] == 0
    assert found["date"].endswith("+00:00")


def test_provenance_keys():
    assert list(provenance()) == [
        "gpu", "slug", "uuid", "count", "driver", "cuda", "torch", "triton", "python", "date", "commit", "dirty",
    ]  # fmt: skip


def test_reading_a_record_imports_no_torch():
    code = (
        "import sys, course_kernels.measure.derive, course_kernels.measure.machine, "
        "course_kernels.measure.roofline, course_kernels.measure.provenance\n"
        "from course_kernels.measure import Measurement, FasterThanFloor\n"
        "print(sorted({'torch', 'triton', 'pynvml'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
