"""The exactness lab: the right rule passes, every wrong rule is caught, and chance levels are chance levels."""

import pytest
import torch
from fakes import LetterTokenizer, TableLM

from playground.config import SamplingConfig, SpecConfig
from playground.lab.exactness import Exactness, Sampled, Subject, try_exactness
from playground.lab.statistics import against_exact, against_sample
from playground.lab.wrong_rules import RIGHT, RULES
from playground.proposers import DraftModelProposer, NgramProposer
from playground.text import Decoder

TABLE = [[0.5, 0.3, 0.1, 0.1], [0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25], [0.7, 0.1, 0.1, 0.1]]
DRAFT = [[0.7, 0.1, 0.1, 0.1], [0.4, 0.3, 0.2, 0.1], [0.1, 0.6, 0.2, 0.1], [0.25, 0.25, 0.25, 0.25]]
SAMPLING = SamplingConfig(temperature=1.0)


DECODER = Decoder(LetterTokenizer())


def verdict(rule, proposer=None, num_samples=1200, gamma=3):
    subject = Subject(TableLM(TABLE), [0, 1, 0], (), DECODER)
    proposer = proposer or DraftModelProposer(TableLM(DRAFT), (), 4)
    news = list(try_exactness(subject, proposer, SpecConfig(gamma, 3, (), SAMPLING), num_samples, rule))
    assert news[-2] == Sampled(2 * num_samples, 2 * num_samples)
    assert isinstance(news[-1], Exactness)
    return news[-1]


def test_the_right_rule_gives_the_targets_distribution():
    result = verdict(RIGHT)
    assert result.passed and 0.3 < result.alpha < 0.95
    assert [(item.position, item.exact) for item in result.positions] == [(1, True), (2, False), (3, False)]
    assert all(item.comparison.variation < 2 * item.comparison.chance_high for item in result.positions)
    first = result.positions[0]
    assert [row.id for row in first.rows[:2]] == [0, 1]
    assert first.rows[0].wanted == pytest.approx(0.5)
    assert first.rows[0].share == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize("rule", [name for name in RULES if name != RIGHT])
def test_every_wrong_rule_is_caught(rule):
    result = verdict(rule)
    assert not result.passed
    worst = max(result.positions, key=lambda item: item.comparison.variation)
    assert worst.comparison.variation > worst.comparison.chance_high
    assert worst.comparison.p_value < 1e-3


def test_a_certain_draft_is_exact_too():
    assert verdict(RIGHT, NgramProposer(1, 2)).passed


def test_temperature_0_and_too_few_samples_are_refused():
    subject = Subject(TableLM(TABLE), [0, 1, 0], (), DECODER)
    with pytest.raises(ValueError, match="temperature"):
        next(try_exactness(subject, NgramProposer(1, 2), SpecConfig(2, 3), 100))
    with pytest.raises(ValueError, match="at least 2 tokens"):
        next(try_exactness(subject, NgramProposer(1, 2), SpecConfig(2, 1, (), SAMPLING), 100))


def test_chance_is_judged_as_chance():
    probs = torch.tensor([0.6, 0.3, 0.05, 0.03, 0.02])
    rng = torch.Generator().manual_seed(1)
    values = []
    for _ in range(200):
        counts = torch.bincount(torch.multinomial(probs, 300, replacement=True, generator=rng), minlength=5)
        values.append(against_exact(counts, probs).p_value)
    assert 0.4 < sum(values) / len(values) < 0.6  # p-values of what is right are even
    assert sum(value < 0.05 for value in values) < 22


def test_two_samples_of_one_distribution_agree_and_of_two_do_not():
    rng = torch.Generator().manual_seed(2)
    first, second = (
        torch.bincount(torch.multinomial(torch.tensor(row), 2000, replacement=True, generator=rng), minlength=3)
        for row in ([0.5, 0.3, 0.2], [0.4, 0.4, 0.2])
    )
    again = torch.bincount(
        torch.multinomial(torch.tensor([0.5, 0.3, 0.2]), 2000, replacement=True, generator=rng), minlength=3
    )
    assert against_sample(first, again).passed
    wrong = against_sample(first, second)
    assert not wrong.passed and wrong.variation > wrong.chance_high
    assert wrong.variation == pytest.approx(0.1, abs=0.04)
