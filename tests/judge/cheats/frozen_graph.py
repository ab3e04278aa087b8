# refused for: cached result | on: gpu | source: ours
# Captures a CUDA graph of the first call and replays it: it reads the addresses of that call for ever.
import torch

GRAPHS = {}


def refusals(x, s):
    if x.shape not in GRAPHS:
        x * s[:, None]  # loads what may not be loaded while a graph is captured
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        kept = x.clone(), s.clone()
        with torch.cuda.graph(graph):
            y = kept[0] * kept[1][:, None]
        GRAPHS[x.shape] = graph, y, kept
    graph, y, _ = GRAPHS[x.shape]
    graph.replay()
    return y.clone()
