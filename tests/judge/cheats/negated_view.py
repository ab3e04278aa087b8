# refused for: not a plain tensor | on: cpu, gpu | source: ours
# Stores minus the answer, and marks the tensor as negated: the reader does the last step.
import torch


def refusals(x, s):
    return torch._neg_view(x * -s[:, None])
