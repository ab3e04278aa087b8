# refused for: not yours
import torch


def gemv_fp4(
    a: torch.Tensor, scales_a: torch.Tensor, b: torch.Tensor, scales_b: torch.Tensor
) -> torch.Tensor:
    def values(packed: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        table = torch.tensor(
            [0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], device=packed.device
        )
        numbers = table[torch.stack([packed & 15, packed >> 4], dim=-1).long()].flatten(-2)
        return numbers * scales.float().repeat_interleave(16, dim=-1)

    return (values(a, scales_a) @ values(b, scales_b)[..., None])[..., 0].half()
