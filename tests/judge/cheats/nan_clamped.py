# refused for: NaN lost | on: cpu, gpu | source: ours
# Tidies up: NaN becomes 0. Whoever looks for the NaN later finds none.
import torch


def refusals(x, s):
    return torch.nan_to_num(x * s[:, None], nan=0.0, posinf=torch.inf, neginf=-torch.inf)
