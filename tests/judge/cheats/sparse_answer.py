# refused for: not a plain tensor | on: cpu, gpu | source: ours
# Returns the answer in a sparse layout, which other tests of tensors treat as they treat a dense one.


def refusals(x, s):
    return (x * s[:, None]).to_sparse()
