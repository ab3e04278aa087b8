# refused for: crashed | on: cpu, gpu | source: ours
# Calls itself until Python says stop.


def refusals(x, s):
    return refusals(x, s)
