"""A few rows in bfloat16 times a large matrix in NVFP4: what a quantised model's token costs on a card without FP4."""
