# refused for: wrong | on: cpu, gpu | source: DeepReinforce, hacks and defenses (precision downgrade)
# Multiplies in bfloat16, and returns float32: eight bits of the answer are right.
import torch


def refusals(x, s):
    return (x.to(torch.bfloat16) * s.to(torch.bfloat16)[:, None]).to(x.dtype)
