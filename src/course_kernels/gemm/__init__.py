"""Matrix multiply on tensor cores: 16-bit inputs, or fp32 inputs rounded to TF32 on the way in."""
