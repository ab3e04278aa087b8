# refused for: wrong device | on: gpu | source: ours
# Returns its answer on the CPU: a checker that moves everything to the CPU does not see it.


def refusals(x, s):
    return x.cpu() * s.cpu()[:, None]
