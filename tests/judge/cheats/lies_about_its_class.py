# refused for: not a plain tensor | on: cpu, gpu | source: ours
# A lazy subclass that gives torch.Tensor as its class: isinstance and `__class__` believe it.
import torch


class Later(torch.Tensor):
    @property
    def __class__(self):
        return torch.Tensor

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            done = [a.parts[0] * a.parts[1][:, None] if type(a) is Later else a for a in args]
            return function(*done, **(kwargs or {}))


def refusals(x, s):
    later = torch.empty_like(x).as_subclass(Later)
    later.parts = (x, s)
    return later


Later.__name__ = Later.__qualname__ = "Tensor"
