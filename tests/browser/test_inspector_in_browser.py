"""From a token of the strip to its round, through the run, and from the speedup to its explanation."""

from browser.conftest import run

from playground.ui.inspector_tab import NAME
from playground.ui.text_why import WHY_NAME


def selected(page, name):
    return page.get_attribute(f"[role=tab]:has-text('{name}')", "aria-selected") == "true"


def test_a_token_leads_to_its_round_and_the_buttons_lead_on(visit):
    page = visit()
    run(page, "some words to go through")
    page.locator(".strip .tok.rejected").first.click()
    number = int(page.inner_text(".pinned .place").split("round ")[1].split(" ")[0])
    page.click(".pinned .inspect")
    page.wait_for_selector(f"#inspector-view h3:has-text('Round {number} of')")
    assert selected(page, NAME)
    page.click("#inspector-next")
    page.wait_for_selector(f"#inspector-view h3:has-text('Round {number + 1} of')")
    page.click("#inspector-previous")
    page.wait_for_selector(f"#inspector-view h3:has-text('Round {number} of')")


def test_the_speedup_leads_to_its_explanation(visit):
    page = visit()
    run(page, "some words to go through")
    page.click(".figure.speedup .why-link")
    page.wait_for_selector("#why-view .why .verdict")
    assert selected(page, WHY_NAME)
