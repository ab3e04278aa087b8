"""Convolution of images with filters: a matrix multiply whose matrix is never written down."""
