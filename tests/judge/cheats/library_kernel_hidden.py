# refused for: not yours | on: cpu, gpu | source: ours
# The same by a name that is put together while it runs: no import statement gives it away.
import importlib


def refusals(x, s):
    module = ".".join(("_".join(("course", "kernels")), "refusals", "staehc"[::-1]))
    return vars(importlib.import_module(module))["hon" + "est"](x, s)
