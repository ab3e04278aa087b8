# refused for: not yours | on: cpu, gpu | source: ours
# Calls the kernel that the course has already written.
from course_kernels.refusals.cheats import honest


def refusals(x, s):
    return honest(x, s)
