"""Closed forms against direct sums, known values and the edges alpha 0 and 1."""

import pytest

from playground.theory import best_gamma, break_even_alpha, expected_tokens, predicted_speedup


@pytest.mark.parametrize(("alpha", "expected"), [(0, 1.0), (0.8, 3.3616), (1, 5.0)])
def test_known_values_at_gamma_4(alpha, expected):
    assert expected_tokens(alpha, 4) == pytest.approx(expected)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9, 0.999999])
def test_the_closed_form_is_the_sum_over_accepted_lengths(alpha):
    gamma = 6
    direct = sum((n + 1) * alpha**n * (1 - alpha) for n in range(gamma)) + (gamma + 1) * alpha**gamma
    assert expected_tokens(alpha, gamma) == pytest.approx(direct)


def test_speculation_that_costs_as_much_as_it_saves_breaks_even():
    alpha = break_even_alpha(4, 0.3, 1.2)
    assert predicted_speedup(alpha, 4, 0.3, 1.2) == pytest.approx(1, abs=1e-5)
    assert break_even_alpha(4, 0.0) == pytest.approx(0, abs=1e-6)
    assert break_even_alpha(4, 2.0) is None


def test_not_speculating_wins_when_drafts_are_dear():
    assert best_gamma(0.5, 1.0) == 0
    assert best_gamma(0.9, 0.0) == 16
    assert 1 <= best_gamma(0.8, 0.2) <= 6


@pytest.mark.parametrize(("alpha", "gamma"), [(-0.1, 1), (1.1, 1), (0.5, -1)])
def test_impossible_values_are_refused(alpha, gamma):
    with pytest.raises(ValueError):
        expected_tokens(alpha, gamma)
