"""The load of a model's experts: counted as the routers decide, over every token once; refusals; the trained model."""

from pathlib import Path

import pytest
import torch

from course_models import pretrained, routing
from course_models.byte_tokens import VOCAB, encode
from course_models.config import Config
from course_models.model import Model

CONFIG = Config(
    layers=3, width=16, heads=2, kv_heads=1, head_dim=8, hidden=12, vocab=VOCAB, tied=True, experts=5,
    experts_per_token=2, max_tokens=16,
)  # fmt: skip
TEXTS = (b"a text that is longer than the sixteen positions of the model", b"", b"short", b"shorn")


@pytest.fixture(scope="module")
def model():
    return Model.random(CONFIG, 1, dtype=torch.float32)


def test_every_token_of_every_window_is_heard_once_and_in_its_place(model):
    picked = routing.choices(model, TEXTS, batch=2)
    expected = []
    for text in TEXTS:
        for window in torch.tensor(encode(text)).split(CONFIG.max_tokens):
            expected.append(torch.stack(list(by_hand(model, window))))

    assert torch.equal(picked, torch.cat(expected, dim=1))


def by_hand(model, tokens):
    """For every layer who is picked, by the layers themselves: the model is run as far as that layer's router."""
    x = torch.nn.functional.embedding(tokens[None], model.embedding)
    cos, sin = model._turns(torch.arange(len(tokens))[None])
    for layer in model.layers:
        ops = model.operators
        q, k, v = layer.queries_keys_values(ops, x, cos, sin)
        x = layer.add_attention(ops, x, ops.prefill_attention(q, k, v))
        h = ops.rms_norm(x, layer.block_norm, CONFIG.norm_eps)
        yield (h[0] @ layer.router.T).topk(2, dim=-1).indices
        x = layer.add_block(ops, x)


def test_loads_are_counts_and_a_step_is_what_follows_each_other():
    picked = torch.tensor([[[0, 1], [0, 2], [0, 1], [3, 1], [2, 3]]])  # one layer, five tokens

    assert routing.loads(picked, 4).tolist() == [[3, 3, 2, 2]]
    assert routing.loads(picked, 4, tokens=2).tolist() == [[[2, 1, 1, 0], [1, 2, 0, 1]]]
    assert routing.imbalance(routing.loads(picked, 4)).tolist() == [pytest.approx(3 / 2.5)]
    assert routing.imbalance(torch.tensor([4, 4, 4])) == 1
    assert routing.imbalance(torch.tensor([[0, 0, 6], [1, 1, 4]])).tolist() == [3, 2]


def test_a_skew_is_the_mean_in_hundredths_and_no_more_than_there_can_be():
    assert routing.skew_of(torch.tensor([1.2, 1.6]), 128, 8) == 140
    assert routing.skew_of(torch.tensor([7.0]), 8, 2) == 400


def test_what_cannot_be_counted_is_one_line(model):
    plain = Model.random(Config(layers=1, width=8, heads=1, kv_heads=1, head_dim=8, hidden=8, vocab=VOCAB))
    with pytest.raises(ValueError, match=r"^model: expected one with experts, got one without$"):
        routing.choices(plain, TEXTS)
    with pytest.raises(ValueError, match=r"^texts: expected at least one byte, got none$"):
        routing.choices(model, (b"",))
    with pytest.raises(ValueError, match=r"^tokens: expected 1 to 5, the tokens there are, got 6$"):
        routing.loads(torch.zeros(1, 5, 2, dtype=torch.int64), 4, tokens=6)


def test_the_trained_model_uses_all_its_experts_and_none_as_much_as_it_could():
    """A few hundred tokens: that it runs on what is kept. How uneven it is, its page measures."""
    trained = pretrained.load("experts", dtype=torch.float32)
    picked = routing.choices(trained, [Path(routing.__file__).read_bytes()[:600]])
    load = routing.loads(picked, trained.config.experts)

    assert picked.shape == (trained.config.layers, 601, 2)
    assert (load > 0).all()
    assert (routing.imbalance(load) < trained.config.experts / 2).all()
