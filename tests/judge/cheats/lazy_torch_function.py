# refused for: not a plain tensor | on: cpu, gpu | source: ours; DeepReinforce, hacks and defenses (lazy evaluation)
# Hands out a promise: the work is done when the answer is compared, out of the clock's sight.
import torch


class Later(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            done = [a.parts[0] * a.parts[1][:, None] if isinstance(a, Later) else a for a in args]
            return function(*done, **(kwargs or {}))


def refusals(x, s):
    later = torch.empty_like(x).as_subclass(Later)
    later.parts = (x, s)
    return later
