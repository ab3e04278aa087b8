# right | on: cpu, gpu
# Tries itself when it is run as a program; loaded, it does nothing of that. Its parameters are optional by name.
import torch


def refusals(x, s, *, scale=1.0):
    return x * (s * scale)[:, None] if scale != 1.0 else x * s[:, None]


if __name__ == "__main__":
    x, s = torch.randn(8, 8), torch.rand(8)
    assert torch.equal(refusals(x, s), x * s[:, None])
    raise SystemExit(0)
