"""Modified rejection sampling gives exactly the target's distribution: algebra first, then frequencies."""

import pytest
import torch

from playground.config import SamplingConfig
from playground.sampling import draw, to_probs
from playground.verify import residual_of, verify_chain


def random_probs(vocab, generator, zeros=0.0):
    probs = torch.rand(vocab, generator=generator, dtype=torch.float64) ** 4
    probs[torch.rand(vocab, generator=generator) < zeros] = 0
    probs[0] += 1e-3
    return probs / probs.sum()


@pytest.mark.parametrize("seed", range(40))
def test_accepted_plus_rejected_mass_is_exactly_the_target(seed):
    """q·min(1, p/q) + P(reject)·residual = p, to 1e-6, zeros in p and q included."""
    generator = torch.Generator().manual_seed(seed)
    p, q = random_probs(50, generator, 0.3), random_probs(50, generator, 0.3)
    accept = torch.where(q > 0, (p / q.clamp(min=1e-300)).clamp(max=1), torch.zeros_like(p))
    reject_mass = 1 - (q * accept).sum()
    output = q * accept + reject_mass * residual_of(p, q, 0)
    assert torch.allclose(output, p, atol=1e-6)


@pytest.mark.parametrize("token", range(5))
def test_a_deterministic_draft_is_exact_too(token):
    """One-hot q: accept with probability p(token), else draw from p without the token."""
    p = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.0], dtype=torch.float64)
    one_hot = torch.zeros_like(p)
    one_hot[token] = 1
    residual = residual_of(p, None, token)
    assert torch.allclose(residual, residual_of(p, one_hot, token))
    assert torch.allclose(one_hot * p[token] + (1 - p[token]) * residual, p, atol=1e-9)


def test_an_exhausted_residual_falls_back_to_the_target():
    p = torch.tensor([0.25, 0.75])
    assert residual_of(p, p.clone(), 0).tolist() == p.tolist()
    assert residual_of(torch.tensor([1.0, 0.0]), None, 0).tolist() == [1.0, 0.0]


def test_equal_distributions_accept_everything():
    generator = torch.Generator().manual_seed(0)
    p = torch.softmax(torch.randn(6, 20, generator=generator), -1)
    for _ in range(50):
        ids = [draw(row, generator) for row in p[:5]]
        verdict = verify_chain(p, ids, p[:5], generator)
        assert verdict.num_accepted == 5
        assert verdict.final_kind == "bonus"
        assert all(item.overlap == pytest.approx(1, abs=1e-5) for item in verdict.judged)


def shares(p, q, num_draws, draft=None, seed=0):
    """Frequencies of the first committed token, and alpha, over many one-token rounds."""
    generator = torch.Generator().manual_seed(seed)
    counts, accepted = torch.zeros(len(p)), 0
    both = torch.stack((p, p))
    for _ in range(num_draws):
        token = draw(q, generator) if draft is None else draft
        verdict = verify_chain(both, [token], q[None] if draft is None else None, generator)
        counts[token if verdict.num_accepted else verdict.final_id] += 1
        accepted += verdict.num_accepted
    return counts / num_draws, accepted / num_draws


def test_a_draft_that_always_takes_its_top_token_leaves_the_target_unchanged():
    p, q = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.6, 0.3, 0.1])
    found, _ = shares(p, q, 2000, draft=0)
    assert torch.allclose(found, p, atol=0.045)


def test_filters_apply_to_both_sides():
    sampling = SamplingConfig(temperature=1.0, top_k=2)
    p, q = (to_probs(torch.tensor([row]).log(), sampling)[0] for row in ([0.5, 0.3, 0.2], [0.6, 0.3, 0.1]))
    found, alpha = shares(p, q, 5000)
    assert torch.allclose(found, torch.tensor([0.625, 0.375, 0.0]), atol=0.03)
    assert found[2] == 0
    assert alpha == pytest.approx(0.958, abs=0.015)


def test_nothing_drafted_is_a_plain_step():
    verdict = verify_chain(torch.tensor([[0.0, 1.0]]), [], None, torch.Generator())
    assert (verdict.final_id, verdict.final_kind, verdict.judged) == (1, "plain", [])
