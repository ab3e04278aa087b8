# refused for: not a plain tensor | on: cpu, gpu | source: GPU MODE, reference-kernels issue 162 (lazy output)
# A plain tensor of zeros whose own `cpu`, `clone`, `to`, ... multiply: its type is right, its memory is not.
import torch

READS = (
    "cpu",
    "clone",
    "to",
    "double",
    "float",
    "numpy",
    "contiguous",
    "detach",
    "tolist",
    "reshape",
    "view",
)


def refusals(x, s):
    y = torch.zeros_like(x)
    for name in READS:

        def read(*args, _name=name, **options):
            return getattr(x * s[:, None], _name)(*args, **options)

        setattr(y, name, read)
    return y
