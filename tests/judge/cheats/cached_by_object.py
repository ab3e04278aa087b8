# refused for: cached result | on: cpu, gpu | source: ours
# Answers once for every tensor, and never looks at its values again.


def refusals(x, s):
    if not hasattr(x, "answer"):
        x.answer = x * s[:, None]
    return x.answer
