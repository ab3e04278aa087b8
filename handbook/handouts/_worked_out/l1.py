"""The receipts of L1."""

WANTS = ((3, 2), (1, 4))  # loaves and cheeses, for Ann and Ben
ASKS = ((2, 5), (4, 3))  # a loaf and a cheese, at the market and at the corner shop


def receipt(who, shop):
    """The lines of one receipt and their sum."""
    lines = [(count, ASKS[item][shop]) for item, count in enumerate(WANTS[who])]
    total = sum(count * price for count, price in lines)
    return (
        " + ".join(f"{count} × {price}" for count, price in lines) + f" = {total}"
    )
