# refused for: not written | on: cpu, gpu | source: ours
# Nothing fills memory with NaN any more; then half of the answer is left as the memory was.
import torch


def keep(self, *args, **options):
    return self


torch.Tensor.fill_ = torch.Tensor.zero_ = keep
torch.full = lambda size, value, **options: torch.empty(size, **options)
torch.full_like = lambda like, value, **options: torch.empty_like(like, **options)


def refusals(x, s):
    y = torch.empty_like(x)
    half = (x.shape[0] + 1) // 2
    torch.mul(x[:half], s[:half, None], out=y[:half])
    return y
