"""A mixture of experts: a router picks a few feed-forward blocks for each token, and their answers are added up."""
