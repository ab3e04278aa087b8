"""A small engine that serves a model: many requests at once, each writing as soon as its turn comes.

    engine = Engine(model, pages=256)
    for token in engine.generate(Request(prompt, most=100)): ...

Read in this order. `block_manager.py`: who holds which page of the cache. `request.py`: what is asked, and how far it
is. `scheduler.py`: what runs in the next step. `paged.py`: the model over a cache in pages. `engine.py`: the loop.

What this has not, and a server such as vLLM has: several GPUs, quantised weights, a tokenizer for words, a draft
model, chosen formats of the answer, an HTTP door, and years of other people's faults mended.
"""

from course_models.serving.engine import Engine as Engine
from course_models.serving.request import Refused as Refused
from course_models.serving.request import Request as Request
