"""Attention of one new query over the few tokens that an index has chosen, in the shape of DeepSeek Sparse Attention."""
