# right | on: cpu, gpu
# Keeps compiled functions from one call to the next, and nothing that depends on the values of a tensor.
import functools

SOURCE = """
def scale(x, s):
    return x * s.view({rows}, 1)
"""


@functools.cache
def compiled(rows):
    names = {}
    exec(compile(SOURCE.format(rows=rows), f"<scale {rows}>", "exec"), names)
    return names["scale"]


def refusals(x, s):
    return compiled(x.shape[0])(x, s)
