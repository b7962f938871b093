"""Lookahead: the window's shape and bookkeeping, the pool, and the target's text whatever it guesses."""

import pytest
import torch
from fakes import TableLM, generic, ids_of, lean, rounds_of, run, static, tiny_llama
from head_fakes import (
    GAMMAS,
    LENGTH,
    PROMPT,
    branches,
    check_budget_and_end,
    check_cache,
    check_frequencies,
    metrics_of,
    plain,
    spy,
)

from playground.proposers.lookahead import LookaheadProposer, NgramPool, prefix_tree

CYCLE = [[float(column == (row + 1) % 7) for column in range(7)] for row in range(7)]


@pytest.fixture(scope="module")
def truth(model):
    return plain(model, length=120)


@pytest.mark.parametrize("backend", [lean, generic, static])
@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("tree", [False, True])
@pytest.mark.parametrize("shape", [(1, 3, 1), (5, 4, 4), (8, 3, 6), (3, 6, 2)])
def test_greedy_output_equals_plain_decoding(model, truth, backend, gamma, tree, shape):
    proposer = LookaheadProposer(*shape, tree)
    for _ in range(2):
        events = run(backend(model), proposer, PROMPT, gamma=gamma, max_new_tokens=LENGTH)
        assert ids_of(events) == truth[:LENGTH]


def test_guesses_of_the_pool_are_accepted_and_refused_as_chain_and_tree(model, truth):
    for tree in (False, True):
        events = run(lean(model), LookaheadProposer(6, 4, 4, tree), PROMPT, gamma=4, max_new_tokens=120)
        assert ids_of(events) == truth
        metrics = metrics_of(events)
        assert metrics.num_accepted > 0
        assert metrics.num_tested - metrics.num_accepted > 0
        assert branches(events) == tree


def test_where_the_next_token_depends_on_the_last_alone_every_guess_is_right():
    """Each column is then right whatever stood in it at first, and within a cycle has met every token."""
    proposer = LookaheadProposer(4, 4)
    events = run(TableLM(CYCLE), proposer, [0, 1, 2, 3, 4, 5, 6, 0], gamma=3, max_new_tokens=81)
    assert ids_of(events) == [(1 + index) % 7 for index in range(81)]
    assert all(test.accepted for _, verified in rounds_of(events) for test in verified.tested)
    committed = [len(verified.committed) for _, verified in rounds_of(events)]
    assert committed[:3] == [1, 1, 1]  # two passes build the rows, the third completes the first n-grams
    assert set(committed[10:-1]) == {4}
    for first in range(7):
        assert proposer._pool.after(first) == [tuple((first + step) % 7 for step in (1, 2, 3))]


@pytest.mark.parametrize("shape", [(1, 3), (5, 4), (4, 6)])
def test_the_window_grows_to_its_shape_and_every_row_stands_where_it_should(model, shape):
    """Each scratch token sees row 0 up to its column and its own column; the last row's answers make n-grams."""
    window, size = shape
    proposer, seen = LookaheadProposer(window, size), []

    def check(context, sampling, state, proposal):
        if not proposal.scratch.ids:
            return
        rows, drafted = [list(row) for row in proposer._rows], len(proposal.ids)
        ids, parents = proposal.scratch.ids, proposal.scratch.parents
        assert ids == [token for row in rows for token in row]
        seen.append([len(row) for row in rows])
        place = {}
        for r, row in enumerate(rows):
            for c in range(len(row)):
                place[r, c + (r == 0)] = len(place)
        for (r, c), j in place.items():
            expected = [place[0, k] for k in range(1, c + 1)] + [place[k, c] for k in range(1, r + 1)]
            path, node = [], j
            while node >= 0:
                path, node = [node, *path], parents[node] - drafted if parents[node] >= 0 else -1
            assert path == expected
            assert len(path) == r + c

    run(lean(model), spy(proposer, after=check), PROMPT, gamma=5, max_new_tokens=30)
    for step in range(size - 2):
        columns = window + size - 2 - step
        assert seen[step] == [columns - 1, *[columns] * step]
    assert all(row == [window - 1, *[window] * (size - 2)] for row in seen[size - 2 :])


@pytest.mark.parametrize("tree", [False, True])
def test_budget_end_token_and_context_limit_are_those_of_plain_decoding(model, tree):
    for gamma in (2, 5):
        check_budget_and_end(model, lean, lambda _: LookaheadProposer(tree=tree), gamma)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("backend", [lean, generic])
def test_the_target_s_cache_equals_a_fresh_pass_before_every_draft(model, backend, temperature):
    check_cache(model, backend(model), LookaheadProposer(6, 4), gamma=4, temperature=temperature)


@pytest.mark.parametrize("tree", [False, True])
def test_sampled_frequencies_are_those_of_the_target(tree):
    """The pool is filled beforehand, so that the first rounds have guesses to test."""
    model = tiny_llama(vocab=12)
    target, proposer = lean(model), LookaheadProposer(3, 3, 3, tree)
    reset = proposer.reset

    def filled():
        reset()
        for first in range(12):
            for step in (2, 3, 5):
                proposer._pool.add(first, ((first + step) % 12, (first * step) % 12))

    proposer.reset = filled
    check_frequencies(model, target, proposer)


def test_window_and_pool_are_empty_at_the_start_of_each_run(model):
    proposer, target = LookaheadProposer(), lean(model)

    def drafts():
        events = run(target, proposer, PROMPT, gamma=4, max_new_tokens=40)
        return [[node.id for node in proposed.nodes] for proposed, _ in rounds_of(events)]

    first = drafts()
    assert drafts() == first
    assert first[0] == []


def test_a_pass_without_room_for_the_window_leaves_it_as_it_is(model):
    prompt = (PROMPT * 8)[:58]
    expected = plain(model, prompt, 20, limit=64)
    assert ids_of(run(lean(model, limit=64), LookaheadProposer(9, 5), prompt, gamma=4, max_new_tokens=20)) == expected


def test_the_pool_keeps_the_latest_n_grams_of_each_first_token():
    pool = NgramPool(2)
    for rest in ((1, 2), (3, 4), (1, 2), (5, 6)):
        pool.add(9, rest)
    assert pool.after(9) == [(5, 6), (1, 2)]
    assert pool.after(8) == []


def test_guesses_share_their_beginnings_and_equal_ones_are_one():
    assert prefix_tree([(1, 2), (1, 2), (1, 3)]) == ([1, 2, 3], [-1, 0, 0])
    assert prefix_tree([]) == ([], [])


def test_shapes_that_cannot_be_are_refused():
    for shape in ((0, 3, 1), (1, 2, 1), (1, 3, 0)):
        with pytest.raises(ValueError, match="at least"):
            LookaheadProposer(*shape)


def test_the_target_s_own_opinion_fills_the_window(model):
    """The new row is what plain decoding would say after each column, the columns passed by at its end."""
    proposer, checked = LookaheadProposer(4, 3), []

    def check(context, sampling, state, proposal):
        if len(proposer._rows) == 2:
            top, last = proposer._rows
            for column, token in enumerate(last):
                with torch.inference_mode():
                    logits = model(torch.tensor([[*context, *top[:column], token]])).logits[0, -1]
                checked.append((column, int(logits.argmax())))
            checked.append(proposer)

    observe = proposer.observe

    def compare(verdict, hidden, scratch_logits=None):
        observe(verdict, hidden, scratch_logits)
        if checked and checked[-1] is proposer:
            checked.pop()
            expected = [checked.pop()[1] for _ in range(4)][::-1]
            passed = len(verdict.path)
            assert proposer._rows[-1] == expected[passed:] + expected[:passed]

    proposer.observe = compare
    run(lean(model), spy(proposer, after=check), PROMPT, gamma=3, max_new_tokens=20)
