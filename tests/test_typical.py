"""Typical acceptance: the published threshold, exact where p is certain, and its drift measured."""

import math

import pytest
import torch
from fakes import LetterTokenizer, ScriptProposer, continuation, finish, ids_of, lean, tiny_llama

from playground.config import RunSettings, SamplingConfig, SpecConfig
from playground.engine import generate
from playground.events import Committed, Proposed, Started, Tested, Verified
from playground.metrics import RunMetrics
from playground.run_setup import rule_of
from playground.text import Decoder
from playground.typical import threshold, typical_rule
from playground.verify import verify_tree


def rng():
    return torch.Generator().manual_seed(0)


def test_the_threshold_is_epsilon_for_a_sure_target_and_lower_for_an_unsure_one():
    assert threshold(torch.tensor([1.0, 0.0]), 0.09) == pytest.approx(0.09)
    even = torch.full((16,), 1 / 16)
    assert threshold(even, 0.09) == pytest.approx(0.3 / 16)
    assert threshold(even, 0.09) < 1 / 16  # so any of sixteen equal tokens is typical


def test_likely_guesses_stay_without_a_draw_and_after_a_refusal_the_target_draws_from_p():
    p = torch.tensor([[0.6, 0.3, 0.1], [0.0, 0.98, 0.02], [0.2, 0.2, 0.6]])
    verdict = typical_rule(0.09)(p, [1, 2], None, None, rng())
    assert [judged.accepted for judged in verdict.judged] == [True, False]
    assert verdict.final_kind == "residual" and torch.equal(verdict.residual, p[1])
    tree = typical_rule(0.09)(p[[0, 1, 2]], [2, 0], [-1, -1], None, rng())
    assert tree.path == ([0] if threshold(p[0], 0.09) < 0.1 else [1])


def test_at_temperature_0_the_text_is_plain_decodings():
    model, prompt = tiny_llama(), [5, 17, 42]
    config = SpecConfig(gamma=3, max_new_tokens=24, sampling=SamplingConfig())
    decoder = Decoder(LetterTokenizer())
    plain = ids_of(list(generate(lean(model), ScriptProposer(lambda *_: []), prompt, config, (), decoder)))
    guess = ScriptProposer(continuation(plain, len(prompt), wrong_at=(4, 9)))
    found = list(generate(lean(model), guess, prompt, config, (), decoder, rule=typical_rule(0.3)))
    assert ids_of(found) == plain and finish(found).reason == "length"


def test_only_medusa_with_a_threshold_is_lossy():
    assert rule_of(RunSettings("x", proposer="medusa")) is verify_tree
    assert rule_of(RunSettings("x", proposer="eagle", typical_epsilon=0.2)) is verify_tree
    assert rule_of(RunSettings("x", proposer="medusa", typical_epsilon=0.2)) is not verify_tree


def test_drift_is_what_certain_acceptance_adds_and_none_for_an_exact_run():
    def metrics(epsilon):
        found = RunMetrics()
        found.update(Started("a", {"typical_epsilon": epsilon}, (1,), "x", "medusa", 2, {}))
        found.update(Proposed(1, (), 1.0))
        tokens = (Committed(1, "accepted", "", "", 0.4), Committed(2, "bonus", "", "", 0.5))
        found.update(Verified(1, (Tested(0, 1, 0.4, 1.0, 0.1, True, 0.4),), tokens, "bonus", (), 1.0, 0.1, 3))
        return found

    assert metrics(0.09).drift == pytest.approx(0.6 / 2)
    assert metrics(0.0).drift is None
    assert metrics("a stranger's").drift is None


def test_entropy_counts_impossible_tokens_as_nothing():
    assert not math.isnan(threshold(torch.tensor([0.5, 0.5, 0.0]), 0.09))
