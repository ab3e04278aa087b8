"""The lanes of a warp take different branches: what it costs, and how not to pay."""
