"""Recordings and links in a real browser: what a first visitor sees, saving, opening, an address with settings."""

import pytest
from browser.conftest import run, serve, wait_end
from browser.double import Double

from playground.ui.recordings import first_recording

SETTINGS = "?gamma=3&temperature=0.5&proposer=suffix&foo=1"


@pytest.fixture(scope="module")
def recorded(browser):
    """A page that shows the shipped recording until the first run."""
    page, url = serve(Double(round_s=0.02), first_recording()[0])
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    context.set_default_timeout(20_000)
    yield context, url
    context.close()
    page.close()


def status(page):
    return page.inner_text(".spec .status")


def test_a_first_visitor_sees_a_recording_that_says_so_and_a_run_replaces_it(recorded):
    context, url = recorded
    page = context.new_page()
    page.goto(url)
    page.wait_for_function("document.querySelector('.spec .status')?.dataset.state === 'recording'")
    assert status(page).startswith("Recording: ")
    assert page.locator(".strip .tok.accepted").count() > 20
    run(page, "a story", max_new_tokens=20)
    assert not status(page).startswith("Recording")
    page.close()


def test_a_saved_run_can_be_opened_again(recorded, tmp_path):
    context, url = recorded
    page = context.new_page()
    page.goto(url)
    run(page, "a story about saving", max_new_tokens=20)
    text = page.inner_text(".strip")
    page.locator("#share button").first.click()
    with page.expect_download() as caught:
        page.click("#share-save")
    caught.value.save_as(tmp_path / "run.jsonl")
    run(page, "another story", max_new_tokens=20)
    assert page.inner_text(".strip") != text
    with page.expect_file_chooser() as chooser:
        page.click("#share-open")
    chooser.value.set_files(tmp_path / "run.jsonl")
    page.wait_for_function("document.querySelector('.spec .status').dataset.state === 'recording'")
    assert page.inner_text(".strip") == text
    page.close()


def test_an_address_sets_the_controls_and_says_what_it_names_in_vain(recorded):
    context, url = recorded
    page = context.new_page()
    page.goto(url + "/" + SETTINGS)
    page.wait_for_function("document.querySelector('#set-gamma input[type=number]')?.value === '3'")
    assert page.input_value("#set-temperature input[type=number]") == "0.5"
    page.locator("#share button").first.click()
    assert "foo" in page.inner_text("#share-said")
    page.close()


def test_labs_open_and_answer_without_a_model(recorded):
    context, url = recorded
    page = context.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(url)
    run(page, "a story to explain", max_new_tokens=40)
    wait_end(page)
    page.get_by_role("tab", name="Why this speed?").click()
    page.wait_for_selector("#why-view .verdict")
    page.get_by_role("tab", name="Theory").click()
    page.wait_for_selector(".lab-chart .js-plotly-plot")
    page.wait_for_selector("#theory-table table")
    page.get_by_role("tab", name="Lessons").click()
    page.click("#lesson-reveal")
    page.wait_for_selector("#lesson-answer .answer")
    assert not errors
    page.close()
