"""From a name in prose to its number: values, their units and their spread, and the claims that rest on them."""
