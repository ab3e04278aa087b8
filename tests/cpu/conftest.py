"""Triton decides when a kernel is defined whether it is interpreted, so this comes before any import of triton."""

import os

os.environ["TRITON_INTERPRET"] = "1"
