"""Numbers by their names in prose: values, their units and their spread, and the claims that rest on them."""
