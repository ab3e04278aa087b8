"""SwiGLU, the gate of a Llama's feed-forward block: silu(gate) * up in one pass."""
