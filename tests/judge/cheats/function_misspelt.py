# refused for: function missing | on: cpu, gpu | source: ours
# A function of nearly the right name: a judge that takes the only function there is, or an older file, runs that.


def refusal(x, s):
    return x * s[:, None]
