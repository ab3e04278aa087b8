"""A systolic array, cycle by cycle: its sums are those of a product, and a cell takes only what its neighbours have."""

import itertools

import numpy as np
import pytest

from course_chips import systolic


def given(M, K, N, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(-9, 10, (M, K)).astype(float), rng.integers(-9, 10, (K, N)).astype(float)


SHAPES = [(1, 1, 1), (1, 4, 4), (3, 4, 4), (5, 2, 3), (2, 7, 3), (9, 3, 8)]


@pytest.mark.parametrize("shape", SHAPES)
def test_what_comes_out_below_is_the_product(shape):
    a, b = given(*shape)
    c, seen = systolic.multiply(a, b)
    assert (c == a @ b).all()
    assert [one.number for one in seen] == list(range(1, sum(shape) - 1))


@pytest.mark.parametrize("shape", SHAPES)
def test_every_cell_works_once_on_every_row(shape):
    M, K, N = shape
    _, seen = systolic.multiply(*given(*shape))
    assert sum(one.busy for one in seen) == M * K * N
    assert systolic.share(seen) == pytest.approx(M / (M + K + N - 2))
    for row in range(M):
        assert (sum((one.row == row).astype(int) for one in seen) == 1).all()


def test_a_number_goes_one_cell_to_the_right_and_a_sum_one_cell_down():
    M, K, N = 5, 4, 6
    _, seen = systolic.multiply(*given(M, K, N))
    for before, after in itertools.pairwise(seen):
        assert (after.row[:, 1:] == before.row[:, :-1]).all()
        # The sum that meets row m in a cell was with row m in the cell above.
        assert (after.row[1:] == before.row[:-1]).all()
    for m in range(M):
        for n in range(N):
            [cycle] = [one.number for one in seen for row, column, _ in one.left if (row, column) == (m, n)]
            assert cycle == m + K + n


def test_the_larger_the_product_the_less_its_ends_matter():
    b = given(1, 16, 16)[1]
    shares = [systolic.share(systolic.multiply(np.ones((M, 16)), b)[1]) for M in (1, 16, 128)]
    assert shares == pytest.approx([1 / 31, 16 / 46, 128 / 158])


@pytest.mark.parametrize("shapes", [((2, 3), (4, 2)), ((3,), (3, 2)), ((0, 3), (3, 2))])
def test_shapes_that_do_not_fit_are_refused(shapes):
    with pytest.raises(ValueError, match="expected A"):
        list(systolic.cycles(*map(np.zeros, shapes)))


def test_the_grids_are_drawn_side_by_side():
    _, seen = systolic.multiply(*given(2, 2, 2))
    assert systolic.drawn(seen) == (
        "cycle 1   cycle 2   cycle 3\n1 .       2 1       . 2\n. .       1 .       2 1\n\ncycle 4\n. .\n. 2"
    )


def test_the_command_draws_checks_and_counts(capsys):
    assert systolic.main([]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("cycle 1   cycle 2   cycle 3\n1 . . .   2 1 . .   3 2 1 .\n")
    assert shown.endswith("right: 9 cycles, 33% of the cells' cycles in use\n")
    assert systolic.main(["1", "2", "2"]) == 0
    assert "right: 3 cycles, 33%" in capsys.readouterr().out
