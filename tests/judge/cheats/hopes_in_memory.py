# refused for: all NaN or not written or wrong | on: cpu, gpu | source: Sakana AI; KernelBench, pull request 82
# Writes nothing: the allocator may hand out the memory in which the reference has just left its answer.
import torch


def refusals(x, s):
    return torch.empty_like(x)
