"""The card that these kernels are for, and the one line that a reader with another one gets."""

from __future__ import annotations

import torch

# sm_100a and sm_103a have tcgen05 and tensor memory; what is compiled for one runs on the other no more than on Hopper.
CARDS = {(10, 0): "B200", (10, 3): "B300"}


def check_card(kernel: str) -> None:
    """Refuse every card but data-centre Blackwell, before anything is compiled or allocated.

    Args:
        kernel: its name in `machine_code.KERNELS`.
    Raises:
        ValueError: there is no GPU, or the current one has another compute capability than 10.0 or 10.3. The line says
            what is wanted, what is here, and how to read the kernel all the same.
    """
    if not torch.cuda.is_available():
        here = "no GPU"
    else:
        capability = torch.cuda.get_device_capability()
        if capability in CARDS:
            return
        here = f"{'.'.join(map(str, capability))} ({torch.cuda.get_device_name()})"
    wanted = " or ".join(f"{major}.{minor} ({name})" for (major, minor), name in CARDS.items())
    raise ValueError(
        f"blackwell, {kernel}: expected a GPU of compute capability {wanted}, got {here}; "
        f"compiled, it can be read anywhere: python -m course_kernels.blackwell {kernel}"
    )
