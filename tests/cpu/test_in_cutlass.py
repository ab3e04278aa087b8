"""CUTLASS's order of the tiles: the swizzle that a launch asks for adds no tile that another would spare."""

import pytest

from course_kernels.gemm.in_cutlass import BEST, CONFIGS, Config, swizzle_for, tiles_walked

WIDE = CONFIGS[BEST]


@pytest.mark.parametrize(
    ("M", "N", "swizzle", "tiles"),
    # What CUTLASS's own host code says: findings/cutlass_swizzle_rounds_up.sh.
    [(1024, 4096, 8, 256), (1024, 4096, 4, 128), (1024, 4096, 2, 128), (1024, 4096, 1, 128),
     (4096, 4096, 8, 512), (8192, 8192, 8, 2048)],
)  # fmt: skip
def test_tiles_are_counted_as_cutlass_counts_them(M, N, swizzle, tiles):
    assert tiles_walked(M, N, WIDE, swizzle) == tiles


@pytest.mark.parametrize(
    ("M", "N", "swizzle"), [(1024, 4096, 4), (1024, 14336, 4), (4096, 4096, 8), (8192, 8192, 8), (1, 8, 8)]
)
def test_a_launch_asks_for_as_much_as_adds_no_tile(M, N, swizzle):
    assert swizzle_for(M, N, WIDE) == swizzle


def test_no_other_swizzle_has_fewer_tiles_and_no_larger_one_as_few():
    for config in (*CONFIGS.values(), Config(128, 256, CLUSTER_M=1, CLUSTER_N=2, swizzle=4)):
        for M in range(64, 4200, 331):
            for N in range(64, 9000, 509):
                chosen = swizzle_for(M, N, config)
                walked = {s: tiles_walked(M, N, config, s) for s in (1, 2, 4, 8) if s <= config.swizzle}
                assert walked[chosen] == min(walked.values())
                assert all(tiles > walked[chosen] for s, tiles in walked.items() if s > chosen)
