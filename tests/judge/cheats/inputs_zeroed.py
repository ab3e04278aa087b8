# refused for: input modified | on: cpu, gpu | source: KernelBench, pull request 82 (zero_out_kernel)
# Zeroes its inputs and returns zeros: a reference that is asked afterwards, with the same tensors, agrees.
import torch


def refusals(x, s):
    x.zero_()
    s.zero_()
    return torch.zeros_like(x)
