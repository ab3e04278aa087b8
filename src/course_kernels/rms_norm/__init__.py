"""RMSNorm with the residual added on the way: what stands between two blocks of a Llama."""
