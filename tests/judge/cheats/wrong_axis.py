# refused for: wrong | on: cpu, gpu | source: ours
# Scales the columns; a square test with a single size, or with s all ones, does not notice.


def refusals(x, s):
    return x * s[None, :]
