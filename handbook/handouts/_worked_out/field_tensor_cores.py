"""What the exercises of the page on programming tensor cores come to."""

COLUMNS, BYTES, NEEDED = 50257, 2, 16
ROW = COLUMNS * BYTES
WHOLE, REST = divmod(ROW, NEEDED)
PADDED = -(-ROW // NEEDED) * NEEDED // BYTES
MORE = PADDED - COLUMNS

ANSWERS = {
    "Pad it": [ROW, ROW, WHOLE, NEEDED, REST, PADDED, MORE, MORE, 768],
}
