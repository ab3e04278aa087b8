"""Training, at a size that a laptop's core trains in seconds: it learns, it repeats itself, it says what is wrong."""

import dataclasses
import math

import pytest
import torch

from course_models import pretrained
from course_models.byte_tokens import BEGIN, VOCAB, decode, encode
from course_models.checkpoint import CheckpointRefused
from course_models.config import parameters
from course_models.model import Model
from course_models.ngram import NGrams
from course_models.train import DRAFT, EXPERTS, SMALL, Recipe, bits_per_byte, stream, train

pytestmark = pytest.mark.kept

TOY = dataclasses.replace(
    DRAFT, layers=1, width=32, heads=2, kv_heads=1, head_dim=16, hidden=48, max_tokens=64
)
TOY_EXPERTS = dataclasses.replace(TOY, hidden=16, experts=4, experts_per_token=2)
SHORT = Recipe(steps=60, batch=8, length=32, warm_up=10, rate=1e-2, look_every=20)
TEXT = b"def soup(cook):\n    return cook.pot.stir(spoon)\n\n" * 20
OTHER = b"def stew(chef):\n    return chef.pan.shake(lid)\n\n" * 20


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# --- tokens -----------------------------------------------------------------------------------------


def test_a_token_is_a_byte_and_a_text_has_one_more():
    assert encode("aé") == [BEGIN, 97, 0xC3, 0xA9]
    assert encode(b"\xff") == [BEGIN, 255]
    assert decode(encode("aé\n")[1:]) == "aé\n"
    assert decode([97, BEGIN, 98]) == "a"
    assert (
        decode([97, 0x1B, 0xFF, VOCAB - 1, 98]) == "a\ufffd\ufffd\ufffdb"
    )  # no escape code reaches a terminal


# --- training ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", [TOY, TOY_EXPERTS], ids=["a block", "experts"])
def test_sixty_steps_lower_the_loss(config):
    found = train(config, stream([TEXT, OTHER]), SHORT, look=lambda model: bits_per_byte(model, [TEXT[:96]]))
    assert found.steps == [20, 40, 60]
    assert found.train_bits == sorted(found.train_bits, reverse=True)
    assert 8 > found.train_bits[0] > found.train_bits[-1] + 1
    assert found.looked[-1] < found.looked[0]
    assert found.looked[-1] < 3
    assert found.seconds > 0
    assert bits_per_byte(found.model, [TEXT[:96]]) == found.looked[-1]


def test_the_same_seed_gives_the_same_model_and_another_one_another():
    few = dataclasses.replace(SHORT, steps=5, look_every=5)
    data = stream([TEXT, OTHER])
    one, again, other = (train(TOY, data, few, seed=seed) for seed in (3, 3, 4))
    assert one.train_bits == again.train_bits != other.train_bits
    for weight, twin in zip(one.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(weight, twin)


def test_looking_changes_nothing():
    few = dataclasses.replace(SHORT, steps=6, look_every=2)
    data = stream([TEXT])
    looked = train(TOY, data, few, look=lambda model: bits_per_byte(model, [OTHER[:40]]))
    assert looked.train_bits == train(TOY, data, few).train_bits


def test_the_rate_rises_then_falls_to_a_tenth():
    recipe = Recipe(steps=100, warm_up=10, rate=1.0)
    rates = [recipe.rate_at(step) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == rates[9] == rates[10] == 1.0
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[-1] == pytest.approx(0.1, abs=0.001)
    assert rates[55] == pytest.approx(0.55)


def test_experts_are_used_evenly_because_the_loss_asks_for_it():
    def unevenness(balance):
        recipe = dataclasses.replace(SHORT, steps=80, balance=balance)
        model = train(TOY_EXPERTS, stream([TEXT, OTHER]), recipe).model
        tokens = stream([TEXT[:60]])[None]
        scores = []
        layer = model.layers[0]
        plain = model.operators.linear

        def linear(x, weight):
            if weight is layer.router:
                scores.append(plain(x, weight))
            return plain(x, weight)

        with torch.no_grad():
            model.with_operators(dataclasses.replace(model.operators, linear=linear))(tokens)
        chances = scores[0].softmax(dim=-1).mean(dim=0)
        return float((chances - 0.25).abs().max())

    assert unevenness(1.0) < unevenness(0.0)


def test_what_cannot_be_trained_is_refused():
    data = stream([TEXT])
    with pytest.raises(ValueError, match="length: expected at most max_tokens=64, got 65"):
        train(TOY, data, dataclasses.replace(SHORT, length=65))
    with pytest.raises(ValueError, match="data: expected more than length=32 tokens, got 32"):
        train(TOY, data[:32], SHORT)
    with pytest.raises(FloatingPointError, match="the loss is no number after 20 steps: lower the rate"):
        train(TOY, data, dataclasses.replace(SHORT, rate=float("inf")))


# --- the loss ------------------------------------------------------------------------------------------


def test_the_loss_is_that_of_each_byte_by_itself():
    model = Model.random(TOY, seed=0, dtype=torch.float32)
    for text in (b"a", TEXT[:64], OTHER[:20]):
        tokens = torch.tensor([encode(text)])
        with torch.no_grad():
            chances = model(tokens[:, :-1]).softmax(dim=-1)[0]
        each = [-math.log2(chances[i, byte]) for i, byte in enumerate(text)]
        assert bits_per_byte(model, [text]) == pytest.approx(sum(each) / len(text), rel=1e-5)


def test_every_byte_of_a_long_text_is_guessed_once_with_half_a_window_before_it():
    model = Model.random(TOY, seed=0, dtype=torch.float32)
    text = TEXT[:150]  # windows of 64: guesses 0-63, 64-95, 96-127, 128-149
    tokens = torch.tensor(encode(text))
    bits = 0.0
    for end, counted in ((64, 64), (96, 32), (128, 32), (150, 22)):
        row = tokens[max(end - 64, 0) : end + 1]
        with torch.no_grad():
            chances = model(row[None, :-1]).softmax(dim=-1)[0]
        bits -= sum(math.log2(chances[i, row[i + 1]]) for i in range(len(row) - 1 - counted, len(row) - 1))
    assert bits_per_byte(model, [text]) == pytest.approx(bits / 150, rel=1e-5)
    assert bits_per_byte(model, [text], batch=1) == pytest.approx(bits / 150, rel=1e-5)


def test_the_loss_of_several_texts_counts_their_bytes():
    model = Model.random(TOY, seed=0, dtype=torch.float32)
    one, other = bits_per_byte(model, [TEXT[:70]]), bits_per_byte(model, [OTHER[:10]])
    both = bits_per_byte(model, [TEXT[:70], b"", OTHER[:10]])
    assert both == pytest.approx((70 * one + 10 * other) / 80, rel=1e-5)
    with pytest.raises(ValueError, match="at least one byte to measure on"):
        bits_per_byte(model, [b""])


def test_a_model_that_knows_nothing_costs_as_much_as_its_vocabulary():
    model = Model.random(TOY, seed=0, dtype=torch.float32)
    with torch.no_grad():
        model.embedding.zero_()
    assert bits_per_byte(model, [TEXT[:50]]) == pytest.approx(math.log2(VOCAB))
    assert NGrams([bytes(range(256))], 0).bits_per_byte([TEXT])[0] == pytest.approx(8.0)


# --- what is kept ----------------------------------------------------------------------------------------


def test_all_three_fit_beside_a_record():
    from course_kernels.measure.artifacts import LIMIT_BYTES

    sizes = {name: 2 * parameters(config) for name, config in (("s", SMALL), ("d", DRAFT), ("e", EXPERTS))}
    assert max(sizes.values()) < LIMIT_BYTES - 100_000
    assert sizes["d"] < sizes["s"] / 8
    assert {c.vocab for c in (SMALL, DRAFT, EXPERTS)} == {VOCAB}


def test_a_model_is_kept_as_two_files_and_comes_back(tmp_path):
    model = Model.random(TOY_EXPERTS, seed=1, dtype=torch.float32)
    files = pretrained.keep("experts", model, tmp_path)
    assert [path.name for path in files] == ["experts.safetensors", "experts.json"]
    again = pretrained.load("experts", tmp_path, dtype=torch.float32)
    assert again.config == TOY_EXPERTS
    for weight, twin in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(weight.bfloat16().float(), twin)
    first = files[0].read_bytes()
    pretrained.keep("experts", model, tmp_path)
    assert files[0].read_bytes() == first


def test_a_model_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(CheckpointRefused, match="large: no such model: take one of small, draft, experts"):
        pretrained.load("large")
    with pytest.raises(
        CheckpointRefused, match=r"small\.safetensors: No such file or directory: measure docs/"
    ):
        pretrained.load("small", tmp_path)
    files = pretrained.keep("small", Model.random(TOY, dtype=torch.float32), tmp_path)
    files[0].write_bytes(files[0].read_bytes()[:-10])
    with pytest.raises(CheckpointRefused, match="cut short"):
        pretrained.load("small", tmp_path)
