"""Measure one workload from a terminal: the command that stands under every timing in the ledger.

python -m course_kernels.measure attention/k03_flash attention/library.sdpa_flash --workload dtype=bfloat16,N=4096
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from course_kernels.measure.derive import ATTRIBUTES, derive, spread
from course_kernels.measure.leaves import Measurement
from course_kernels.measure.machine import Machine, machine_for
from course_kernels.measure.refused import Refused
from course_kernels.problem import Workload

COLUMNS = (("us", "{:.1f}"), ("tflops", "{:.1f}"), ("gb_per_s", "{:.0f}"), ("of_peak", "{:.1%}"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 when everything was measured, 2 when it was refused or could not be."""
    parser = argparse.ArgumentParser(prog="python -m course_kernels.measure", description=__doc__)
    parser.add_argument("kernels", nargs="+", help="kernel ids, such as attention/k03_flash")
    parser.add_argument("--workload", required=True, help="such as dtype=bfloat16,B=1,H=16,N=4096,D=128")
    parser.add_argument("--seconds", type=float, default=1.0, help="time to sample for each kernel")
    given = parser.parse_args(arguments)
    try:
        workload = Workload.parse(given.workload)
        import torch

        from course_kernels.measure.competitor import competitor_named
        from course_kernels.measure.run import compare

        field = {kernel: competitor_named(kernel) for kernel in given.kernels}
        results = compare(field, workload, seconds=given.seconds)
    except (Refused, RuntimeError, ValueError, TypeError, KeyError, AttributeError, ImportError) as error:
        line = str(error).strip().splitlines()
        name = "" if isinstance(error, Refused) else f"{type(error).__name__}: "
        advice = "; pip install -e '.[measure]'" if isinstance(error, ImportError) else ""
        print(f"not measured: {name}{line[0] if line else ''}{advice}", file=sys.stderr)
        return 2
    gpu = torch.cuda.get_device_name()
    print("\n".join(report(gpu, workload, results, machine_for(gpu))))
    return 0


def report(
    gpu: str, workload: Workload, results: dict[str, Measurement], machine: Machine | None
) -> list[str]:
    """The lines of a short table."""
    head = ["kernel", *(ATTRIBUTES[name][0] if name != "of_peak" else "of peak" for name, _ in COLUMNS)]
    rows = [[*head, "spread", "n", "error"]]
    for measured in results.values():
        values = [(form, derive(measured, name, None, machine)) for name, form in COLUMNS]
        rows.append(
            [
                measured.kernel,
                *("–" if value is None else form.format(value) for form, value in values),
                f"{spread(measured):.1%}",
                str(measured.n),
                f"{measured.error:.1e}",
            ]
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [f"{gpu}, {workload.label}"]
    lines += [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]
    return lines


if __name__ == "__main__":
    sys.exit(main())
