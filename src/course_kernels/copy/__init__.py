"""Copy a vector: the ceiling of memory bandwidth."""
