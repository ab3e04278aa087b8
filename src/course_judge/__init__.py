"""What a kernel does while it runs: findings of our own, beside the comparison of its result."""
