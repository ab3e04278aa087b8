# refused for: not yours | line 5 calls torch's own operator: torch.add


def vector_add(x, y):
    return x + y
