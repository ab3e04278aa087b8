"""Copy a vector with a chosen number of bytes under way: what keeps a memory busy."""
