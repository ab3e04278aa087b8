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
    strides, step = [], 1
    for count in shape:
        strides.append(step)
        step *= count
    return strides


def row_major(rows, columns, pad):
    """Return the two strides of a matrix stored row by row, with `pad` unused places after each row."""
    return [columns + pad, 1]


def where(shape, stride, index):
    """Return the address of the index-th element; a number of the shape may be a list of numbers itself."""
    return address(coordinate(index, flat(shape)), flat(stride))


def coalesce(shape, stride):
    """Return (shape, stride) of the same addresses in the same order, with as few numbers as possible."""
    sizes, steps = [], []
    for count, step in zip(shape, stride, strict=True):
        if count == 1:
            continue  # it is always 0, whatever its stride
        if sizes and step == sizes[-1] * steps[-1]:
            sizes[-1] *= count  # it goes on where the one before has ended
        else:
            sizes.append(count)
            steps.append(step)
    return sizes, steps


def through(outer, inner, index):
    """Return the address through two layouts: the inner one gives an index of the outer one."""
    return where(*outer, where(*inner, index))


def every(shape, stride, count, step):
    """Return (shape, stride) of `count` elements of a layout, every `step`-th one, from the first on."""
    sizes, steps = [], []
    for length, distance in zip(shape, stride, strict=True):
        if step >= length:
            step //= length  # this number stays 0: its whole run is stepped over
            continue
        taken = min(count, length // step)
        sizes.append(taken)
        steps.append(step * distance)
        count, step = count // taken, 1
    return sizes, steps


def compose(outer, inner):
    """Return (shape, stride) of the layout that leads through the inner layout and then the outer one."""
    sizes, steps = [], []
    for count, step in zip(*inner, strict=True):
        more_sizes, more_steps = every(*outer, count, step)
        sizes += more_sizes
        steps += more_steps
    return sizes, steps


def complement(shape, stride, bound):
    """Return (shape, stride) of the places at which the layout must be repeated to fill 0 to bound - 1."""
    sizes, steps, filled = [], [], 1
    for step, count in sorted(zip(stride, shape, strict=True)):
        sizes.append(step // filled)
        steps.append(filled)
        filled = step * count
    return [*sizes, bound // filled], [*steps, filled]


def divide(outer, tile):
    """Return (shape, stride) of a layout cut into tiles: first the element in its tile, then the tile."""
    rest = complement(*tile, size(outer[0]))
    return compose(outer, ([*tile[0], *rest[0]], [*tile[1], *rest[1]]))


def product(tile, many):
    """Return (shape, stride) of a tile repeated: first the element in its tile, then the tile, laid as `many` says."""
    rest = complement(*tile, size(tile[0]) * cosize(*many))
    sizes, steps = compose(rest, many)
    return [*tile[0], *sizes], [*tile[1], *steps]


def blocked(threads, values):
    """Return (shape, stride) from (thread, value) to place: each thread has its values side by side."""
    return [threads, values], [values, 1]


def raked(threads, values):
    """Return (shape, stride) from (thread, value) to place: with each value the threads are side by side."""
    return [threads, values], [1, threads]


def fragment(row_stride):
    """Return (shape, stride) from (lane, value) to the address in a 16 by 16 tile of A, stored row by row."""
    return [[4, 8], [2, 2, 2]], [[2, row_stride], [1, 8 * row_stride, 8]]


def swizzle(bits, base, shift, place):
    """Return where Swizzle<bits, base, shift> moves a place."""
    chosen = place >> (base + shift) & ((1 << bits) - 1)
    return place ^ chosen << base


def turns(places):
    """Return how many turns shared memory takes to give each lane its word; the addresses are counted in words."""
    banks = [set() for _ in range(32)]
    for place in places:
        banks[place % 32].add(place)
    return max(map(len, banks))


def inverse(shape, stride):
    """Return (shape, stride) of the layout that leads from an address back to its index."""
    order = sorted(zip(stride, shape, column_major(shape), strict=True))
    return [count for _, count, _ in order], [start for _, _, start in order]


def widest(source, destination):
    """Return how many elements, from address 0 on, lie in the same order and without a gap in both layouts."""
    index_at = {where(*source, index): index for index in range(size(flat(source[0])))}
    run = 0
    while run in index_at and where(*destination, index_at[run]) == run:
        run += 1
    return run
