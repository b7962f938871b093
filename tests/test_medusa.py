"""Medusa: the tree chosen from accuracies, chains and trees that leave the target's text as it is."""

import json

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
    hidden_of,
    medusa_heads,
    metrics_of,
    plain,
    spy,
)

from playground.config import SamplingConfig
from playground.proposers.medusa import MedusaProposer, best_tree, read_accuracies
from playground.sampling import to_probs

EMBEDDING = tiny_llama().get_input_embeddings().weight.detach()  # of the model all tests share
ACCURACIES = [[0.6, 0.2, 0.05], [0.5, 0.2, 0.1], [0.4, 0.1, 0.1], [0.3, 0.1, 0.0]]


@pytest.fixture(scope="module")
def truth(model):
    return plain(model)


@pytest.fixture(scope="module")
def heads(model, truth):
    return medusa_heads(model, [*PROMPT, *truth])


def proposer_of(heads, shape):
    tree = (ACCURACIES, 12) if shape == "tree" else ()
    return MedusaProposer(heads, EMBEDDING, TINY_VOCAB, *tree)


@pytest.mark.parametrize("backend", [lean, generic, static])
@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("shape", ["chain", "tree"])
def test_greedy_output_equals_plain_decoding(model, heads, truth, backend, gamma, shape):
    proposer = proposer_of(heads, shape)
    for _ in range(2):
        events = run(backend(model), proposer, PROMPT, gamma=gamma, max_new_tokens=LENGTH)
        assert ids_of(events) == truth
        metrics = metrics_of(events)
        assert metrics.num_accepted > 10
        assert metrics.num_tested - metrics.num_accepted > 0
        assert branches(events) == (shape == "tree")


@pytest.mark.parametrize("shape", ["chain", "tree"])
def test_budget_end_token_and_context_limit_are_those_of_plain_decoding(model, heads, shape):
    for gamma in (2, 5):
        check_budget_and_end(model, lean, lambda _: proposer_of(heads, shape), gamma)


@pytest.mark.parametrize("shape", ["chain", "tree"])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_target_s_cache_equals_a_fresh_pass_before_every_draft(model, heads, shape, temperature):
    metrics = check_cache(model, lean(model), proposer_of(heads, shape), gamma=4, temperature=temperature)
    assert metrics.num_tested - metrics.num_accepted > 5


@pytest.mark.parametrize("filters", [{}, {"top_k": 5}, {"temperature": 0.7, "top_p": 0.8}])
def test_a_chain_is_drawn_from_the_distributions_it_shows_and_they_are_the_heads_own(model, heads, filters):
    checked = []

    def check(context, sampling, state, proposal):
        hidden = hidden_of(model, context[:-1], heads.feature_layers)
        last = {layer: states[-1:] for layer, states in hidden.items()}
        logits = heads.logits(heads(last, EMBEDDING[context[-1]][None])[0])
        expected = torch.zeros(len(proposal.ids), TINY_VOCAB)
        expected[:, heads.draft_ids] = to_probs(logits[: len(proposal.ids)], sampling)
        torch.testing.assert_close(proposal.probs, expected, rtol=1e-3, atol=1e-4)
        p = to_probs(lean(model).extend([*context, *proposal.ids[:-1]])[-len(proposal.ids) :], sampling)
        check_drawn(proposal, state, p)
        checked.append(len(proposal.ids))

    settings = {"gamma": 6, "max_new_tokens": 40, "temperature": 1.0} | filters
    run(lean(model), spy(proposer_of(heads, "chain"), after=check), PROMPT, **settings)
    assert max(checked) == 4


@pytest.mark.parametrize("shape", ["chain", "tree"])
def test_sampled_frequencies_are_those_of_the_target(shape):
    model = tiny_llama(vocab=12)
    heads = medusa_heads(model, [3, 1, 4, 1, 5, *plain(model, [3, 1, 4, 1, 5])])
    tree = (ACCURACIES, 6) if shape == "tree" else ()
    check_frequencies(model, lean(model), MedusaProposer(heads, model.get_input_embeddings().weight, 12, *tree))


def test_a_prompt_of_one_token_has_no_state_to_draft_from(model, heads):
    expected = plain(model, [9], 12)
    events = run(lean(model), proposer_of(heads, "chain"), [9], gamma=3, max_new_tokens=12)
    assert ids_of(events) == expected
    drafted = [len(proposed.nodes) for proposed, _ in rounds_of(events)]
    assert drafted[:2] == [0, 3]


def test_a_chain_ends_behind_the_token_that_the_policy_says(model, heads):
    proposer, asked = proposer_of(heads, "chain"), []
    proposer.stops_after = lambda probability: asked.append(probability) or len(asked) % 2 == 0
    events = run(lean(model), proposer, PROMPT, gamma=4, max_new_tokens=20)
    assert {len(proposed.nodes) for proposed, _ in rounds_of(events)[:-2]} == {2}
    assert all(0 < probability <= 1 for probability in asked)


def test_the_best_tree_holds_the_paths_of_the_largest_products():
    """Against every path there is: no path left out is worth more than one taken."""
    worth, tree = [], best_tree(ACCURACIES, 15)
    for branch in tree:
        above = 1.0 if branch.parent < 0 else worth[branch.parent]
        assert branch.parent < len(worth)
        assert branch.depth == (0 if branch.parent < 0 else tree[branch.parent].depth + 1)
        worth.append(above * ACCURACIES[branch.depth][branch.rank])
    every, level = [], [1.0]
    for ranks in ACCURACIES:
        level = [above * share for above in level for share in ranks]
        every += level
    assert worth == pytest.approx(sorted(every, reverse=True)[:15])
    siblings = {}
    for branch in tree:
        assert branch.rank == siblings.setdefault((branch.parent, branch.depth), 0)
        siblings[branch.parent, branch.depth] += 1


def test_worthless_nodes_are_left_out():
    assert [(b.parent, b.rank) for b in best_tree([[0.5, 0.0], [0.0]], 10)] == [(-1, 0)]
    assert best_tree([], 4) == []


def test_accuracies_come_from_the_figures_of_the_training(tmp_path):
    with pytest.raises(ValueError, match="draft a chain"):
        read_accuracies(tmp_path)
    figures = {"held_out": {}, "rank_accuracy": {"depth 1": [0.5, 0.1], "depth 2": [0.3, 0.1]}}
    (tmp_path / "figures.json").write_text(json.dumps(figures))
    assert read_accuracies(tmp_path) == [[0.5, 0.1], [0.3, 0.1]]


def test_a_tree_without_accuracies_is_refused(heads):
    with pytest.raises(ValueError, match="measured accuracy"):
        MedusaProposer(heads, EMBEDDING, TINY_VOCAB, num_nodes=4)


def test_no_tree_is_deeper_than_asked_for(heads, model):
    proposer = proposer_of(heads, "tree")
    hidden = hidden_of(model, PROMPT[:-1], heads.feature_layers)
    proposer.observe_prefill(hidden)
    for gamma in (0, 1, 2, 3, 9):
        assert proposer.propose(PROMPT, gamma, SamplingConfig(), torch.Generator()).depth <= min(gamma, 4)
