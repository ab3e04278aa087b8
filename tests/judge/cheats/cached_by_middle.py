# refused for: cached result | on: cpu | source: our own attack
# Keeps answers under the middle half of the matrix, number by number; its first and its last quarter are not looked at.
KEPT = {}


def refusals(x, s):
    n, flat = x.numel(), x.view(-1)
    key = (tuple(x.shape), flat[n // 4 : n - n // 4].numpy().tobytes(), s.numpy().tobytes())
    if key not in KEPT or n < 16:
        KEPT[key] = x * s[:, None]
    return KEPT[key].clone()
