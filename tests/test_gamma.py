"""Policies for gamma: what they ask for, and that they never know the verdict on what they ask for."""

import inspect
from itertools import pairwise

import pytest
import torch
from fakes import TINY_VOCAB, ScriptProposer, TableLM, every_proposer, ids_of, lean, rounds_of, run, tiny_llama

from playground import config
from playground.gamma import (
    POLICIES,
    START,
    ConfidencePolicy,
    CostModelPolicy,
    GammaPolicy,
    HeuristicPolicy,
    MovingAveragePolicy,
)
from playground.proposers import AdaptiveProposer, DraftModelProposer, Proposal, Proposer, SuffixProposer

PROMPT = [5, 17, 42, 5, 17, 42, 5, 17]


def plain(model):
    return ids_of(run(lean(model), Proposer(), PROMPT, max_new_tokens=40))


def play(policy, accepts, limit=8, cost=lambda asked: (1.0 * asked, 10.0), rounds=100):
    """Rounds against a target that accepts the first `accepts(round)` drafted tokens; returns what was asked."""
    asked = []
    for index in range(rounds):
        gamma = policy.gamma(limit)
        assert 0 <= gamma <= limit
        asked.append(gamma)
        policy.observe(gamma, min(accepts(index), gamma), *cost(gamma))
    return asked


def test_every_policy_that_can_be_chosen_exists():
    assert tuple(POLICIES) == config.GAMMA_POLICIES


def test_constant_asks_for_all_that_is_allowed():
    assert play(GammaPolicy(), lambda _: 0, 5, rounds=9) == [5] * 9


def test_the_heuristic_adds_two_when_all_were_accepted_and_takes_one_else():
    accepted = [START, 0, 1, 0, 0, 0, 0, 0, 1, 3]
    assert play(HeuristicPolicy(), accepted.__getitem__, 16, rounds=10) == [5, 7, 6, 5, 4, 3, 2, 1, 1, 3]
    policy = HeuristicPolicy()
    assert play(policy, lambda _: 99, 6, rounds=9)[-1] == 6
    assert play(policy, lambda _: 0, 6, rounds=3) == [6, 5, 4]  # it has not grown beyond the limit in secret


def test_a_round_without_a_draft_changes_nothing():
    for policy in (HeuristicPolicy(), MovingAveragePolicy()):
        before = policy.gamma(16)
        for _ in range(5):
            policy.observe(0, 0, 1.0, 1.0)
        assert policy.gamma(16) == before


def test_the_moving_average_settles_one_above_the_accepted_length():
    policy = MovingAveragePolicy()
    assert play(policy, lambda _: 2, 16)[-1] == 3
    assert play(policy, lambda _: 99, 16)[-1] == 16
    assert play(policy, lambda _: 0, 16)[-1] == 1


def cheap(asked):
    return 0.5 * asked, 10.0 + 0.2 * asked


def dear(asked):
    return 9.0 * asked, 10.0 + 2.0 * asked


def test_the_cost_model_drafts_much_when_guesses_are_right_and_cheap():
    assert play(CostModelPolicy(), lambda _: 99, 8, cheap)[-1] == 8


def test_the_cost_model_stops_speculating_when_it_does_not_pay_and_tries_again_now_and_then():
    asked = play(CostModelPolicy(), lambda _: 0, 8, dear, rounds=200)
    assert asked[20:].count(0) > 0.9 * len(asked[20:])
    tries = [index for index, gamma in enumerate(asked) if index > 20 and gamma]
    assert len(tries) >= 8
    assert max(b - a for a, b in pairwise(tries)) <= 17
    assert all(asked[index] == 1 for index in tries)  # the cheapest try


def test_the_cost_model_comes_back_when_guesses_get_better():
    asked = play(CostModelPolicy(), lambda index: 0 if index < 100 else 99, 8, cheap, rounds=300)
    assert sum(asked[50:100]) < 60
    assert sum(asked[-50:]) > 300


def test_the_cost_model_finds_the_best_gamma_of_the_closed_form():
    """alpha 2/3 (two of three accepted each time), c 0.1, flat target passes."""
    from playground.theory import expected_tokens

    policy = CostModelPolicy()
    play(policy, lambda _: 2, 8, lambda asked: (1.0 * asked, 10.0), rounds=400)
    values = [expected_tokens(policy.alpha, gamma) / (gamma + 10.0) for gamma in range(9)]
    assert policy.gamma(8) == values.index(max(values))
    assert policy.alpha == pytest.approx(2 / 3, abs=0.03)


def test_a_disturbed_round_does_not_mislead_the_cost_model():
    times = iter([1.0] * 10 + [1000.0] + [1.0] * 200)
    asked = play(CostModelPolicy(), lambda _: 99, 8, lambda asked: (0.1 * asked, 10.0 * next(times)))
    assert asked[4:].count(8) >= 0.9 * len(asked[4:])


@pytest.mark.parametrize("name", POLICIES)
def test_what_is_asked_depends_on_past_verdicts_only(name):
    """By construction: asking takes the limit and nothing else, and the verdict comes after."""
    assert list(inspect.signature(POLICIES[name].gamma).parameters) == ["self", "limit"]
    for changed in range(1, 12):
        futures = [play_until(POLICIES[name](), changed, last) for last in (0, 99)]
        assert futures[0] == futures[1]


def play_until(policy, rounds, last):
    """Same verdicts in all rounds but the last, whose verdict differs."""
    return play(policy, lambda index: last if index == rounds - 1 else (index * 7) % 4, rounds=rounds)


class Recording(GammaPolicy):
    """Notes the order of questions and verdicts."""

    def __init__(self):
        self.log = []

    def gamma(self, limit):
        self.log.append(("asked", limit))
        return min(limit, 3)

    def observe(self, num_drafted, num_accepted, draft_ms, verify_ms):
        assert draft_ms >= 0
        assert verify_ms > 0
        self.log.append(("told", num_drafted, num_accepted))


def test_the_policy_is_told_each_verdict_once_after_its_round(model):
    policy = Recording()
    events = run(lean(model), AdaptiveProposer(every_proposer(model)["random"], policy), PROMPT, gamma=5)
    assert [entry[0] for entry in policy.log] == ["asked", "told"] * (len(policy.log) // 2)
    told = [entry[1:] for entry in policy.log if entry[0] == "told"]
    seen = [(len(p.nodes), sum(t.accepted for t in v.tested)) for p, v in rounds_of(events)]
    assert told == [pair for pair in seen if pair[0]]


def test_a_round_the_proposer_was_not_asked_in_is_no_evidence(model):
    policy = Recording()
    run(lean(model), AdaptiveProposer(ScriptProposer([1, 2]), policy), PROMPT, gamma=5, max_new_tokens=1)
    assert policy.log == []


def test_the_depth_of_a_tree_counts_not_its_nodes():
    class Tree(Proposer):
        def propose(self, context, gamma, sampling, rng):
            return Proposal([1, 2, 3, 4], None, [-1, -1, 0, 2])

    policy = Recording()
    proposer = AdaptiveProposer(Tree(), policy)
    proposer.propose([1], 5, None, None)
    proposer.observe(type("Verdict", (), {"num_accepted": 2})(), {})
    assert policy.log[-1] == ("told", 3, 2)


@pytest.mark.parametrize("gamma", [1, 2, 4, 7])
@pytest.mark.parametrize("inner", ["ngram", "same", "random", "wrong"])
@pytest.mark.parametrize("name", POLICIES)
def test_greedy_output_equals_plain_decoding_with_every_policy(model, name, inner, gamma):
    proposer = AdaptiveProposer(every_proposer(model)[inner], POLICIES[name]())
    for _ in range(2):  # the second run starts afresh
        assert ids_of(run(lean(model), proposer, PROMPT, gamma=gamma, max_new_tokens=40)) == plain(model)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_an_unsure_draft_ends_behind_the_token_it_is_unsure_of(model, temperature):
    lengths = {}
    for threshold in (0.0, 0.5, 1.0):
        proposer = AdaptiveProposer(every_proposer(model)["random"], ConfidencePolicy(threshold))
        events = run(lean(model), proposer, PROMPT, gamma=7, max_new_tokens=60, temperature=temperature)
        rounds = rounds_of(events)
        lengths[threshold] = max(len(p.nodes) for p, _ in rounds)
        if temperature:
            for proposed, _ in rounds:
                assert all(node.q >= threshold - 1e-6 for node in proposed.nodes[:-1])
    assert lengths[0.0] == 7
    assert lengths[1.0] == 1


def test_confidence_ends_a_suffix_draft_where_opinions_differ():
    context = [1, 2, 3, 4, 5, 9, 1, 2, 3, 4, 5, 8, 1, 2, 3, 4, 6, 7, 1, 2, 3]
    sure = SuffixProposer()
    assert sure.propose(context, 3, None, None).ids == [4, 5, 8]
    unsure = SuffixProposer()
    AdaptiveProposer(unsure, ConfidencePolicy(0.8))
    assert unsure.propose(context, 3, None, None).ids == [4, 5]


TABLE = [[0.05, 0.45, 0.2, 0.2, 0.1], [0.3, 0.05, 0.4, 0.15, 0.1], [0.1, 0.2, 0.1, 0.5, 0.1]]
TABLE += [[0.25, 0.25, 0.2, 0.1, 0.2], [0.4, 0.1, 0.1, 0.3, 0.1]]
DRAFT_TABLE = [[0.2, 0.1, 0.3, 0.3, 0.1]] * 3 + [[0.7, 0.1, 0.1, 0.05, 0.05]] * 2


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "constant"])
def test_sampled_frequencies_are_those_of_the_target_with_every_policy(name):
    target = TableLM(TABLE, context_limit=100_000)
    draft = DraftModelProposer(TableLM(DRAFT_TABLE, context_limit=100_000), (), 5)
    counts = torch.zeros(5, 5)
    for seed in range(6):
        proposer = AdaptiveProposer(draft, POLICIES[name]())
        ids = ids_of(run(target, proposer, [0], gamma=5, max_new_tokens=1500, temperature=1.0, seed=seed))
        for before, after in pairwise(ids):
            counts[before, after] += 1
    for row, expected in zip(counts, torch.tensor(TABLE), strict=True):
        deviation = (expected * (1 - expected) / row.sum()).sqrt()
        assert ((row / row.sum() - expected).abs() <= 4.5 * deviation).all()


def test_a_policy_that_asks_for_none_catches_up_later(model):
    class Every(GammaPolicy):
        def __init__(self):
            self.round = 0

        def gamma(self, limit):
            self.round += 1
            return limit if self.round % 4 == 0 else 0

    proposer = AdaptiveProposer(DraftModelProposer(lean(tiny_llama(seed=7)), (), TINY_VOCAB), Every())
    assert ids_of(run(lean(model), proposer, PROMPT, gamma=4, max_new_tokens=40)) == plain(model)
