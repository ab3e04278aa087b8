# refused for: wrong dtype | on: cpu, gpu | source: DeepReinforce, hacks and defenses (precision downgrade)
# Returns float16, half the bytes to write: a checker that converts before it compares does not see it.


def refusals(x, s):
    return (x * s[:, None]).half()
