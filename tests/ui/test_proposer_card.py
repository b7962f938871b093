"""The card of proposers: all of them, in a calm order, each with its own options and a word on how it works."""

import gradio as gr
import pytest

from playground.config import DEFAULTS, GAMMA_POLICIES, PROPOSER_OPTIONS, PROPOSERS
from playground.ui.notes import proposer_note
from playground.ui.proposer_card import ProposerCard
from playground.ui.text_proposers import (
    POLICY_HINTS,
    POLICY_LABELS,
    PROPOSER_HINTS,
    PROPOSER_LABELS,
    PROPOSER_SOURCES,
    TEACHING,
)
from playground.ui.theme import page_css


@pytest.fixture(scope="module")
def card():
    with gr.Blocks():
        return ProposerCard(DEFAULTS)


def updates_of(card, proposer, policy="constant"):
    """What the card shows, by the name of the setting."""
    names = {component: name for name, component in card.inputs.items()}
    updates = zip(card.shown, card.show(proposer, policy), strict=True)
    return {names.get(component, "note"): update for component, update in updates}


def test_every_proposer_and_policy_has_words():
    assert set(PROPOSER_LABELS) == set(PROPOSER_HINTS) == set(PROPOSERS)
    assert set(PROPOSER_SOURCES) <= set(PROPOSERS)
    assert tuple(POLICY_LABELS) == tuple(POLICY_HINTS) == GAMMA_POLICIES
    assert all(address.startswith("https://") for _, address in PROPOSER_SOURCES.values())


def test_practical_proposers_come_first_and_teaching_ones_last():
    assert list(PROPOSER_LABELS)[:4] == ["ngram", "suffix", "draft", "quantized"]
    assert tuple(PROPOSER_LABELS)[-len(TEACHING) :] == TEACHING
    assert all(f'[value="{name}"]' in page_css() for name in TEACHING)


@pytest.mark.parametrize("proposer", PROPOSERS)
def test_the_chosen_proposer_shows_its_own_options_only(card, proposer):
    shown = updates_of(card, proposer)
    assert {name for name in card.options if shown[name]["visible"]} == set(PROPOSER_OPTIONS[proposer])
    assert shown["note"] == proposer_note(proposer)
    assert shown["gamma"]["interactive"] == shown["gamma_policy"]["visible"] == (proposer != "none")


@pytest.mark.parametrize("policy", GAMMA_POLICIES)
def test_a_policy_explains_itself_and_only_confidence_has_a_threshold(card, policy):
    shown = updates_of(card, "draft", policy)
    assert shown["gamma_policy"]["info"] == POLICY_HINTS[policy]
    assert shown["confidence_threshold"]["visible"] == (policy == "confidence")
    assert not updates_of(card, "none", policy)["confidence_threshold"]["visible"]


def test_an_unknown_name_shows_nothing_of_its_own(card):
    assert not any(updates_of(card, "magic", "magic")[name]["visible"] for name in card.options)


def test_a_note_links_to_the_paper_and_has_none_where_there_is_none():
    assert 'href="https://arxiv.org/abs/2411.04975"' in proposer_note("suffix")
    assert "<a " not in proposer_note("oracle")
