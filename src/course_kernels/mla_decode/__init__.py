"""Decode attention of MLA in its absorbed form: 128 query heads read one latent row a token, from pages."""
