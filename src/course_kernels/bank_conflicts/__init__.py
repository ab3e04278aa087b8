"""The lanes of a warp read shared memory with a stride: how many wait for the same bank."""
