"""Records of pages: how a run makes one, and whether it still holds."""
