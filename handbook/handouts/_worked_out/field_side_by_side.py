"""A model on one chip or another, for the field guide's page with all of them."""

MODEL_GB = 100
MEMORY_GB = {
    "TPU v5e": 16,
    "TPU7x": 192,
    "MI300X": 192,
    "Trainium2": 96 * 2**30 / 1e9,
    "Gaudi 3": 128,
    "LPU": 0.23,
    "WSE-3": 44,
    "M5 Max": 128,
}

ANSWERS = {
    "A model of 100 GB": (
        sum(held >= MODEL_GB for held in MEMORY_GB.values()),
        MODEL_GB,
    )
}
