"""Choosing a proposer and a policy for gamma in a real browser."""

import pytest
from browser.conftest import PHONE, run

from playground.config import GAMMA_POLICIES, PROPOSER_OPTIONS, PROPOSERS
from playground.ui.text_proposers import POLICY_HINTS, POLICY_LABELS, PROPOSER_HINTS, TEACHING

OPTIONS = sorted({option for options in PROPOSER_OPTIONS.values() for option in options})


def choose(page, proposer):
    page.locator(f"#set-proposer label:has([value='{proposer}'])").click()
    page.wait_for_selector(f'#proposer-hint:has-text("{PROPOSER_HINTS[proposer][:40]}")')


def choose_policy(page, policy):
    page.click("#set-gamma_policy input")
    page.get_by_role("option", name=POLICY_LABELS[policy]).click()
    page.wait_for_selector(f"#set-gamma_policy:has-text('{POLICY_HINTS[policy]}')")


def top(page, proposer):
    return page.locator(f"#set-proposer label:has([value='{proposer}'])").bounding_box()["y"]


@pytest.mark.parametrize("viewport", [None, PHONE])
def test_only_the_options_of_the_chosen_proposer_are_shown(visit, viewport):
    page = visit(viewport=viewport) if viewport else visit()
    if viewport:
        page.click("#settings-toggle button")
    for proposer in PROPOSERS:
        choose(page, proposer)
        for option in OPTIONS:
            shown = option in PROPOSER_OPTIONS[proposer]
            page.wait_for_selector(f"#set-{option}", state="visible" if shown else "hidden")
        assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0


def test_teaching_proposers_stand_apart_below_the_others(visit):
    page = visit()
    lowest = max(top(page, name) for name in PROPOSERS if name not in TEACHING)
    assert all(top(page, name) > lowest + 40 for name in TEACHING)
    title = "getComputedStyle(document.querySelector('#set-proposer .wrap'), '::after').content"
    assert "learn" in page.evaluate(title)


def test_a_policy_explains_itself_and_only_confidence_has_a_threshold(visit):
    page = visit()
    for policy in reversed(GAMMA_POLICIES):
        choose_policy(page, policy)
        page.wait_for_selector("#set-confidence_threshold", state="visible" if policy == "confidence" else "hidden")


def test_a_run_gets_the_proposer_its_options_and_the_policy(visit, double):
    page = visit()
    choose(page, "noisy-oracle")
    choose_policy(page, "cost-model")
    run(page, "#markup x", noise_alpha=0.6, gamma=7)
    sent = double.settings[-1]
    assert (sent.proposer, sent.noise_alpha, sent.gamma_policy, sent.gamma) == ("noisy-oracle", 0.6, "cost-model", 7)
    choose(page, "suffix")
    page.fill("#set-corpus textarea", "words to look up")
    run(page, "#markup x", min_share=0.35)
    sent = double.settings[-1]
    assert (sent.proposer, sent.min_share, sent.corpus) == ("suffix", 0.35, "words to look up")


def test_a_preset_brings_its_proposer_and_a_constant_gamma_back(visit):
    page = visit()
    choose(page, "random")
    choose_policy(page, "confidence")
    page.locator("#presets label", has_text="Counting list").click()
    page.wait_for_selector("#set-ngram_min", state="visible")
    page.wait_for_selector("#set-confidence_threshold", state="hidden")
    page.wait_for_selector(f"#set-gamma_policy:has-text('{POLICY_HINTS['constant']}')")
