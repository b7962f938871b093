"""The real bundled target: sequences decoded at once, plainly and speculatively, in float32: each as it is alone."""

import pytest

from playground.config import RunSettings
from playground.engine import generate
from playground.events import Finished
from playground.lab.batch_decode import BatchDecoder
from playground.lab.batch_setup import lean_weights, make_batch_proposer
from playground.lm.ragged import RaggedLM
from playground.models import ModelStore
from playground.presets import PRESETS
from playground.prompt import encode
from playground.proposers import Proposer
from playground.proposers.batched import BatchProposer

pytestmark = pytest.mark.real
PROMPTS = ("Hello", "What is 17 + 26?", "one two three one two three one two", *(p.prompt for p in PRESETS[:5]))
LENGTH = 16


def test_eight_sequences_at_once_get_the_tokens_each_gets_alone():
    quiet = lambda *_: None  # noqa: E731
    store = ModelStore()
    target = store.target("smollm2-135m", "float32", quiet)
    end_ids, common = target.loaded.end_ids, {"target_precision": "float32", "max_new_tokens": LENGTH}
    prompts = [encode(target.loaded, RunSettings(text))[1] for text in PROMPTS]
    spec, alone = RunSettings("-", **common).spec, []
    for ids in prompts:
        *_, last = generate(target.lm, Proposer(), ids, spec, end_ids, target.decoder)
        assert isinstance(last, Finished)
        alone.append(list(last.token_ids))
    capacity = max(map(len, prompts)) + LENGTH
    lm = RaggedLM(lean_weights(target), len(prompts), capacity)
    for arm in ({}, {"proposer": "ngram"}, {"proposer": "draft"}, {"proposer": "quantized"}):
        settings = RunSettings("-", **arm, gamma=3, **common)
        proposer = (
            make_batch_proposer(store, target, settings, len(prompts), capacity, quiet) if arm else BatchProposer()
        )
        decoder, num_accepted = BatchDecoder(lm, target.lm.vocab_size, settings.spec, end_ids), 0
        for slot, ids in enumerate(prompts):
            decoder.start(slot, slot, ids, proposer)
        while not all(item.over for item in decoder.slots):
            num_accepted += decoder.round(proposer).num_accepted
        assert [item.output for item in decoder.slots] == alone, arm
        assert num_accepted > 0 or not arm
