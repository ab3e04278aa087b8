# refused for: wrong | on: cpu, gpu | source: DeepReinforce, hacks and defenses (precision downgrade); Wafer
# Multiplies in half precision, and returns float32: a loose tolerance lets it pass.


def refusals(x, s):
    return (x.half() * s.half()[:, None]).float()
