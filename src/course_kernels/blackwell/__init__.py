"""Kernels of data-centre Blackwell's own instructions: compiled and read here, and run where such a card is."""
