# refused for: another stream | on: gpu | source: KernelBench, pull request 82; CUDA-L1; DeepReinforce
# Works on a stream that nobody waits for: events on the current stream time nothing.
import torch


def refusals(x, s):
    with torch.cuda.stream(torch.cuda.Stream()):
        return x * s[:, None]
