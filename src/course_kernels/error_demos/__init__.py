"""Kernels that are wrong on purpose, each beside its mended twin; every one runs in a process of its own."""
