"""Expert parallelism: the experts of a layer shared out among cards, and tokens that travel to them and back."""
