# refused for: wrong | on: cpu | source: ours | says: every size and sign
# Scales by the size of s, which usual inputs never have below 0.


def refusals(x, s):
    return x * s.abs()[:, None]
