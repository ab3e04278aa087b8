"""How much of a kernel a card runs at once.

Source  CUDA driver API, cuOccupancyMaxActiveClusters
"""

from __future__ import annotations

import ctypes

from course_kernels.cuda.prepared import _CONFIG, Prepared, driver


def clusters_at_once(kernel: Prepared, blocks: int) -> int:
    """How many clusters the card that a kernel was made ready for runs at once.

    Multiprocessors lie in groups, and a cluster within one: what is left over in each group stays idle. How many there
    are in a group differs from card to card, of one kind even.

    Args:
        kernel: made ready for clusters of so many blocks.
        blocks: of a cluster.
    Raises:
        RuntimeError: the driver refused to say.
    """
    ask = driver._function("cuOccupancyMaxActiveClusters", *[ctypes.c_void_p] * 3)
    room, found = kernel._new_room(), ctypes.c_int()
    _CONFIG.pack_into(room.config, room.config_at, blocks, 1, 1, *kernel._fixed, 0)
    config, handle, *_ = room.asked
    error = ask(ctypes.addressof(found), handle, config)
    if error:
        raise RuntimeError(f"clusters_at_once: the driver refused to say: {driver.name_of(error)}")
    return found.value
