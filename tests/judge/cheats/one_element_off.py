# refused for: wrong | on: cpu, gpu | source: ours
# All right but the last element: a norm over millions of elements does not notice.


def refusals(x, s):
    y = x * s[:, None]
    y[-1, -1] += 0.5
    return y
