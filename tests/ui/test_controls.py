"""From the values of the page or of a program to checked settings."""

import pytest
from browser.double import Double, Option

from playground.config import DEFAULTS, RANGES
from playground.ui.controls import choices_of, first_available, settings_from


def values(**changes):
    return DEFAULTS | {"prompt": "hello", "stop_strings": ""} | changes


def test_stop_strings_are_lines_and_may_name_a_line_break():
    settings = settings_from(values(stop_strings="END\n\n\\n\\n\n  x "))
    assert settings.stop_strings == ("END", "\n\n", "  x ")


def test_a_value_left_empty_means_its_default():
    settings = settings_from(values(gamma=None, system_prompt=None))
    assert settings.gamma == RANGES["gamma"].default
    assert settings.system_prompt == ""


@pytest.mark.parametrize("prompt", ["", "   ", "\n", None])
def test_an_empty_prompt_is_refused_in_a_sentence(prompt):
    with pytest.raises(ValueError, match="prompt is empty"):
        settings_from(values(prompt=prompt))


@pytest.mark.parametrize("gamma", [-1, 1.5, 1000, "many", True])
def test_a_gamma_out_of_range_is_refused_by_name_and_range(gamma):
    with pytest.raises(ValueError, match="gamma must be a whole number from 0 to 16"):
        settings_from(values(gamma=gamma))


def test_gamma_zero_is_allowed_for_programs():
    assert settings_from(values(gamma=0)).gamma == 0


def test_what_cannot_be_chosen_here_is_listed_and_marked():
    labels = {value: label for label, value in choices_of(Double().options().targets)}
    assert labels["qwen2.5-1.5b"].endswith("(not available here)")


def test_the_first_draft_offered_is_one_that_can_run():
    assert first_available([Option("a", "A", False, "no"), Option("b", "B")]) == "b"
    assert first_available([]) == ""
