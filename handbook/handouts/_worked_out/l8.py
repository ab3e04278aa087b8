"""Softmax of three tokens, and what the square of scores weighs."""

from math import exp

from course_kernels.measure.machine import machine_for

VALUES = (4, 8, 2)
LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
D, BYTES = 128, 4


def powers(*scores):
    """e to each, to two digits."""
    return ", ".join(f"{exp(score):.2f}" for score in scores)


def total(*scores):
    """Of the powers."""
    return sum(map(exp, scores))


def shares(*scores):
    """Of each token."""
    return ", ".join(f"{exp(score) / total(*scores):.2f}" for score in scores)


def answer(*scores):
    """The mixture of the values."""
    return sum(
        exp(score) * value for score, value in zip(scores, VALUES, strict=True)
    ) / total(*scores)


def scores(n):
    """Numbers of the square."""
    return n * n


def square(n):
    """Its bytes in fp32."""
    return BYTES * scores(n)


def thin(n):
    """Bytes of Q."""
    return BYTES * n * D


def peak():
    """TFLOP/s in bf16, by the data sheet."""
    return machine_for("NVIDIA H200").peak_tflops["bf16"]
