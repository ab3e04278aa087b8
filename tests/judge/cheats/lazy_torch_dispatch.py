# refused for: not a plain tensor | on: cpu, gpu | source: DeepReinforce, hacks and defenses (lazy evaluation); ours
# A wrapper without memory: below every operator it puts the product in its own place.
import torch
from torch.utils._pytree import tree_map


class Later(torch.Tensor):
    @staticmethod
    def __new__(cls, x, s):
        later = torch.Tensor._make_wrapper_subclass(cls, x.shape, dtype=x.dtype, device=x.device)
        later.parts = (x, s)
        return later

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        def done(value):
            return value.parts[0] * value.parts[1][:, None] if isinstance(value, Later) else value

        return function(*tree_map(done, args), **tree_map(done, kwargs or {}))


def refusals(x, s):
    return Later(x, s)
