"""From logits to tokens: temperature, top-k, top-p, and a draw that a seed decides."""
