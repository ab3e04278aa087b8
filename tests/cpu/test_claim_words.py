"""A claim that ranks has an inequality that ranks, and no condition holds for every card."""

import pytest
from test_values import measurement

from course_kernels.measure.machine import machine_for
from course_site.lint.claim_words import faults_of, faults_of_otherwise
from course_site.values.claims import judge
from course_site.values.values import Define, Scope


def scope():
    kernels = {
        "ours": ("gemm/k03_mma_sync", 100.0), "cublas": ("gemm/library.cublas", 110.0),
        "triton": ("gemm/k05_triton", 105.0), "wmma": ("gemm/k02_wmma", 480.0),
        "sdpa": ("attention/library.sdpa", 101.0),
        "padded": ("transpose/k03_padded", 90.0), "tiled": ("transpose/k02_tiled", 95.0),
        "compiled": ("prefill, compiled", 95.0),
    }  # fmt: skip
    names = {name: measurement(us) | {"kernel": kernel} for name, (kernel, us) in kernels.items()}
    page = Scope("w1", names, machine_for("NVIDIA H200"))
    page.defines["lead"] = Define("lead", "cublas.us / ours.us", "×")
    return page


@pytest.mark.parametrize(
    ("sentence", "condition", "said"),
    [
        # a bound that does not say so much
        ("At both our kernel **beats** cuBLAS.", "ours.tflops > 0.95 * cublas.tflops", "at least 1 times the speed"),
        ("Ours is faster than cuBLAS.", "lead > 0.97", "at least 1 times the speed of cuBLAS"),
        ("Here we are ahead of the library.", "cublas.us > 0.9 * ours.us", "at least 1 times the speed"),
        ("It beats cuBLAS.", "ours.us > cublas.us", "at least 1 times the speed"),
        ("It beats cublas.", "ours.us > cublas.us", "at least 1 times the speed"),
        ("Ours loses to cuBLAS.", "ours.us > 0.9 * cublas.us", "at most 1 times the speed"),
        ("Ours is slower than cuBLAS.", "ours.us < cublas.us", "at most 1 times the speed"),
        ("cuBLAS beats our kernel.", "ours.us < cublas.us", "at most 1 times the speed of cuBLAS"),
        ("`torch.compile` is ahead of us.", "ours.us < compiled.us", "at most 1 times the speed of torch.compile"),
        # no plain inequality
        ("Our kernel beats cuBLAS.", "1 - ours.us / cublas.us < 0.3", "needs a plain inequality"),
        ("Our kernel beats cuBLAS.", "abs(ours.us / cublas.us - 1) < 0.06", "needs a plain inequality"),
        ("Our kernel beats cuBLAS.", "ours.us < cublas.us or triton.us < 200", "of an `or` either part may be false"),
        # one side alone
        ("WMMA is on par with cuBLAS.", "wmma.us < 50 * cublas.us", "a bound on both sides"),
        ("WMMA is as fast as cuBLAS.", "0.1 < cublas.us / wmma.us < 50", "a bound on both sides"),
        ("The two are level with cuBLAS.", "ours.us < 1.1 * cublas.us", "a bound on both sides"),
        # somebody who is not in the condition
        ("The CUDA kernel beats cuBLAS.", "triton.us < cublas.us", "speaks of 'CUDA'"),
        ("Triton beats cuBLAS.", "ours.us < cublas.us", "speaks of 'Triton'"),
        ("Our kernel wins against cuDNN.", "ours.us < cublas.us", "speaks of 'cuDNN'"),
        ("The padded kernel wins.", "tiled.us < cublas.us", "speaks of 'padded'"),
        # nobody it is compared with
        ("The padded kernel is the faster one.", "tiled.us < padded.us", "is said of 'padded'"),
        ("The tiled one is the slowest.", "tiled.us < padded.us", "is said of 'tiled'"),
        ("Written out in PyTorch it is the fastest of all.", "triton.us < ours.us", "speaks of 'PyTorch'"),
        ("The WMMA kernel is slower still.", "triton.us < ours.us", "speaks of 'WMMA'"),
        # more than a run can test
        ("At no size is cuBLAS ahead of ours.", "ours.us < cublas.us", "*At no* is more than one run can test"),
        ("Ours always beats cuBLAS.", "ours.us < cublas.us", "*always* is more"),
        ("Ours beats cuBLAS for every shape.", "ours.us < cublas.us", "*for every* is more"),
        ("It is so on no card.", "ours.us < cublas.us", "*no card* is more than one card can test"),
        ("It holds on any GPU.", "ours.us < cublas.us", "*any GPU* is more"),
        ("This proves that the queue was the cause.", "ours.us < cublas.us", "proves no cause"),
    ],
)  # fmt: skip
def test_a_claim_that_boasts_is_refused_in_one_line(sentence, condition, said):
    found = list(faults_of(sentence, condition, scope()))
    assert len(found) == 1
    assert said in found[0]
    assert "\n" not in found[0]


@pytest.mark.parametrize(
    ("sentence", "condition"),
    [
        ("At both our kernel **beats** cuBLAS.", "ours.us < cublas.us"),
        ("Ours is ahead of the library, {{ lead:.2f}} times its speed.", "lead > 1.02"),
        ("Against cuBLAS we win.", "ours.tflops > 1.02 * cublas.tflops and ours.us < 200"),
        ("Against cuBLAS this kernel loses.", "0.75 < cublas.us / ours.us < 1"),
        ("cuBLAS beats our kernel.", "cublas.us < ours.us"),
        ("And `torch.compile` is ahead of us.", "compiled.us < ours.us"),
        ("Ours is on par with cuBLAS.", "0.93 < cublas.us / ours.us < 1.1"),
        ("The kernel is level with the library.", "abs(ours.us / cublas.us - 1) < 0.07"),
        ("Level with SDPA, at both.", "max(ours.us / sdpa.us, tiled.us / sdpa.us) < 1.1 and ours.us / sdpa.us > 0.9"),
        ("It is {{ lead:.1f}} times as quick as cuBLAS.", "lead > 1.02"),
        ("The padded one is ahead.", "padded.us < tiled.us"),
        ("The padded kernel is the faster one.", "padded.us < tiled.us"),
        ("The tiled one is the slower of the two.", "padded.us < tiled.us"),
        ("Triton is the fastest.", "triton.us < ours.us"),
        ("A slower clock is likely the cause.", "triton.us < ours.us"),
        ("On no card of this model do we expect otherwise.", "ours.us < cublas.us"),
        ("There is no faster instruction, and every load counts.", "ours.us < cublas.us"),
        ("It is strong support, and no proof.", "ours.us < cublas.us"),
        ("The Triton kernel beats cuBLAS.", "triton.us < cublas.us"),
        ("The CUDA kernel beats cuBLAS, in a CUDA graph.", "ours.us < cublas.us"),
    ],
)  # fmt: skip
def test_a_claim_that_says_what_is_tested_passes(sentence, condition):
    assert list(faults_of(sentence, condition, scope())) == []


def test_where_a_condition_is_false_nobody_wins():
    (found,) = faults_of_otherwise("On this card ours is ahead of cuBLAS.")
    assert "appears where its condition is false" in found
    assert list(faults_of_otherwise("Ours takes {{ ours.us:.0f }} µs, cuBLAS {{ cublas.us:.0f }}.")) == []


def test_each_part_that_compares_timings_must_say_something():
    told = judge("ours.us < cublas.us and wmma.us < 50 * cublas.us", scope())
    assert told.vacuous
    assert "in its part `wmma.us < 50 * cublas.us`" in told.why
    assert not judge("ours.us < cublas.us and wmma.us > 3 * cublas.us", scope()).vacuous
    false = judge("ours.us > 2 * cublas.us and wmma.us < 50 * cublas.us", scope())
    assert "is false" in false.why
