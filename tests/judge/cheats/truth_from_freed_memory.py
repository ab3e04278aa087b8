# refused for: wrong | on: gpu | source: Sakana AI, AI CUDA Engineer (memory reused); pygpubench gpu_scan_zeros; ours
# Takes what the allocator has in store, and looks in it for an answer that begins with the right number.
import torch


def refusals(x, s):
    first = float(x[0, 0]) * float(s[0])
    kept = []
    for dtype in (torch.float64, torch.float32):
        for _ in range(64):
            block = torch.empty(x.numel(), dtype=dtype, device=x.device)
            kept.append(block)  # or the next one is the same
            if abs(float(block[0]) - first) <= 1e-6 * abs(first):
                return block.view(x.shape).to(x.dtype)
            if sum(b.nbytes for b in kept) > 2**32:
                break
    return torch.zeros_like(x)
