"""LayerNorm of rows: short ones as a model has them, and a few of millions of numbers."""
