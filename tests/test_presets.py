"""The presets: valid settings, honest expectations, enough source text to copy from."""

import re

import pytest

from playground.config import RunSettings
from playground.presets import DEFAULT_PRESET, PRESETS, preset, preset_settings

LONG = ("edit", "summarise", "refactor")


def test_there_are_at_least_eight_presets_with_their_own_ids_and_titles():
    assert len(PRESETS) >= 8
    assert len({item.id for item in PRESETS}) == len({item.title for item in PRESETS}) == len(PRESETS)


def test_the_page_opens_with_editing_a_text_by_ngram_lookup():
    assert DEFAULT_PRESET == "edit"
    assert preset_settings(preset(DEFAULT_PRESET))["proposer"] == "ngram"


@pytest.mark.parametrize("item", PRESETS, ids=lambda item: item.id)
def test_every_preset_makes_valid_settings(item):
    settings = RunSettings(prompt=item.prompt, **preset_settings(item))
    assert settings.prompt == item.prompt


@pytest.mark.parametrize("item", PRESETS, ids=lambda item: item.id)
def test_every_preset_sets_the_same_fields_so_that_none_is_left_over_from_another(item):
    assert set(preset_settings(item)) == set(preset_settings(PRESETS[0]))


@pytest.mark.parametrize("item", PRESETS, ids=lambda item: item.id)
def test_every_preset_says_what_to_expect_without_inventing_a_measurement(item):
    assert len(item.expect) > 80
    assert not re.search(r"\d+(\.\d+)?\s*(×|x\b|%|times)", item.expect)


@pytest.mark.parametrize("name", LONG)
def test_presets_that_copy_have_something_to_copy(name):
    source = preset(name).prompt.split("\n\n", 1)[1]
    assert 75 <= len(source.split()) <= 250
    assert len(source) > 600


def test_one_preset_is_free_writing_at_temperature_one():
    assert any(preset_settings(item)["temperature"] == 1.0 for item in PRESETS)


def test_an_unknown_preset_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="edit"):
        preset("nothing")
