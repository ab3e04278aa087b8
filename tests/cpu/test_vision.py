"""A vision tower in small: every part against float64, patches, operations by hand."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from course_kernels.measure.check import checked_error
from course_kernels.measure.competitor import Competitor
from course_models.vision import PARTS, VIT_L_14, Shape, Tower, problem, workload

SMALL = Shape(layers=3, width=64, heads=2, hidden=128, patch=14)


@pytest.fixture(scope="module")
def tower():
    return Tower.random(SMALL, 42, device="cpu", attend=scaled_dot_product_attention)


@pytest.mark.parametrize("part", PARTS)
def test_every_part_is_right(tower, part):
    competitor = Competitor("a tower", problem(tower, part), tower.part(part))

    assert checked_error(competitor, workload(2, 42), 0, device="cpu") < 0.05


def test_the_whole_is_its_halves_in_turns(tower):
    exact, pixels = tower.exact(), torch.randn(1, 3, 42, 42, dtype=torch.float64)
    x = exact.embedded(pixels)
    for i in range(SMALL.layers):
        x = exact.mlp(i, exact.attention(i, x))

    assert x.shape == (1, 10, 64)
    assert torch.equal(exact(pixels), x)


def test_a_patch_is_a_square_of_the_picture(tower):
    exact, pixels = tower.exact(), torch.randn(1, 3, 42, 42, dtype=torch.float64)
    other = pixels.clone()
    other[:, :, 14:28, 28:] += 1  # the second row of patches, its third
    changed = (exact.embedded(pixels) != exact.embedded(other)).any(-1)[0]

    assert changed.nonzero().flatten().tolist() == [1 + 3 + 2]
    grid = exact.weights["patches"].reshape(64, 3, 14, 14)
    by_convolution = torch.nn.functional.conv2d(pixels, grid, stride=14).flatten(2).mT
    rows = torch.cat([exact.weights["class"].expand(1, 1, -1), by_convolution], 1) + exact.weights["places"]
    expected = torch.nn.functional.layer_norm(
        rows, (64,), exact.weights["before"], exact.weights["before_bias"]
    )
    torch.testing.assert_close(exact.embedded(pixels), expected)


def test_the_published_tower_by_hand():
    """ViT-L/14 at 336: 577 rows, and by hand 2 operations for each weight of 24 layers, and 4 for each pair."""
    assert VIT_L_14.tokens(336) == 577
    grids = 24 * (4 * 1024**2 + 2 * 1024 * 4096)
    assert VIT_L_14.flops(336) == 2 * 577 * grids + 24 * 4 * 577**2 * 1024 + 2 * 576 * 588 * 1024
    assert VIT_L_14.flops(336, "attention") + VIT_L_14.flops(336, "mlp") < VIT_L_14.flops(336)
