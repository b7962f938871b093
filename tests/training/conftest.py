"""A tiny target with a chat template, random weights and no files, and a corpus it wrote."""

import pytest
import torch
from fakes import tiny_llama
from tiny_checkpoints import tiny_tokenizer
from tiny_training import writer_of

from playground.lm import LeanWeights
from playground.training.corpus import Corpus
from playground.training.features import FeatureStore
from playground.training.held_out import HeldOut
from playground.training.recipes import Target


@pytest.fixture(scope="session")
def target() -> Target:
    """A random 2-layer Llama, float32, that ends turns with its tokenizer's end token."""
    tokenizer = tiny_tokenizer()
    model = tiny_llama(vocab=len(tokenizer), tie_word_embeddings=True)
    return Target("tiny", model, LeanWeights(model, "float32"), tokenizer, (tokenizer.eos_token_id,))


@pytest.fixture(scope="session")
def corpus(target, tmp_path_factory) -> Corpus:
    """About 1,500 tokens the tiny target wrote."""
    corpus = Corpus(tmp_path_factory.mktemp("text") / "corpus.jsonl", target.tokenizer, HeldOut(("keep this out",)))
    corpus.grow(writer_of(target).write(), 1500, lambda done: None)
    return corpus


@pytest.fixture(scope="session")
def store(target, corpus, tmp_path_factory) -> FeatureStore:
    """Features of every layer."""
    store = FeatureStore(tmp_path_factory.mktemp("features"), corpus.texts, (1, 2))
    store.build(target.weights, target.num_ids, lambda done: None)
    return store


@pytest.fixture(autouse=True)
def seeded():
    """Every test starts from the same random numbers."""
    torch.manual_seed(0)
