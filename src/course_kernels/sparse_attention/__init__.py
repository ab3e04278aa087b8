"""Attention of one new query over the few tokens that an index has chosen: DeepSeek Sparse Attention's shape."""
