# refused for: not yours | on: cpu, gpu | source: Kevin-32B and KernelBench (the reference copied or inherited)
# Calls the reference of the problem, and rounds what comes back.
from course_kernels.refusals.problem import PROBLEM


def refusals(x, s):
    return PROBLEM.reference(x, s).to(x.dtype)
