"""Early exit: verification goes on from the draft's own layers, and the output is the target's all the same."""

import pytest
import torch
import torch.nn.functional as F
from fakes import (
    TINY_VOCAB,
    Decoder,
    LetterTokenizer,
    generate,
    generic,
    ids_of,
    lean,
    rounds_of,
    run,
    static,
    tiny_llama,
)
from head_fakes import (
    GAMMAS,
    LENGTH,
    PROMPT,
    check_budget_and_end,
    check_cache,
    check_drawn,
    check_frequencies,
    exit_adapters,
    hidden_of,
    metrics_of,
    plain,
    spy,
)

from playground.config import SpecConfig
from playground.events import Proposed
from playground.proposers import Proposer
from playground.proposers.early_exit import EarlyExitProposer
from playground.sampling import to_probs

DEPTHS = (1, 2, 3)


@pytest.fixture(scope="module")
def deep():
    """A random Llama of four layers."""
    return tiny_llama(num_hidden_layers=4)


@pytest.fixture(scope="module")
def truth(deep):
    return plain(deep)


@pytest.fixture(scope="module")
def adapters(deep, truth):
    return exit_adapters(deep, [*PROMPT, *truth], DEPTHS)


@pytest.mark.parametrize("backend", [lean, static])
@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("adapted", [True, False])
def test_greedy_output_equals_plain_decoding(deep, truth, adapters, backend, gamma, depth, adapted):
    target = backend(deep)
    proposer = EarlyExitProposer(target, depth, (), adapters if adapted else None)
    for _ in range(2):
        events = run(target, proposer, PROMPT, gamma=gamma, max_new_tokens=LENGTH)
        assert ids_of(events) == truth
        metrics = metrics_of(events)
        assert metrics.num_tested - metrics.num_accepted > 0
        if adapted:
            assert metrics.num_accepted > 10


@pytest.mark.parametrize("depth", DEPTHS)
def test_drafted_tokens_pass_each_layer_once(deep, adapters, depth, monkeypatch):
    """First layers: once per token while drafting, and once for the last drafted one; the others once for all."""
    from playground.lm import LeanLM

    passes = []
    chain = LeanLM._chain
    note = lambda lm, x, start, first, last: passes.append((len(x), first, last)) or chain(lm, x, start, first, last)  # noqa: E731
    target = lean(deep)
    proposer = EarlyExitProposer(target, depth, (), adapters)
    monkeypatch.setattr(LeanLM, "_chain", note)
    run(target, proposer, PROMPT, gamma=3, max_new_tokens=20)
    first = passes.index((1, 0, depth))
    assert passes[first : first + 5] == [*[(1, 0, depth)] * 3, (1, 0, depth), (4, depth, 4)]


@pytest.mark.parametrize("adapted", [True, False])
def test_budget_end_token_and_context_limit_are_those_of_plain_decoding(deep, adapters, adapted):
    for gamma in (2, 5):
        for ends in ((), range(0, TINY_VOCAB, 7)):  # also where drafting stops at tokens that end nothing
            chosen = adapters if adapted else None
            check_budget_and_end(deep, lean, lambda lm, e=ends, c=chosen: EarlyExitProposer(lm, 2, e, c), gamma)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("depth", DEPTHS)
def test_the_target_s_cache_equals_a_fresh_pass_before_every_draft(deep, adapters, depth, temperature):
    target = lean(deep)
    proposer = EarlyExitProposer(target, depth, (), adapters)
    metrics = check_cache(deep, target, proposer, gamma=4, temperature=temperature)
    assert metrics.num_tested - metrics.num_accepted > 5


@pytest.mark.parametrize("filters", [{}, {"top_k": 5}, {"temperature": 0.7, "top_p": 0.8}])
@pytest.mark.parametrize("adapted", [True, False])
def test_a_chain_is_drawn_from_the_distributions_it_shows_and_they_are_of_these_layers(
    deep, adapters, filters, adapted
):
    checked, target = [], lean(deep)

    def check(context, sampling, state, proposal):
        count = len(proposal.ids)
        hidden = hidden_of(deep, [*context, *proposal.ids[:-1]], {2})[2][-count:]
        if adapted:
            logits, ids = adapters.logits(adapters(hidden, 2)), adapters.draft_ids
        else:
            normed = F.rms_norm(hidden, (32,), deep.model.norm.weight, deep.config.rms_norm_eps)
            logits, ids = deep.lm_head(normed), torch.arange(TINY_VOCAB)
        expected = torch.zeros(count, TINY_VOCAB)
        expected[:, ids] = to_probs(logits, sampling)
        torch.testing.assert_close(proposal.probs, expected, rtol=1e-3, atol=1e-4)
        p = to_probs(lean(deep).extend([*context, *proposal.ids[:-1]])[-count:], sampling)
        check_drawn(proposal, state, p)
        checked.append(count)

    proposer = spy(EarlyExitProposer(target, 2, (), adapters if adapted else None), after=check)
    run(target, proposer, PROMPT, **{"gamma": 5, "max_new_tokens": 30, "temperature": 1.0} | filters)
    assert max(checked) == 5


@pytest.mark.parametrize("adapted", [True, False])
def test_sampled_frequencies_are_those_of_the_target(adapted):
    model = tiny_llama(vocab=12, num_hidden_layers=3)
    target, text = lean(model), [3, 1, 4, 1, 5, *plain(model, [3, 1, 4, 1, 5])]
    proposer = EarlyExitProposer(target, 1, (), exit_adapters(model, text, (1,)) if adapted else None)
    check_frequencies(model, target, proposer)


def test_a_run_stopped_between_draft_and_verification_leaves_nothing_behind(deep, truth, adapters):
    target = lean(deep)
    proposer = EarlyExitProposer(target, 2, (), adapters)
    events = generate(target, proposer, PROMPT, SpecConfig(gamma=4), (), Decoder(LetterTokenizer()))
    next(event for event in events if isinstance(event, Proposed))
    events.close()
    assert ids_of(run(target, Proposer(), PROMPT, max_new_tokens=LENGTH)) == truth
    other = EarlyExitProposer(target, 3, (), adapters)
    events = generate(target, proposer, PROMPT, SpecConfig(gamma=4), (), Decoder(LetterTokenizer()))
    next(event for event in events if isinstance(event, Proposed))
    events.close()
    assert ids_of(run(target, other, PROMPT, gamma=4, max_new_tokens=LENGTH)) == truth


def test_a_chain_ends_with_an_end_token_or_where_the_policy_says(deep, adapters):
    target, asked = lean(deep), []
    proposer = EarlyExitProposer(target, 2, (), adapters)
    proposer.stops_after = lambda probability: asked.append(probability) or len(asked) % 2 == 0
    events = run(target, proposer, PROMPT, gamma=4, max_new_tokens=20)
    assert {len(proposed.nodes) for proposed, _ in rounds_of(events)[:-2]} == {2}
    drafted = [node.id for proposed, _ in rounds_of(events) for node in proposed.nodes]
    end = max(set(drafted), key=drafted.count)
    events = run(target, EarlyExitProposer(target, 2, (end,), adapters), PROMPT, gamma=6, max_new_tokens=40)
    assert all(node.id != end for proposed, _ in rounds_of(events) for node in proposed.nodes[:-1])


def test_depths_and_targets_that_cannot_be_are_refused(deep, adapters):
    with pytest.raises(ValueError, match="1 to 3 layers, not 4"):
        EarlyExitProposer(lean(deep), 4, ())
    with pytest.raises(ValueError, match="stop half-way"):
        EarlyExitProposer(generic(deep), 2, ())
    few = exit_adapters(deep, PROMPT, (1, 2))
    with pytest.raises(ValueError, match="only for 1, 2"):
        EarlyExitProposer(lean(deep), 3, (), few)
