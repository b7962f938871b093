"""EAGLE: its cache after any verdict, chains drawn from their own distributions, trees grown by confidence."""

import pytest
import torch
from fakes import TINY_VOCAB, generic, ids_of, lean, rounds_of, run, static, tiny_llama
from head_fakes import (
    GAMMAS,
    LENGTH,
    PROMPT,
    branches,
    check_budget_and_end,
    check_cache,
    check_drawn,
    check_frequencies,
    eagle_head,
    hidden_of,
    metrics_of,
    plain,
    spy,
)

from playground.heads import EagleCache
from playground.proposers.eagle import Candidates, EagleProposer
from playground.sampling import to_probs


@pytest.fixture(scope="module")
def truth(model):
    return plain(model)


@pytest.fixture(scope="module")
def head(model, truth):
    return eagle_head(model, [*PROMPT, *truth])


def proposer_of(model, head, shape, end_ids=()):
    embedding = model.get_input_embeddings().weight.detach()
    return EagleProposer(head, embedding, end_ids, model.config.vocab_size, 10 if shape == "tree" else 0, 3)


def fresh_rows(model, head, context, drafted=()):
    """What the head gives in one pass for the rows of the context, then step by step for a drafted path."""
    with torch.inference_mode():
        features = head.fuse(hidden_of(model, context[:-1], head.feature_layers))
        embedding, cache = model.get_input_embeddings().weight, EagleCache()
        out = head(embedding[torch.tensor(context[1:])], features, torch.arange(len(features)), cache=cache)
        outs = [out[-1:]]
        for token in drafted:
            position = torch.tensor([cache.length])
            outs.append(head(embedding[torch.tensor([token])], outs[-1], position, cache=cache))
        cache.rollback(len(features))
    return torch.cat(outs), cache


@pytest.mark.parametrize("backend", [lean, generic, static])
@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("shape", ["chain", "tree"])
def test_greedy_output_equals_plain_decoding(model, head, truth, backend, gamma, shape):
    proposer = proposer_of(model, head, shape)
    for _ in range(2):
        events = run(backend(model), proposer, PROMPT, gamma=gamma, max_new_tokens=LENGTH)
        assert ids_of(events) == truth
        metrics = metrics_of(events)
        assert metrics.num_accepted > 10
        assert metrics.num_tested - metrics.num_accepted > 0
        assert branches(events) == (shape == "tree")


@pytest.mark.parametrize("shape", ["chain", "tree"])
def test_budget_end_token_and_context_limit_are_those_of_plain_decoding(model, head, shape):
    for gamma in (2, 5):
        check_budget_and_end(model, lean, lambda _: proposer_of(model, head, shape), gamma)


@pytest.mark.parametrize("shape", ["chain", "tree"])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_target_s_cache_equals_a_fresh_pass_before_every_draft(model, head, shape, temperature):
    proposer = proposer_of(model, head, shape)
    metrics = check_cache(model, lean(model), proposer, gamma=4, temperature=temperature)
    assert metrics.num_tested - metrics.num_accepted > 5


@pytest.mark.parametrize("shape", ["chain", "tree"])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("length", [2, 8, 300])
def test_its_own_cache_equals_a_fresh_pass_after_every_draft(model, head, shape, temperature, length):
    proposer, seen = proposer_of(model, head, shape), []
    prompt = [(7 * i * i + 3 * i + 5) % TINY_VOCAB for i in range(length)]

    def check(context, sampling, state, proposal):
        _, cache = fresh_rows(model, head, context)
        mine = proposer._cache
        assert mine.length == cache.length == len(context) - 1
        for ours, fresh in ((mine.keys, cache.keys), (mine.values, cache.values)):
            torch.testing.assert_close(ours[:, : mine.length], fresh[:, : cache.length], rtol=1e-3, atol=1e-3)
        seen.append(len(proposal.ids))

    target = lean(model)
    for _ in range(2):
        run(target, spy(proposer, after=check), prompt, gamma=4, max_new_tokens=15, temperature=temperature)
        del proposer.propose
    assert max(seen) == (10 if shape == "tree" else 4)


@pytest.mark.parametrize("filters", [{}, {"top_k": 5}, {"temperature": 0.7, "top_p": 0.8}])
def test_a_chain_is_drawn_from_the_distributions_it_shows_and_they_are_the_head_s_own(model, head, filters):
    checked = []

    def check(context, sampling, state, proposal):
        features, _ = fresh_rows(model, head, context, proposal.ids[:-1])
        expected = torch.zeros(len(proposal.ids), TINY_VOCAB)
        expected[:, head.draft_ids] = to_probs(head.guess(features), sampling)
        torch.testing.assert_close(proposal.probs, expected, rtol=1e-3, atol=1e-4)
        p = to_probs(lean(model).extend([*context, *proposal.ids[:-1]])[-len(proposal.ids) :], sampling)
        check_drawn(proposal, state, p)
        checked.append(len(proposal.ids))

    settings = {"gamma": 5, "max_new_tokens": 30, "temperature": 1.0} | filters
    run(lean(model), spy(proposer_of(model, head, "chain"), after=check), PROMPT, **settings)
    assert max(checked) == 5


@pytest.mark.parametrize("num_nodes", [1, 4, 12])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_a_tree_keeps_the_nodes_of_highest_cumulative_confidence(model, head, num_nodes, depth):
    """Against an exhaustive search over three children per node, each path in a pass of its own."""
    embedding = model.get_input_embeddings().weight.detach()
    proposer = EagleProposer(head, embedding, (), TINY_VOCAB, num_nodes, top_k=200)
    checked = []

    def check(context, sampling, state, proposal):
        if checked:
            return
        found, level = [], [((), 0.0)]
        for _ in range(depth):
            following = []
            for path, score in level:
                features, _ = fresh_rows(model, head, context, path)
                values, indices = head.guess(features[-1:])[0].log_softmax(-1).topk(12)
                pairs = zip(head.draft_ids[indices].tolist(), values.tolist(), strict=True)
                following += [((*path, token), score + value) for token, value in pairs]
            found += following
            level = sorted(following, key=lambda item: -item[1])[:12]
        expected = {path for path, _ in sorted(found, key=lambda item: -item[1])[:num_nodes]}
        parents = range(-1, len(proposal.ids) - 1) if proposal.parents is None else proposal.parents
        paths = []
        for token, parent in zip(proposal.ids, parents, strict=True):
            paths.append((*(paths[parent] if parent >= 0 else ()), token))
        assert set(paths) == expected
        assert proposal.probs is None
        checked.append(len(paths))

    run(lean(model), spy(proposer, after=check), PROMPT, gamma=depth, max_new_tokens=depth + 1)
    assert checked == [num_nodes]


def test_candidates_stay_a_tree_when_confidences_are_equal():
    tree = Candidates(3)
    tree.add([-1], [[4, 5]], [[0.0, -1.0]])
    tree.add([0, 1], [[6, 7], [8, 9]], [[1e-7, -2.0], [0.0, -3.0]])
    assert (tree.proposal().ids, tree.proposal().parents) == ([4, 6, 5], [-1, 0, -1])


@pytest.mark.parametrize("shape", ["chain", "tree"])
def test_sampled_frequencies_are_those_of_the_target(shape):
    model = tiny_llama(vocab=12)
    head = eagle_head(model, [3, 1, 4, 1, 5, *plain(model, [3, 1, 4, 1, 5])])
    check_frequencies(model, lean(model), proposer_of(model, head, shape))


def test_a_prompt_of_one_token_has_no_features_to_draft_from(model, head):
    expected = plain(model, [9], 12)
    events = run(lean(model), proposer_of(model, head, "chain"), [9], gamma=3, max_new_tokens=12)
    assert ids_of(events) == expected
    drafted = [len(proposed.nodes) for proposed, _ in rounds_of(events)]
    assert drafted[:2] == [0, 3]


def test_rounds_that_asked_for_nothing_are_caught_up_on(model, head, truth):
    proposer, calls = proposer_of(model, head, "chain"), []
    propose = proposer.propose

    def sometimes(context, *rest):
        calls.append(len(context))
        return propose(context, *rest) if len(calls) % 4 == 0 else propose(context, 0, *rest[1:])

    proposer.propose = sometimes
    events = run(lean(model), proposer, PROMPT, gamma=4, max_new_tokens=LENGTH)
    assert ids_of(events) == truth
    assert metrics_of(events).num_accepted > 3


def test_a_chain_ends_with_an_end_token_or_where_the_policy_says(model, head, truth):
    proposer, asked = proposer_of(model, head, "chain"), []
    proposer.stops_after = lambda probability: asked.append(probability) or len(asked) % 2 == 0
    events = run(lean(model), proposer, PROMPT, gamma=4, max_new_tokens=20)
    assert {len(proposed.nodes) for proposed, _ in rounds_of(events)[:-2]} == {2}
    drafted = [node.id for proposed, _ in rounds_of(events) for node in proposed.nodes]
    end = max(set(drafted), key=drafted.count)
    events = run(lean(model), proposer_of(model, head, "chain", (end,)), PROMPT, gamma=6, max_new_tokens=40)
    assert all(node.id != end for proposed, _ in rounds_of(events) for node in proposed.nodes[:-1])
