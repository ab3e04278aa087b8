# refused for: not yours | imports torch
import torch

sgemm = torch.mm
