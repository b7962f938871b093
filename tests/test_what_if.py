"""A round judged again from its logits: the numbers and verdicts that the engine's own rule gives."""

import random

import pytest
import torch
from fakes import LetterTokenizer, every_proposer, lean, tiny_llama

from playground.config import SamplingConfig, SpecConfig
from playground.engine import generate
from playground.events import LogitRow, Logits, Node, Proposed, Tested, Verified
from playground.kept_logits import NUM_LIKELIEST, KeptLogits, rows_of
from playground.lab.what_if import OTHERS, draft_probs, judge_again, probs_of, residual_of
from playground.proposers import Proposal
from playground.sampling import to_probs
from playground.text import Decoder
from playground.verify import verify_tree


class Names:
    def label(self, token):
        return f"t{token}"


TREE = [-1, -1, 0, 0, 2]
SAMPLINGS = (
    SamplingConfig(temperature=0.7),
    SamplingConfig(temperature=1.6, top_p=0.8),
    SamplingConfig(temperature=1.0, top_k=3),
    SamplingConfig(),
)


def round_of(seed, old, vocab=12, parents=None, certain=False):
    """A random round: events, logits and the tensors they were made from."""
    torch.manual_seed(seed)
    count = len(parents) if parents else 3
    logits = torch.randn(count + 1, vocab) * 2
    q_logits = torch.randn(count, vocab) * 2
    probs = None if certain else to_probs(q_logits, old)
    ids = [int(row.argmax()) for row in (q_logits if certain else probs)]
    draft = Proposal(ids, probs, list(parents) if parents else None)
    kept = KeptLogits()
    kept.keep(1, logits, draft)
    [event] = kept.events(Names())
    chain = range(-1, count - 1)
    nodes = tuple(Node(i, f"t{i}", parent, 1.0) for i, parent in zip(ids, parents or chain, strict=True))
    return Proposed(1, nodes, 1.0), event, logits, q_logits, ids


@pytest.mark.parametrize("new", SAMPLINGS)
@pytest.mark.parametrize("parents", [None, TREE])
@pytest.mark.parametrize("certain", [False, True])
def test_a_round_judged_again_equals_the_engines_verdict_on_the_same_logits(new, parents, certain):
    old = SamplingConfig(temperature=1.3, seed=4)
    new = SamplingConfig(new.temperature, new.top_k, new.top_p, old.seed)
    for seed in range(40):
        proposed, event, logits, q_logits, ids = round_of(seed, old, parents=parents, certain=certain)
        one_hot = certain or new.temperature == 0
        q_probs = None if one_hot else to_probs(q_logits, new)
        rng = torch.Generator().manual_seed(seed)
        u = torch.rand(len(ids), generator=torch.Generator().manual_seed(seed)).tolist()
        verdict = verify_tree(to_probs(logits, new), ids, parents, q_probs, rng)
        tested = tuple(Tested(i, ids[i], 0.0, 0.0, u[i], False, 0.0) for i in range(len(ids)))
        verified = Verified(1, tested, (), "bonus", (), 1.0, 1.0, 9)
        again = judge_again(proposed, verified, event, old, new)
        assert [(t.node, t.accepted) for t in again.trials] == [(j.index, j.accepted) for j in verdict.judged]
        assert again.final_kind == verdict.final_kind
        for trial, judged in zip(again.trials, verdict.judged, strict=True):
            assert trial.p == pytest.approx(judged.p, abs=2e-4)
            assert trial.q == pytest.approx(judged.q, abs=2e-4)
        if verdict.residual is not None:
            wanted = {i: value for i, value in enumerate(verdict.residual.tolist()) if value > 1e-3}
            assert {i: v for i, v in again.final_probs.items() if v > 1e-3} == pytest.approx(wanted, abs=2e-3)


@pytest.mark.parametrize("temperature", [0.3, 0.7, 1.0, 1.5, 2.0])
def test_the_mass_of_unnamed_tokens_is_right_at_every_temperature(temperature):
    torch.manual_seed(1)
    logits = torch.randn(3, 5000) * 2.5
    wanted = to_probs(logits, SamplingConfig(temperature=temperature))
    for row, logit_row, probs in zip(rows_of(logits, [[7], [8], [9]], Names()), logits, wanted, strict=True):
        found = probs_of(row, temperature, 0, 1.0)
        named = logit_row.topk(NUM_LIKELIEST).indices
        assert found[int(named[0])] == pytest.approx(float(probs[named[0]]), rel=0.02)
        rest = 1 - sum(value for token, value in found.items() if token != OTHERS)
        assert found[OTHERS] == pytest.approx(rest)
        assert sum(row.rest_counts) + len(row.ids) == 5000


@pytest.mark.parametrize("top_p", [0.3, 0.9, 0.99])
def test_top_p_keeps_the_same_named_tokens(top_p):
    torch.manual_seed(2)
    logits = torch.randn(1, 2000) * 3
    wanted = to_probs(logits, SamplingConfig(temperature=1.0, top_p=top_p))[0]
    found = probs_of(rows_of(logits, [[]], Names())[0], 1.0, 0, top_p)
    for token, value in found.items():
        if token != OTHERS:
            assert value == pytest.approx(float(wanted[token]), rel=0.03)


def test_another_seed_draws_other_numbers_and_the_same_seed_the_same():
    old = SamplingConfig(temperature=1.0, seed=4)
    proposed, event, *_ = round_of(3, old)
    tested = (Tested(0, proposed.nodes[0].id, 0.5, 0.5, 0.25, True, 0.5),)
    verified = Verified(1, tested, (), "residual", (), 1.0, 1.0, 9)
    same = judge_again(proposed, verified, event, old, SamplingConfig(temperature=0.8, seed=4))
    other = [judge_again(proposed, verified, event, old, SamplingConfig(temperature=0.8, seed=5)) for _ in range(2)]
    assert same.trials[0].u == 0.25
    assert other[0] == other[1] and other[0].trials[0].u != 0.25


def test_a_certain_draft_stays_certain_and_a_small_temperature_does_not_overflow():
    row = LogitRow((3,), ("t3",), (0.0,))
    hot = SamplingConfig(temperature=2.0)
    assert draft_probs(row, 3, SamplingConfig(), hot) == {3: 1.0}
    wide = LogitRow((1, 2), ("a", "b"), (40.0, -40.0), (-50.0,), (100,))
    assert probs_of(wide, 1e-9, 0, 1.0)[1] == pytest.approx(1.0)
    assert residual_of({1: 1.0}, {1: 1.0}) == {1: 1.0}


def test_a_run_keeps_logits_up_to_its_limit_only(monkeypatch):
    monkeypatch.setattr("playground.kept_logits.MAX_BYTES", 12 * 4 * 4 * 2)
    kept = KeptLogits()
    for number in range(1, 5):
        kept.keep(number, torch.randn(4, 12), Proposal([random.randrange(12) for _ in range(3)]))
    assert [event.round for event in kept.events(Names())] == [1, 2]


def test_a_run_tells_its_logits_after_the_last_round_and_they_give_back_its_probabilities():
    model = tiny_llama()
    config = SpecConfig(gamma=3, max_new_tokens=12, sampling=SamplingConfig(temperature=1.0, seed=2))
    decoder = Decoder(LetterTokenizer())
    proposer = every_proposer(model)["random"]
    events = list(generate(lean(model), proposer, [5, 17, 42], config, (), decoder, kept=KeptLogits()))
    verified = [event for event in events if isinstance(event, Verified)]
    told = [event for event in events if isinstance(event, Logits)]
    assert events[-1 - len(told) : -1] == told and len(told) == len(verified)
    for event, logits in zip(verified, told, strict=True):
        for test in event.tested[:1]:
            assert probs_of(logits.target[0], 1.0, 0, 1.0)[test.id] == pytest.approx(test.p, rel=0.01, abs=1e-4)
