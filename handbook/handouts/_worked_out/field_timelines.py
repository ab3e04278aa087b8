"""A hundred small kernels, for the field guide's page on events and timelines."""

ANSWERS = {
    # Only what the page works out is in it.
    "A hundred small kernels": ()
}
