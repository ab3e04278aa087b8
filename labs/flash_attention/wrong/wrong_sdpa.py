# refused for: not yours | imports torch
import numpy as np
import torch


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool = False) -> np.ndarray:
    tensors = (torch.from_numpy(x) for x in (q, k, v))
    return torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=causal).numpy()
