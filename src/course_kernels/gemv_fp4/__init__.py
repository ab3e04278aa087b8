"""A matrix times a vector, batched, both in NVFP4: four bits a number and a scale for every sixteen."""
