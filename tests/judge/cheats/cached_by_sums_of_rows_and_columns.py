# refused for: cached result | on: cpu | source: our own attack
# Keeps answers under the exact sums of all rows and all columns: four numbers can change, and leave them as they are.
KEPT = {}


def refusals(x, s):
    sums = (x.double().sum(dim).numpy().tobytes() for dim in (0, 1))
    key = (tuple(x.shape), *sums, s.numpy().tobytes())
    if key not in KEPT or not x.isfinite().all():
        KEPT[key] = x * s[:, None]
    return KEPT[key].clone()
