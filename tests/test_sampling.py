"""Logits to probabilities: filters as in transformers, extremes included; draws by frequency."""

import pytest
import torch
from transformers.generation.logits_process import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from playground.config import SamplingConfig
from playground.sampling import draw, to_probs


def random_logits(rows=3, vocab=3000, seed=0):
    return torch.randn(rows, vocab, generator=torch.Generator().manual_seed(seed)) * 4


def test_temperature_0_is_one_hot_at_the_largest_logit():
    probs = to_probs(torch.tensor([[1.0, 3.0, 2.0]]), SamplingConfig())
    assert probs.tolist() == [[0.0, 1.0, 0.0]]


@pytest.mark.parametrize("settings", [{"temperature": 1e-6}, {"temperature": 1.0, "top_k": 1}, {"temperature": 1e-40}])
def test_tiny_temperature_and_top_k_1_give_greedy_probabilities(settings):
    logits = random_logits()
    assert torch.allclose(to_probs(logits, SamplingConfig(**settings)), to_probs(logits, SamplingConfig()))


@pytest.mark.parametrize("temperature", [0.3, 1.0, 1.7])
@pytest.mark.parametrize("top_k", [0, 2, 40])
@pytest.mark.parametrize("top_p", [0.05, 0.8, 0.999, 1.0])
def test_filters_equal_those_of_transformers(temperature, top_k, top_p):
    logits = random_logits()
    expected = TemperatureLogitsWarper(temperature)(None, logits)
    if top_k:
        expected = TopKLogitsWarper(top_k)(None, expected)
    if top_p < 1:
        expected = TopPLogitsWarper(top_p)(None, expected)
    probs = to_probs(logits, SamplingConfig(temperature=temperature, top_k=top_k, top_p=top_p))
    assert torch.allclose(probs, torch.softmax(expected, -1), atol=1e-6)


def test_top_p_works_on_a_flat_distribution_wider_than_the_first_search():
    probs = to_probs(torch.zeros(1, 5000), SamplingConfig(temperature=1.0, top_p=0.9))
    assert int((probs > 0).sum()) in (4500, 4501)
    assert float(probs.sum()) == pytest.approx(1.0, abs=1e-5)


def test_draws_follow_the_distribution_and_never_give_an_impossible_token():
    probs = torch.tensor([0.0, 0.5, 0.0, 0.3, 0.2, 0.0])
    rng = torch.Generator().manual_seed(1)
    counts = torch.zeros(6)
    for _ in range(5000):
        counts[draw(probs, rng)] += 1
    assert torch.allclose(counts / 5000, probs, atol=0.025)
    assert counts[[0, 2, 5]].sum() == 0
