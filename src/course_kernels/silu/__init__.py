"""SiLU, a gate that a number opens for itself: x * sigmoid(x) in one pass."""
