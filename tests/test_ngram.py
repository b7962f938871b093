"""Prompt lookup: longest match, most recent, nothing left over from the last run, constant work."""

import pytest

from playground.proposers import NgramProposer


def propose(proposer, context, gamma=4):
    return proposer.propose(context, gamma, None, None).ids


def test_the_longest_match_wins_over_a_more_recent_shorter_one():
    #          1 2 3 → 7 …          3 → 9
    assert propose(NgramProposer(1, 3), [1, 2, 3, 7, 5, 3, 9, 4, 1, 2, 3], 1) == [7]
    assert propose(NgramProposer(1, 1), [1, 2, 3, 7, 5, 3, 9, 4, 1, 2, 3], 1) == [9]


def test_among_equal_matches_the_most_recent_wins():
    assert propose(NgramProposer(2, 2), [1, 2, 5, 1, 2, 6, 1, 2], 1) == [6]


def test_sizes_below_the_minimum_are_not_tried():
    assert propose(NgramProposer(2, 3), [3, 7, 4, 3]) == []


def test_a_copy_that_reaches_the_end_goes_on_with_itself():
    assert propose(NgramProposer(2, 2), [1, 2, 1, 2], 5) == [1, 2, 1, 2, 1]


def test_the_index_is_empty_at_the_start_of_a_run():
    proposer = NgramProposer(1, 3)
    assert propose(proposer, [10, 11, 12, 13] * 10)
    proposer.reset()
    assert propose(proposer, [1, 2, 3, 4, 10, 11]) == []


def test_growing_the_context_token_by_token_gives_what_a_fresh_index_gives():
    context = [(i * i) % 7 for i in range(80)]
    grown = NgramProposer(1, 3)
    for end in range(1, len(context)):
        assert propose(grown, context[:end]) == propose(NgramProposer(1, 3), context[:end])


def test_each_token_is_indexed_once():
    proposer = NgramProposer(1, 3)
    context = list(range(1000))
    propose(proposer, context)
    assert proposer._indexed == 999
    assert len(proposer._index) == 999 + 998 + 997


@pytest.mark.parametrize("sizes", [(0, 2), (3, 2)])
def test_impossible_sizes_are_refused(sizes):
    with pytest.raises(ValueError):
        NgramProposer(*sizes)


def test_a_corpus_is_looked_up_in_behind_prompt_and_output():
    corpus = [1, 2, 3, 4, 5]
    assert propose(NgramProposer(1, 2, corpus), [9, 1, 2]) == [3, 4, 5]
    assert propose(NgramProposer(2, 2, corpus), [1, 2, 8, 1, 2], 1) == [8]
    assert propose(NgramProposer(1, 2, corpus), [2, 8, 1, 2], 1) == [3]  # two tokens of the corpus before one
    assert propose(NgramProposer(1, 2, corpus), [1, 2]) == [3, 4, 5]  # the whole context may match


def test_the_corpus_stays_over_runs_and_nothing_else_does():
    proposer = NgramProposer(1, 2, [1, 2, 3])
    assert propose(proposer, [7, 8, 7], 1) == [8]
    proposer.reset()
    assert propose(proposer, [8, 7]) == []
    assert propose(proposer, [8, 7, 2]) == [3]
