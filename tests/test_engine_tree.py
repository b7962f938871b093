"""The engine on trees and scratch tokens: same text as plain decoding, a true cache, ends, budgets, taps."""

from itertools import pairwise

import pytest
import torch
from fakes import (
    TINY_VOCAB,
    Decoder,
    LetterTokenizer,
    TableLM,
    finish,
    generate,
    generic,
    ids_of,
    lean,
    rounds_of,
    run,
    static,
)
from tree_fakes import DrawnTreeProposer, TappingProposer, TreeProposer

from playground.config import SamplingConfig, SpecConfig
from playground.events import from_json, to_json
from playground.metrics import RunMetrics
from playground.proposers import Proposal, Proposer
from playground.proposers.base import Scratch
from playground.sampling import to_probs

PROMPT = [5, 17, 42, 5, 17, 42, 5, 17]
DEPTHS = (1, 2, 4, 7)
BACKENDS = (lean, generic, static)


@pytest.fixture(scope="module")
def truth(model):
    """Plain greedy decoding after PROMPT."""
    return ids_of(run(lean(model), Proposer(), PROMPT, max_new_tokens=60))


class FixedTree(Proposer):
    """Proposes what `make(context, gamma)` returns."""

    name = "fixed tree"

    def __init__(self, make):
        self.make = make

    def propose(self, context, gamma, sampling, rng):
        return self.make(context, gamma)


def metrics_of(events):
    metrics = RunMetrics()
    for event in events:
        metrics.update(event)
    return metrics


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("scratch", [0, 6])
def test_greedy_output_of_random_trees_equals_plain_decoding(model, truth, backend, depth, scratch):
    for seed in range(3):
        proposer = TreeProposer(truth, len(PROMPT), TINY_VOCAB, seed=seed, scratch=scratch)
        events = run(backend(model), proposer, PROMPT, gamma=depth, max_new_tokens=60)
        assert ids_of(events) == truth
        metrics = metrics_of(events)
        assert metrics.num_accepted > 0
        assert any(node.parent != index - 1 for p, _ in rounds_of(events) for index, node in enumerate(p.nodes))
        assert all((seen is not None) == bool(scratch) for seen in proposer.scratch_seen[:-2])


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_cache_equals_a_fresh_pass_after_every_random_round(model, truth, backend):
    target, seen = backend(model), []

    class Checking(TreeProposer):
        def propose(self, context, gamma, sampling, rng):
            assert target.ids == context[:-1]
            logits = target.extend([context[-1], 1, 2])
            target.rollback(len(context) - 1)
            with torch.inference_mode():
                expected = model(torch.tensor([[*context, 1, 2]])).logits[0, -3:]
            seen.append(float((logits - expected).abs().max() / expected.abs().max()))
            return super().propose(context, gamma, sampling, rng)

    proposer = Checking(truth, len(PROMPT), TINY_VOCAB, right=0.5, scratch=4)
    run(target, proposer, PROMPT, gamma=4, max_new_tokens=50)
    run(target, proposer, PROMPT, gamma=4, max_new_tokens=50, temperature=1.0)
    assert len(seen) > 30
    assert max(seen) < 1e-4


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 12])
def test_the_budget_is_met_exactly_and_no_path_is_longer_than_useful(model, truth, depth, limit):
    proposer = TreeProposer(truth, len(PROMPT), TINY_VOCAB, right=0.9)
    events = run(lean(model), proposer, PROMPT, gamma=depth, max_new_tokens=limit)
    assert ids_of(events) == truth[:limit]
    left = limit
    for proposed, verified in rounds_of(events):
        assert depth_of(proposed.nodes) <= min(depth, left - 1)
        left -= len(verified.committed)


def depth_of(nodes):
    depths = []
    for node in nodes:
        depths.append(1 if node.parent < 0 else depths[node.parent] + 1)
    return max(depths, default=0)


def first_new(ids, start):
    return next(i for i in range(start, len(ids)) if ids[i] not in ids[:i])


def branching(truth, prompt_length):
    """At each depth a wrong sibling first, then the true one, which the path goes on from."""

    def make(context, gamma):
        start, ids, parents = len(context) - prompt_length, [], []
        for token in truth[start : start + gamma]:
            parent = len(ids) - 1
            ids += [(token + 1) % TINY_VOCAB, token]
            parents += [parent, parent]
        return Proposal(ids, None, parents)

    return FixedTree(make)


@pytest.mark.parametrize("position", range(6))
def test_an_end_token_ends_the_output_wherever_in_the_tree_it_falls(model, truth, position):
    """Depths 1 … 5 and the bonus; what follows it is neither tested nor shown."""
    at = first_new(truth, position)
    prompt = [*PROMPT, *truth[: at - position]]
    target = lean(model)
    events = run(target, branching(truth, len(PROMPT)), prompt, end_ids=(truth[at],), gamma=5, max_new_tokens=40)
    assert ids_of(events) == truth[at - position : at + 1]
    assert finish(events).reason == "end_token"
    proposed, verified = rounds_of(events)[-1]
    assert len(proposed.nodes) == 10
    assert verified.final_kind == ("" if position < 5 else "bonus")
    assert len(verified.tested) == 2 * min(position + 1, 5)
    assert len(verified.positions) == len(verified.tested) + (position == 5)
    assert [test.accepted for test in verified.tested] == [False, True] * min(position + 1, 5)
    assert target.ids == [*prompt, *ids_of(events)][:-1]


def test_a_refused_end_token_does_not_end_the_run(model, truth):
    end = next(i for i in range(TINY_VOCAB) if i not in truth)

    def make(context, gamma):
        place = len(context) - len(PROMPT)
        return Proposal([end, 3, truth[place]], None, [-1, 0, -1]) if gamma > 1 else Proposal([])

    events = run(lean(model), FixedTree(make), PROMPT, end_ids=(end,), gamma=2, max_new_tokens=20)
    assert ids_of(events) == truth[:20]
    assert finish(events).reason == "length"


@pytest.mark.parametrize("span", ["inside one token", "across two tokens"])
def test_a_stop_string_ends_the_text_at_the_same_character_as_in_plain_decoding(model, truth, span):
    tokenizer = LetterTokenizer([f"<{i:02d}>" for i in range(TINY_VOCAB)])
    text = tokenizer.decode(truth)
    start, size = (36, 3) if span == "inside one token" else (38, 4)
    stop = text[start : start + size]
    expected = text[: text.index(stop) + size]
    events = run(
        lean(model),
        branching(truth, len(PROMPT)),
        PROMPT,
        tokenizer=tokenizer,
        gamma=6,
        max_new_tokens=40,
        stop_strings=(stop,),
    )
    assert finish(events).text == expected == "".join(t.text for _, v in rounds_of(events) for t in v.committed)
    assert finish(events).reason == "stop_string"
    for _, verified in rounds_of(events):
        assert sum(test.accepted for test in verified.tested) <= len(verified.committed)


@pytest.mark.parametrize("scratch", [0, 5])
def test_near_the_context_limit_trees_shrink_and_the_run_ends_in_words(model, truth, scratch):
    for length in (56, 60, 63, 64):
        prompt = (PROMPT * 8)[:length]
        expected = ids_of(run(lean(model, limit=64), Proposer(), prompt, max_new_tokens=20))
        proposer = TreeProposer(expected, length, TINY_VOCAB, width=8, scratch=scratch)
        events = run(lean(model, limit=64), proposer, prompt, gamma=4, max_new_tokens=20)
        assert ids_of(events) == expected
        assert finish(events).reason == "context_full"
        assert all(length + len(p.nodes) <= 64 for p, _ in rounds_of(events))


def test_paths_longer_than_gamma_and_parents_after_their_children_are_refused(model):
    for make, words in (
        (lambda context, gamma: Proposal([1, 2, 3], None, [-1, 0, 0]), "drafted 2 tokens; 1 were asked for"),
        (lambda context, gamma: Proposal([1, 2], None, [1, -1]), "parents come first"),
    ):
        with pytest.raises(ValueError, match=words):
            run(lean(model), FixedTree(make), PROMPT, gamma=1, max_new_tokens=9)


def test_a_chain_said_as_a_tree_is_a_chain():
    assert Proposal([4, 5, 6], None, [-1, 0, 1]).parents is None
    assert Proposal([], None, []).parents is None


TABLE = [
    [0.05, 0.45, 0.2, 0.2, 0.1],
    [0.3, 0.05, 0.4, 0.15, 0.1],
    [0.1, 0.2, 0.1, 0.5, 0.1],
    [0.25, 0.25, 0.2, 0.1, 0.2],
    [0.4, 0.1, 0.1, 0.3, 0.1],
]
DRAFT_TABLE = [[0.2, 0.1, 0.3, 0.3, 0.1]] * 3 + [[0.7, 0.1, 0.1, 0.05, 0.05]] * 2


@pytest.mark.parametrize("replacement", [False, True])
def test_sampled_frequencies_of_trees_are_those_of_the_target(replacement):
    """End to end: every pair of successive tokens within 4.5 standard deviations of the exact chain."""
    target, counts = TableLM(TABLE, context_limit=100_000), torch.zeros(5, 5)
    proposer = DrawnTreeProposer(DRAFT_TABLE, [-1, -1, 0, 0, 1, 2], replacement)
    for seed in range(4):
        settings = {"gamma": 3, "max_new_tokens": 1500, "seed": seed, "temperature": 1.0}
        events = run(target, proposer, [0], (), LetterTokenizer("abcde"), **settings)
        for before, after in pairwise(ids_of(events)):
            counts[before, after] += 1
    probs = to_probs(target.logits, SamplingConfig(temperature=1.0))
    for row, expected in zip(counts, probs, strict=True):
        deviation = (expected * (1 - expected) / row.sum()).sqrt()
        assert ((row / row.sum() - expected).abs() <= 4.5 * deviation).all()


def test_shown_numbers_of_a_tree_are_those_of_a_separate_pass(model, truth):
    """p of every committed token is the target's own, also where a sibling was refused before it."""
    proposer = TreeProposer(truth, len(PROMPT), TINY_VOCAB, right=0.3)
    events = run(lean(model), proposer, PROMPT, gamma=3, max_new_tokens=30, temperature=1.0)
    text, siblings = list(PROMPT), 0
    for proposed, verified in rounds_of(events):
        siblings += sum(test.accepted for test in verified.tested) < len(verified.tested) - 1
        residual = verified.final_kind == "residual"
        assert len(verified.positions) == len(verified.tested) + (not residual)
        for test, position in zip(verified.tested, verified.positions, strict=False):
            assert proposed.nodes[test.node].id == test.id
            assert position.draft[0].id == test.id
        for token in verified.committed:
            with torch.inference_mode():
                expected = torch.softmax(model(torch.tensor([text])).logits[0, -1], -1)[token.id]
            assert token.p == pytest.approx(float(expected), abs=1e-3)
            text.append(token.id)
        assert from_json(to_json(verified)) == verified
        assert from_json(to_json(proposed)) == proposed
    assert siblings > 0


def test_scratch_tokens_are_answered_as_their_place_says(model, truth):
    """Their logits are those of a separate pass over the context and their ancestors."""
    checked = []

    class Checking(TreeProposer):
        def propose(self, context, gamma, sampling, rng):
            self.asked = list(context), super().propose(context, gamma, sampling, rng)
            return self.asked[1]

        def observe(self, verdict, hidden, scratch_logits=None):
            if scratch_logits is None:  # the last round was not asked for a draft
                return
            context, proposal = self.asked
            combined, parents = [*proposal.ids, *proposal.scratch.ids], [*proposal.parents, *proposal.scratch.parents]
            for j, logits in enumerate(scratch_logits):
                path, node = [], len(proposal.ids) + j
                while node >= 0:
                    path, node = [combined[node], *path], parents[node]
                with torch.inference_mode():
                    expected = model(torch.tensor([[*context, *path]])).logits[0, -1]
                checked.append(float((logits - expected).abs().max() / expected.abs().max()))

    run(lean(model), Checking(truth, len(PROMPT), TINY_VOCAB, scratch=7), PROMPT, gamma=3, max_new_tokens=12)
    assert len(checked) > 20
    assert max(checked) < 1e-4


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("backend", BACKENDS)
def test_with_and_without_scratch_tokens_all_verdicts_are_the_same(model, truth, backend, temperature):
    def made(num_scratch):
        def make(context, gamma):
            guesses = [(7 * len(context) + 5 * i) % TINY_VOCAB for i in range(6)]
            place = len(context) - len(PROMPT)
            ids, parents = [guesses[0], *truth[place : place + gamma]], [-1, -1, 1, 2, 3][: gamma + 1]
            extra = Scratch(guesses[-num_scratch:], list(range(-1, num_scratch - 1))) if num_scratch else None
            return Proposal(ids, None, parents, extra)

        events = run(backend(model), FixedTree(make), PROMPT, gamma=4, max_new_tokens=30, temperature=temperature)
        return [
            ([token.id for token in v.committed], [(test.node, test.accepted) for test in v.tested])
            for _, v in rounds_of(events)
        ]

    assert made(0) == made(5)


def test_a_chain_with_scratch_tokens_stays_a_chain(model, truth):
    def make(context, gamma):
        start = len(context) - len(PROMPT)
        return Proposal(truth[start : start + gamma], None, None, Scratch([1, 2, 3], [-1, gamma, 0]))

    events = run(lean(model), FixedTree(make), PROMPT, gamma=4, max_new_tokens=30)
    assert ids_of(events) == truth[:30]
    assert metrics_of(events).alpha == 1.0
    assert rounds_of(events)[0][0].num_scratch == 3


def test_the_window_of_lookahead_decoding_is_such_a_forest(model):
    """Row 0 a chain after the last token, each further row one step behind the one above, in its column.

    Visibility and positions as in Fu et al. 2024: token (r, c) sees row 0 up to column c, then its own column
    down to row r, and stands at r + c + 1 after the last token.
    """
    width, levels, target = 4, 3, lean(model)
    ids = [(13 * i + 7) % TINY_VOCAB for i in range(width * levels)]
    parents = [c - 1 for c in range(width)] + [i - width for i in range(width, width * levels)]
    for _ in target.prefill(PROMPT[:-1]):
        pass
    logits = target.extend(*Proposal([], scratch=Scratch(ids, parents)).layout(PROMPT[-1]))[1:]
    for r in range(levels):
        for c in range(width):
            column = [ids[row * width + c] for row in range(1, r + 1)]
            with torch.inference_mode():
                expected = model(torch.tensor([[*PROMPT, *ids[: c + 1], *column]])).logits[0, -1]
            assert torch.allclose(logits[r * width + c], expected, atol=1e-3)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("length", [1, 9, 300])
def test_hidden_states_of_every_token_but_the_last_are_known_before_each_round(model, backend, length):
    prompt = [(7 * i * i + 3 * i + 5) % TINY_VOCAB for i in range(length)]
    plain = ids_of(run(lean(model), Proposer(), prompt, max_new_tokens=20))
    target = backend(model)
    for _ in range(2):  # the second time everything is cached, and read anew
        proposer = TappingProposer({0, 2}, plain, length, TINY_VOCAB, scratch=3)
        events = run(target, proposer, prompt, gamma=3, max_new_tokens=20)
        assert ids_of(events) == plain
        assert all(rows == tokens - 1 for rows, tokens in proposer.known)
        with torch.inference_mode():
            expected = model(torch.tensor([[*prompt, *plain]]), output_hidden_states=True).hidden_states[0][0]
        known = torch.cat(proposer.seen[0])
        assert torch.allclose(known, expected[: len(known)], atol=1e-4)
        with torch.inference_mode():
            layer = lean(model)
            layer.taps = frozenset({2})
            layer.extend([*prompt, *plain])
        last = torch.cat(proposer.seen[2])
        assert torch.allclose(last, layer.hidden[2][: len(last)], atol=1e-3)
    assert (target.taps, target.hidden) == (frozenset(), {})


def test_a_closed_run_taps_no_longer(model, truth):
    target = lean(model)
    proposer = TappingProposer({1}, truth, len(PROMPT), TINY_VOCAB)
    events = generate(target, proposer, PROMPT, SpecConfig(), (), Decoder(LetterTokenizer()))
    next(events)
    assert target.taps == frozenset({1})
    events.close()
    assert (target.taps, target.hidden) == (frozenset(), {})
    assert ids_of(run(target, Proposer(), PROMPT, max_new_tokens=20)) == truth[:20]


def test_alpha_of_a_tree_counts_depths_and_draft_efficiency_counts_nodes(model, truth):
    events = run(lean(model), branching(truth, len(PROMPT)), PROMPT, gamma=3, max_new_tokens=41)
    metrics = metrics_of(events)
    assert metrics.alpha == 1.0
    assert metrics.acceptance_by_position == [1.0, 1.0, 1.0]
    assert metrics.draft_efficiency == 0.5
    assert metrics.mean_overlap == 1.0
    assert sum(record.num_tested for record in metrics.rounds) == metrics.num_tested == metrics.num_accepted


def test_a_tree_is_tested_less_deep_where_all_siblings_are_refused(model, truth):
    def make(context, gamma):
        wrong = (truth[len(context) - len(PROMPT)] + 1) % TINY_VOCAB
        return Proposal([wrong, wrong, 1], None, [-1, -1, 0]) if gamma > 1 else Proposal([])

    proposed, verified = rounds_of(run(lean(model), FixedTree(make), PROMPT, gamma=2, max_new_tokens=3))[0]
    metrics = metrics_of([proposed, verified])
    assert (metrics.num_drafted, metrics.num_tested, metrics.num_accepted) == (3, 1, 0)
    assert len(verified.tested) == 2
    assert metrics.acceptance_by_position == [0.0]
