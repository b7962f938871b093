"""Suffix decoding against brute force: longest suffix, counts, recency, corpus, constant work per token."""

import random

import pytest

from playground.proposers import SuffixProposer
from playground.proposers.suffix import SuffixTrie


def propose(proposer, context, gamma=4):
    return proposer.propose(context, gamma, None, None).ids


def longest_by_hand(context, max_match):
    """Length of the longest suffix that occurred earlier, and all tokens that followed it, oldest first."""
    for length in range(min(max_match, len(context) - 1), 0, -1):
        suffix = context[-length:]
        places = range(len(context) - length)
        followers = [context[at + length] for at in places if context[at : at + length] == suffix]
        if followers:
            return length, followers
    return 0, []


def most_frequent(followers):
    """The most frequent of a list, among equals the last to reach the count."""
    best = max(followers.count(token) for token in followers)
    last = {token: len(followers) - followers[::-1].index(token) for token in followers}
    return max((token for token in last if followers.count(token) == best), key=last.get)


@pytest.mark.parametrize("max_match", [1, 3, 16])
@pytest.mark.parametrize("vocab", [2, 5, 20])
def test_match_and_first_token_are_those_of_brute_force(max_match, vocab):
    dice = random.Random(vocab)
    context, proposer = [], SuffixProposer(0.0, max_match=max_match)
    for _ in range(300):
        context.append(dice.randrange(vocab))
        length, followers = longest_by_hand(context, max_match)
        drafted = propose(proposer, context, 1)
        assert proposer._own.longest(proposer._own.ends)[0] == length
        assert drafted == ([most_frequent(followers)] if followers else [])
        if followers:
            share = proposer._own.likeliest(proposer._own.ends[length])[1]
            assert share == pytest.approx(followers.count(drafted[0]) / len(followers))


def test_every_drafted_token_continues_the_longest_match_of_what_is_drafted_so_far():
    dice = random.Random(1)
    context = [dice.randrange(3) for _ in range(200)]
    ids = propose(SuffixProposer(0.0), context, 7)
    counted = len(context)
    for index, token in enumerate(ids):
        grown = [*context, *ids[:index]]
        lengths = [n for n in range(1, 17) if any(grown[-n:] == context[a : a + n] for a in range(counted - n))]
        suffix = grown[-max(lengths) :]
        followers = [
            context[at + len(suffix)] for at in range(counted - len(suffix)) if context[at : at + len(suffix)] == suffix
        ]
        assert token == most_frequent(followers)
    assert len(ids) > 1


def test_the_most_frequent_continuation_wins_over_the_most_recent():
    assert propose(SuffixProposer(), [1, 2, 5, 1, 2, 5, 1, 2, 6, 1, 2], 1) == [5]
    assert propose(SuffixProposer(), [1, 2, 5, 1, 2, 6, 1, 2], 1) == [6]


def test_a_draft_is_no_longer_than_its_match_and_ends_where_the_shares_fall():
    copied = [1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2]
    assert propose(SuffixProposer(), copied, 7) == [3, 4]
    torn = [1, 2, 3, 9, 1, 2, 4, 8, 1, 2, 5, 7, 1, 2]
    assert propose(SuffixProposer(0.4), torn) == []
    assert propose(SuffixProposer(0.3), torn, 1) == [5]
    assert propose(SuffixProposer(), [1, 2, 3]) == []


def test_the_corpus_is_looked_up_in_and_prompt_and_output_come_first():
    corpus = [1, 2, 3, 4, 5, 6]
    assert propose(SuffixProposer(corpus=corpus), [9, 1, 2, 3]) == [4, 5, 6]
    assert propose(SuffixProposer(corpus=corpus), [7, 2, 3, 8, 7, 2, 3]) == [8, 7, 2]
    assert propose(SuffixProposer(corpus=corpus), [3, 8, 9, 2, 3], 2) == [4, 5]  # the longer match
    proposer = SuffixProposer(corpus=corpus)
    for _ in range(2):
        assert propose(proposer, [9, 1, 2]) == [3, 4]
        proposer.reset()
    assert propose(proposer, [9, 9]) == [9]


def test_nothing_is_left_of_the_last_run():
    proposer = SuffixProposer()
    assert propose(proposer, [10, 11, 12, 13] * 10)
    proposer.reset()
    assert propose(proposer, [1, 2, 3, 4, 10, 11]) == []


def test_growing_the_context_token_by_token_gives_what_a_fresh_trie_gives():
    context = [(i * i) % 7 for i in range(80)]
    grown = SuffixProposer()
    for end in range(1, len(context)):
        assert propose(grown, context[:end]) == propose(SuffixProposer(), context[:end])


class Counting(dict):
    """A dict that counts how often it is read."""

    reads = 0

    def get(self, key, default=None):
        Counting.reads += 1
        return super().get(key, default)


@pytest.mark.parametrize("context", [[7] * 2000, list(range(2000)), [(i * i) % 11 for i in range(2000)]])
def test_work_per_token_is_bounded_however_long_the_context_is(context):
    proposer = SuffixProposer(0.0)
    proposer._own._children = Counting()
    for end in range(1, len(context) + 1):
        Counting.reads = 0
        proposer._read(context[:end])
        assert Counting.reads <= 18
    Counting.reads = 0
    assert len(propose(proposer, context, 8)) <= 8
    assert Counting.reads <= 8 * 17
    assert len(proposer._own._token) <= 17 * len(context) + 1


def test_a_trie_without_text_has_no_match():
    trie = SuffixTrie(4)
    assert trie.longest(trie.ends) == (0, SuffixTrie.ROOT)
