"""Kernels, problems and the way they are measured: what students read."""
