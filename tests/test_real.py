"""The real bundled target: every proposer gives, in float32, the very tokens of transformers' generate.

Twenty prompts of all kinds, one of a single token. By default each prompt takes one gamma in turn;
`SPECPLAY_FULL=1` tries every proposer with every gamma on every prompt, on longer texts.
"""

import copy
import os

import pytest
import torch

from playground.config import SpecConfig
from playground.engine import generate
from playground.events import Finished
from playground.lm import wrap
from playground.presets import PRESETS
from playground.proposers import DraftModelProposer, NgramProposer, Proposer
from playground.registry import load
from playground.registry.compat import num_usable
from playground.text import Decoder

pytestmark = pytest.mark.real
FULL = bool(os.environ.get("SPECPLAY_FULL"))
LENGTH = 64 if FULL else 16
GAMMAS = (1, 2, 4, 7)
DRAFT_LAYERS = 4
SHORT = (
    "Hello",
    "Write a haiku about rain.",
    "What is 17 + 26?",
    "def fibonacci(n):",
    "one two three one two three one two",
    "List three fruits.",
    "Übersetze: Guten Morgen!",
    '{"name": "Ada", "born":',
    "Once upon a time",
    "Why do cats purr?",
    "Name the capital of France and say one thing about it.",
)


@pytest.fixture(scope="module", autouse=True)
def threads():
    before = torch.get_num_threads()
    torch.set_num_threads(max(1, min(2, os.cpu_count() or 1)))
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def loaded():
    return load("smollm2-135m", "float32", lambda *_: None)


def prompts(tokenizer) -> list[list[int]]:
    def chat(text):
        messages = [{"role": "user", "content": text}]
        return tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)

    found = [chat(preset.prompt) for preset in PRESETS[:8]] + [chat(text) for text in SHORT]
    return [*found, tokenizer.encode("The", add_special_tokens=False)][:20]


def first_layers(model, num_layers):
    """A draft model made of the target's first layers: poor, but with the target's own tokens."""
    config = copy.deepcopy(model.config)
    config.num_hidden_layers = num_layers
    draft = type(model)(config).eval().requires_grad_(False)
    draft.load_state_dict(model.state_dict(), strict=False)
    return draft


def test_every_proposer_at_every_gamma_gives_the_tokens_of_generate(loaded):
    num_tokens, decoder = num_usable(loaded), Decoder(loaded.tokenizer)
    target = wrap(loaded.model, "float32", num_tokens, loaded.context_limit)
    draft = wrap(first_layers(loaded.model, DRAFT_LAYERS), "float32", num_tokens, loaded.context_limit)
    quantized = wrap(load("smollm2-135m", "int4", lambda *_: None).model, "int4", num_tokens, loaded.context_limit)
    proposers = {
        "none": Proposer(),
        "ngram": NgramProposer(2, 4),
        "draft": DraftModelProposer(draft, loaded.end_ids, num_tokens),
        "quantized": DraftModelProposer(quantized, loaded.end_ids, num_tokens),
    }
    cases = prompts(loaded.tokenizer)
    assert len(cases) == 20
    assert len(cases[-1]) == 1
    for index, ids in enumerate(cases):
        gammas = GAMMAS if FULL else GAMMAS[index % 4 : index % 4 + 1]
        with torch.inference_mode():
            inputs = torch.tensor([ids])
            out = loaded.model.generate(
                inputs, attention_mask=torch.ones_like(inputs), max_new_tokens=LENGTH, do_sample=False
            )
        expected = out[0, len(ids) :].tolist()
        for name, proposer in proposers.items():
            for gamma in (0,) if name == "none" else gammas:
                config = SpecConfig(gamma=gamma, max_new_tokens=LENGTH)
                *_, last = generate(target, proposer, ids, config, loaded.end_ids, decoder)
                assert isinstance(last, Finished)
                assert list(last.token_ids) == expected, (name, gamma, loaded.tokenizer.decode(ids)[-60:])
                assert last.text == loaded.tokenizer.decode(expected, skip_special_tokens=True)
