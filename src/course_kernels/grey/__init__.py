"""A colour picture to grey: the first kernel on a grid of two dimensions."""
