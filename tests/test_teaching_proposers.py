"""Oracle, noisy oracle, random floor, the target as its own draft: their alphas, and exactness all the same."""

import random
from itertools import pairwise

import pytest
import torch
from fakes import TINY_VOCAB, LetterTokenizer, TableLM, generic, ids_of, lean, rounds_of, run, static

from playground.lm import another_cache
from playground.metrics import RunMetrics
from playground.proposers import (
    PROPOSERS,
    DraftModelProposer,
    NgramProposer,
    NoisyOracleProposer,
    OracleProposer,
    Proposer,
    RandomProposer,
    SuffixProposer,
)

PROMPT = [5, 17, 42, 5, 17, 42, 5, 17]
GAMMAS = (1, 2, 4, 7)
LENGTH = 60


def plain(model, prompt=PROMPT, length=LENGTH):
    return ids_of(run(lean(model), Proposer(), prompt, max_new_tokens=length))


def alpha_of(events):
    metrics = RunMetrics()
    for event in events:
        metrics.update(event)
    return metrics.alpha


def new_proposers(model):
    answer = plain(model)
    astray = [(token + 1) % TINY_VOCAB if index % 5 == 3 else token for index, token in enumerate(answer)]
    return {
        "suffix": SuffixProposer(0.0),
        "suffix with a corpus": SuffixProposer(corpus=[*PROMPT, *answer]),
        "ngram with a corpus": NgramProposer(1, 3, [*PROMPT, *answer]),
        "oracle": OracleProposer(answer),
        "oracle that asks": OracleProposer(lambda prompt: plain(model, prompt)),
        "oracle led astray": OracleProposer(astray),
        "oracle with another answer": OracleProposer(list(range(LENGTH))),
        "noisy oracle": NoisyOracleProposer(answer, 0.6, TINY_VOCAB),
        "noise alone": NoisyOracleProposer(answer, 0.0, TINY_VOCAB),
        "random": RandomProposer(TINY_VOCAB),
    }


NAMES = ["suffix", "suffix with a corpus", "ngram with a corpus", "oracle", "oracle that asks", "oracle led astray"]
NAMES += ["oracle with another answer", "noisy oracle", "noise alone", "random"]


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("name", NAMES)
def test_greedy_output_equals_plain_decoding(model, name, gamma):
    proposer = new_proposers(model)[name]
    for _ in range(2):
        events = run(lean(model), proposer, PROMPT, gamma=gamma, max_new_tokens=LENGTH)
        assert ids_of(events) == plain(model)
        assert any(proposed.nodes for proposed, _ in rounds_of(events))


@pytest.mark.parametrize("name", ["oracle", "oracle that asks", "suffix with a corpus", "ngram with a corpus"])
def test_who_knows_the_answer_has_every_token_accepted(model, name):
    events = run(lean(model), new_proposers(model)[name], PROMPT, gamma=4, max_new_tokens=LENGTH)
    if "oracle" in name:
        assert alpha_of(events) == 1.0
        assert len(rounds_of(events)) == LENGTH // 5
    else:
        assert alpha_of(events) > 0.8


def test_an_oracle_led_astray_speaks_again_once_the_output_is_where_its_answer_is(model):
    events = run(lean(model), new_proposers(model)["oracle led astray"], PROMPT, gamma=4, max_new_tokens=LENGTH)
    drafted = [len(proposed.nodes) for proposed, _ in rounds_of(events)]
    assert 0 in drafted  # right behind a token it does not have
    assert sum(length > 0 for length in drafted) > 8
    assert 0.6 < alpha_of(events) < 0.9


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.8, 1.0])
def test_the_noisy_oracle_has_the_alpha_asked_for(alpha):
    """Greedy and long: every tested token is the answer's with chance alpha."""
    cycle = [[float(column == (row + 1) % 7) for column in range(7)] for row in range(7)]
    answer = [(1 + index) % 7 for index in range(2048)]
    proposer = NoisyOracleProposer(answer, alpha, 7)
    events = run(TableLM(cycle, 10_000), proposer, [0], (), LetterTokenizer("abcdefg"), gamma=4, max_new_tokens=2048)
    assert ids_of(events) == answer
    assert alpha_of(events) == pytest.approx(alpha, abs=0.04)
    if alpha == 0:
        wrong = [node.id for proposed, _ in rounds_of(events) for node in proposed.nodes[:1]]
        assert set(wrong) == set(range(7))


def test_noise_is_fixed_by_the_seed_and_differs_between_seeds(model):
    def drafted(seed):
        proposer = new_proposers(model)["noisy oracle"]
        events = run(lean(model), proposer, PROMPT, gamma=4, max_new_tokens=30, seed=seed)
        return [[node.id for node in proposed.nodes] for proposed, _ in rounds_of(events)]

    assert drafted(1) == drafted(1)
    assert drafted(1) != drafted(2)


def test_noise_takes_nothing_from_the_numbers_that_decide_acceptance(model):
    """The run's generator is left alone, so noise and acceptance are independent."""
    rng = torch.Generator().manual_seed(3)
    before = rng.get_state()
    proposer = NoisyOracleProposer([1, 2, 3], 0.5, 9)
    list(proposer.prefill([0]))
    proposer.propose([0], 3, type("Sampling", (), {"seed": 3}), rng)
    assert torch.equal(rng.get_state(), before)


def test_random_guesses_are_uniform_and_accepted_about_once_in_a_vocabulary(model):
    proposer, rng = RandomProposer(10), torch.Generator().manual_seed(0)
    proposal = proposer.propose([1], 5000, None, rng)
    counts = torch.bincount(torch.tensor(proposal.ids), minlength=10)
    assert counts.min() > 400
    assert torch.allclose(proposal.probs, torch.full((5000, 10), 0.1))
    events = run(lean(model), RandomProposer(TINY_VOCAB), PROMPT, gamma=4, max_new_tokens=400)
    assert alpha_of(events) < 0.03


@pytest.mark.parametrize("backend", [lean, generic, static])
@pytest.mark.parametrize("gamma", GAMMAS)
def test_the_target_drafts_for_itself_over_a_second_cache(model, backend, gamma):
    target = backend(model)
    proposer = DraftModelProposer(another_cache(target), (), TINY_VOCAB)
    events = run(target, proposer, PROMPT, gamma=gamma, max_new_tokens=LENGTH)
    assert ids_of(events) == plain(model)
    assert alpha_of(events) == 1.0


@pytest.mark.parametrize("backend", [lean, generic])
def test_a_second_cache_has_the_same_weights_and_nothing_else_in_common(model, backend):
    first = backend(model)
    first.extend([1, 2, 3])
    second = another_cache(first)
    assert second.length == 0
    assert torch.equal(second.extend([1, 2, 3, 4]), backend(model).extend([1, 2, 3, 4]))
    assert first.length == 3
    assert (second.vocab_size, second.context_limit) == (first.vocab_size, first.context_limit)
    if backend is lean:
        assert second.weights is first.weights
    else:
        assert second._model is first._model


def test_a_second_cache_is_not_known_for_other_backends():
    with pytest.raises(TypeError, match="TableLM"):
        another_cache(TableLM([[1.0]]))


TABLE = [[0.05, 0.45, 0.2, 0.2, 0.1], [0.3, 0.05, 0.4, 0.15, 0.1], [0.1, 0.2, 0.1, 0.5, 0.1]]
TABLE += [[0.25, 0.25, 0.2, 0.1, 0.2], [0.4, 0.1, 0.1, 0.3, 0.1]]


@pytest.mark.parametrize("name", ["suffix", "corpus", "oracle", "noisy", "random"])
@pytest.mark.parametrize("filters", [{}, {"top_k": 3}, {"temperature": 0.7, "top_p": 0.9}])
def test_sampled_frequencies_are_those_of_the_target(name, filters):
    """Every pair of successive tokens within 4.5 standard deviations of the exact chain."""
    from playground.config import SamplingConfig
    from playground.sampling import to_probs

    settings = {"temperature": 1.0} | filters
    dice = random.Random(5)
    answer = [dice.randrange(5) for _ in range(1500)]
    proposer = {
        "suffix": SuffixProposer(0.0),
        "corpus": NgramProposer(1, 2, answer),
        "oracle": OracleProposer(answer),
        "noisy": NoisyOracleProposer(answer, 0.5, 5),
        "random": RandomProposer(5),
    }[name]
    target, counts = TableLM(TABLE, context_limit=100_000), torch.zeros(5, 5)
    for seed in range(8):
        tokenizer = LetterTokenizer("abcde")
        events = run(target, proposer, [0], (), tokenizer, gamma=3, max_new_tokens=1500, seed=seed, **settings)
        for before, after in pairwise(ids_of(events)):
            counts[before, after] += 1
    probs = to_probs(target.logits, SamplingConfig(**settings))
    for row, expected in zip(counts, probs, strict=True):
        deviation = (expected * (1 - expected) / row.sum()).sqrt()
        assert ((row / row.sum() - expected).abs() <= 4.5 * deviation).all()


def test_every_proposer_that_can_be_chosen_has_a_class_and_known_options():
    from playground import config

    assert tuple(PROPOSERS) == config.PROPOSERS == tuple(config.PROPOSER_OPTIONS)
    for options in config.PROPOSER_OPTIONS.values():
        assert set(options) <= set(config.DEFAULTS)


def test_the_oracle_finds_its_place_again_after_a_token_its_answer_does_not_have():
    oracle = OracleProposer([1, 2, 3, 4, 5, 6, 7, 8])
    oracle.prefill([0])
    assert oracle.propose([0, 1, 2], 2, None, None).ids == [3, 4]
    assert oracle.propose([0, 1, 2, 9], 2, None, None).ids == []  # an extra token
    assert oracle.propose([0, 1, 2, 9, 3, 4], 2, None, None).ids == [5, 6]
    assert oracle.propose([0, 1, 2, 9, 3, 4, 5], 2, None, None).ids == [6, 7]
    assert oracle.propose([0, 1, 2, 9, 3, 4, 5, 7, 8], 2, None, None).ids == []  # the answer ends there
