"""A small engine that serves a model: many requests at once, each writing as soon as its turn comes.

    engine = Engine(model, pages=256)
    for token in engine.generate(Request(prompt, most=100)): ...

Read in this order. `block_manager.py`: who holds which page of the cache. `request.py`: what was asked for, and how
far the answer is. `scheduler.py`: what runs in the next step. `paged.py`: the model over a cache in pages.
`engine.py`: the loop.

A server such as vLLM has what this one lacks: several GPUs, quantised weights, a tokenizer for words, a draft model,
answers of a given form, an HTTP interface, and years of bug fixes.
"""

from course_models.serving.engine import Engine as Engine
from course_models.serving.request import Refused as Refused
from course_models.serving.request import Request as Request
