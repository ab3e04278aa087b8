# refused for: wrong | on: cpu | source: ours | says: every size and sign
# Brings finite numbers within a million, but for those near the end of the type.
import torch


def refusals(x, s):
    odd = ~x.isfinite() | (x.abs() > 1e29)
    return torch.where(odd, x, x.clamp(-1e6, 1e6)) * s[:, None]
