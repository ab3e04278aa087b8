"""Layouts by hand: addresses, coordinates, strides, coalesce, compose, complement, tiles, threads, banks."""


def flat(numbers):
    """Return all numbers of a shape or stride in one list, from the left; this one is given."""
    return [numbers] if isinstance(numbers, int) else [one for part in numbers for one in flat(part)]


def address(coordinate, stride):
    """Return where a coordinate lies: a number for each number of the coordinate, and a stride for each."""
    return sum(digit * step for digit, step in zip(coordinate, stride, strict=True))


def size(shape):
    """Return how many coordinates a shape has."""
    total = 1
    for count in shape:
        total *= count
    return total


def cosize(shape, stride):
    """Return how many places of memory a layout needs, from address 0 to its largest."""
    return 1 + address([count - 1 for count in shape], stride)


def coordinate(index, shape):
    """Return the coordinate of the index-th element, as a list; the first number runs first."""
    digits = []
    for count in shape:
        digits.append(index % count)
        index //= count
    return digits


def column_major(shape):
    """Return the strides for elements without a gap, the first number of the coordinate running first."""


def row_major(rows, columns, pad):
    """Return the two strides of a matrix stored row by row, with `pad` unused places after each row."""


def where(shape, stride, index):
    """Return the address of the index-th element; a number of the shape may be a list of numbers itself."""


def coalesce(shape, stride):
    """Return (shape, stride) of the same addresses in the same order, with as few numbers as possible."""


def through(outer, inner, index):
    """Return the address through two layouts: the inner one gives an index of the outer one."""


def every(shape, stride, count, step):
    """Return (shape, stride) of `count` elements of a layout, every `step`-th one, from the first on."""


def compose(outer, inner):
    """Return (shape, stride) of the layout that leads through the inner layout and then the outer one."""


def complement(shape, stride, bound):
    """Return (shape, stride) of the places at which the layout must be repeated to fill 0 to bound - 1."""


def divide(outer, tile):
    """Return (shape, stride) of a layout cut into tiles: first the element in its tile, then the tile."""


def product(tile, many):
    """Return (shape, stride) of a tile repeated: first the element in its tile, then the tile, laid as `many` says."""


def blocked(threads, values):
    """Return (shape, stride) from (thread, value) to place: each thread has its values side by side."""


def raked(threads, values):
    """Return (shape, stride) from (thread, value) to place: with each value the threads are side by side."""


def fragment(row_stride):
    """Return (shape, stride) from (lane, value) to the address in a 16 by 16 tile of A, stored row by row."""


def swizzle(bits, base, shift, place):
    """Return where Swizzle<bits, base, shift> moves a place."""


def turns(places):
    """Return how many turns shared memory takes to give each lane its word; the addresses are counted in words."""


def inverse(shape, stride):
    """Return (shape, stride) of the layout that leads from an address back to its index."""
