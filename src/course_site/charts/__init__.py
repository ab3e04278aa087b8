"""Drawings of numbers and of what a card is: inline SVG, drawn once."""
