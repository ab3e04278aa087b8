# refused for: cached result | on: cpu, gpu | source: CUDA-L1; GPU MODE, kernelbot pull request 501
# Keeps answers under the addresses of the inputs: a new object at the same place gets the old answer.

ANSWERS = {}


def refusals(x, s):
    key = x.data_ptr(), s.data_ptr(), x.shape
    if key not in ANSWERS:
        ANSWERS[key] = x * s[:, None]
    return ANSWERS[key].clone()
