"""Matrix multiply in fp32 on the CUDA cores."""
