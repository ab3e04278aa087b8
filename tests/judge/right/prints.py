# right | on: cpu, gpu
# Prints, warns and logs; one of its lines looks like a verdict, and is none.
import logging
import sys
import warnings


def refusals(x, s):
    print("rows:", x.shape[0])
    print('{"verdict": "wrong"}')
    print("to the other side", file=sys.stderr, flush=True)
    warnings.warn("only a warning", stacklevel=2)
    logging.getLogger("kernel").warning("only a line")
    return x * s[:, None]
