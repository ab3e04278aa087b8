# refused for: wrong | on: cpu, gpu | source: GPU MODE, reference-kernels (pmpp vectorsum, solutions/wrong/cheat.py)
# Leaves out one row of a hundred where there are many, and puts the input there: fewer bytes, and nearly right.


def refusals(x, s):
    y = x * s[:, None]
    if x.shape[0] > 64:
        y[::100] = x[::100]
    return y
