"""The model of the course: a decoder-only transformer in plain PyTorch, whose operators are swapped one by one.

    from course_models.config import Config
    from course_models.model import Model
    model = Model.random(Config(layers=2, width=64, heads=4, kv_heads=2, head_dim=16, hidden=160, vocab=256))

`config` says the sizes and what they cost, `model` computes, `operators` has what may be swapped, `pretrained` keeps
the small models that the course trains, `checkpoint` writes the form in which models are kept, `downloaded` reads it,
from elsewhere too, if `hugging_face` knows the model, `quantised` reads weights of four and eight bits,
`rounded_weights` rounds those of a model, `generate` writes text, `graph` captures a step, `step_kernels` makes one of
five kernels a layer, `int4_decode` and `nvfp4_decode` steps with weights of four bits, `bench` checks and times.

It lies above `course_kernels` and below the pages.
"""
