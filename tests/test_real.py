"""The real bundled target: every proposer gives, in float32, the very tokens of transformers' generate.

Twenty prompts of all kinds, one of a single token. By default each prompt takes one gamma in turn;
`SPECPLAY_FULL=1` tries every proposer with every gamma on every prompt, on longer texts.
"""

import os

import pytest
import torch

from playground.config import RunSettings
from playground.engine import generate
from playground.events import Finished
from playground.models import ModelStore
from playground.presets import PRESETS
from playground.prompt import encode
from playground.registry import load
from playground.run_setup import make_proposer

pytestmark = pytest.mark.real
FULL = bool(os.environ.get("SPECPLAY_FULL"))
LENGTH = 64 if FULL else 16
GAMMAS = (1, 2, 4, 7)
ARMS = (  # everything that can be chosen and changes what is drafted
    {"proposer": "none"},
    {"proposer": "ngram"},
    {"proposer": "suffix"},
    {"proposer": "draft", "draft_precision": "float32"},
    {"proposer": "quantized", "quantized_precision": "int4"},
    {"proposer": "early-exit"},
    {"proposer": "early-exit", "adapter": False},
    {"proposer": "medusa"},
    {"proposer": "medusa", "tree_nodes": 12},
    {"proposer": "eagle"},
    {"proposer": "eagle", "tree_nodes": 12},
    {"proposer": "lookahead"},
    {"proposer": "lookahead", "guess_tree": False},
    {"proposer": "oracle"},
    {"proposer": "noisy-oracle"},
    {"proposer": "random"},
    {"proposer": "self"},
)
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


def cases() -> list[dict]:
    chats = [{"prompt": preset.prompt} for preset in PRESETS[:8]] + [{"prompt": text} for text in SHORT]
    return [*chats, {"prompt": "The", "chat_template": False}][:20]


def expected_of(model, ids):
    """What transformers' own greedy decoding says after `ids`."""
    inputs = torch.tensor([ids])
    with torch.inference_mode():
        out = model.generate(inputs, attention_mask=torch.ones_like(inputs), max_new_tokens=LENGTH, do_sample=False)
    return out[0, len(ids) :].tolist()


def test_every_proposer_at_every_gamma_gives_the_tokens_of_generate():
    quiet = lambda *_: None  # noqa: E731
    reference = load("smollm2-135m", "float32", quiet).model
    store = ModelStore()
    target = store.target("smollm2-135m", "float32", quiet)
    accepted = {str(arm): 0 for arm in ARMS}
    for index, case in enumerate(cases()):
        _, ids = encode(target.loaded, RunSettings(**case))
        assert index < 19 or len(ids) == 1
        expected = expected_of(reference, ids)
        for number, arm in enumerate(ARMS):
            if not FULL and (index + number) % 2:  # by default each prompt takes half of the arms, each one gamma
                continue
            for gamma in GAMMAS if FULL else GAMMAS[index // 2 % 4 : index // 2 % 4 + 1]:
                settings = RunSettings(**case, **arm, gamma=gamma, max_new_tokens=LENGTH, target_precision="float32")
                proposer, _ = make_proposer(store, target, settings, quiet)
                run = generate(target.lm, proposer, ids, settings.spec, target.loaded.end_ids, target.decoder)
                *events, last = run
                assert isinstance(last, Finished)
                assert list(last.token_ids) == expected, (arm, gamma, case["prompt"][-60:])
                assert last.text == target.loaded.tokenizer.decode(expected, skip_special_tokens=True)
                tested = [item for event in events for item in getattr(event, "tested", ())]
                accepted[str(arm)] += sum(item.accepted for item in tested)
    useful = {name for name, count in accepted.items() if count}
    assert useful >= {str(arm) for arm in ARMS if arm["proposer"] not in ("none", "random")}, accepted
