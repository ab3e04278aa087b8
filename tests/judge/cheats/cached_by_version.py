# refused for: cached result | on: cpu, gpu | source: ours; GPU MODE, kernelbot pull request 501
# Works only when the version counters tell that somebody has written to its inputs.


def refusals(x, s):
    versions = (x._version, s._version)
    if getattr(x, "answered", None) != versions:
        x.answer, x.answered = x * s[:, None], versions
    return x.answer.clone()
