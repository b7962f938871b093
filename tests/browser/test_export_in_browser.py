"""The Export tab in a real browser: snippets, metrics to take away, a server watched with text, charts and counters."""

import json
from pathlib import Path

from browser.conftest import PHONE, run
from fake_server import serving


def open_export(page):
    page.get_by_role("tab", name="Export").click()
    page.wait_for_selector("#export-notes .note")


def snippet(page):
    return page.inner_text("#export-snippet .cm-content")


def test_the_snippet_follows_the_settings_and_the_engine(visit):
    page = visit()
    open_export(page)
    page.wait_for_function("document.querySelector('#export-snippet .cm-content')?.textContent.includes('vllm serve')")
    before = snippet(page)
    page.get_by_role("tab", name="Generate").click()
    field = page.locator("#set-gamma input[type=number]")
    field.fill("3")
    field.blur()
    open_export(page)
    page.wait_for_function("document.querySelector('#export-line').textContent.includes('γ 3')")
    assert '"num_speculative_tokens": 3' in snippet(page) and snippet(page) != before
    page.get_by_text("transformers", exact=True).click()
    page.wait_for_function("document.querySelector('#export-snippet .cm-content').textContent.includes('generate(')")
    assert "prompt_lookup_num_tokens=3" in snippet(page)


def test_a_method_the_engine_lacks_has_a_reason_in_place_of_a_snippet(visit):
    page = visit()
    page.locator('.tiles label:has(input[value="medusa"])').click()
    page.wait_for_selector('.tiles label.selected:has(input[value="medusa"])')
    open_export(page)
    page.get_by_text("SGLang", exact=True).click()
    page.wait_for_function("document.querySelector('#export-notes').textContent.includes('SGLang has no Medusa')")
    assert not page.locator("#export-snippet .cm-content").is_visible()


def test_the_metrics_of_the_newest_run_can_be_taken_away(visit):
    page = visit()
    open_export(page)
    assert "no run yet" in page.inner_text("#export-said")
    page.get_by_role("tab", name="Generate").click()
    run(page, "a story", max_new_tokens=40)
    open_export(page)
    page.wait_for_selector("#export-metrics .cm-content")
    with page.expect_download() as caught:
        page.click("#export-download")
    found = json.loads(Path(caught.value.path()).read_text(encoding="utf-8"))
    assert found["usage"]["completion_tokens"] == 40
    assert sum(found["metrics"]["speculative_decoding"]["acceptance_histogram"]) > 0


def watch(page, url):
    page.fill("#watch-url input, #watch-url textarea", url)
    page.click("#watch-start")


def test_a_server_is_watched_with_its_text_charts_and_counters(visit, monkeypatch):
    monkeypatch.delenv("SPACE_ID", raising=False)
    page = visit(viewport={"width": 1280, "height": 3000})
    open_export(page)
    assert page.locator("#watch-key input").get_attribute("type") == "password"
    with serving(round_s=0.4) as server:
        watch(page, server.url)
        page.wait_for_function("document.querySelector('.watch-text')?.textContent.includes('alpha')")
        assert "kappa" not in page.inner_text(".watch-text")
        page.wait_for_selector("#watch-counters table")
    assert "theta iota <b>kappa</b>" in page.inner_text(".watch-text")
    assert "2.50" in page.inner_text("#watch-view .figures")
    page.wait_for_function("document.querySelectorAll('#watch-charts .plot.js-plotly-plot').length === 4")
    page.wait_for_function("document.querySelectorAll('#watch-charts .plot')[3].data[0].y.length === 3")
    assert page.evaluate("document.querySelectorAll('#watch-charts .plot')[0].data[0].y.length") > 1
    assert page.evaluate("document.querySelectorAll('#watch-charts .plot')[1].data[1].y.at(-1)") == 2.5


def test_stop_ends_a_watch_with_what_was_counted_so_far(visit, monkeypatch):
    monkeypatch.delenv("SPACE_ID", raising=False)
    page = visit()
    open_export(page)
    with serving(round_s=1.0) as server:
        watch(page, server.url)
        page.wait_for_function("document.querySelector('.watch-text')?.textContent.includes('alpha')")
        page.click("#watch-stop")
        page.wait_for_selector("#watch-counters table")
    assert "Stopped after" in page.inner_text("#watch-status")
    assert "kappa" not in page.inner_text(".watch-text")


def test_a_server_that_is_not_there_and_one_that_is_refused_are_said_to_be_so(visit, monkeypatch):
    page = visit()
    open_export(page)
    with serving() as server:
        url = server.url
    watch(page, url)
    page.wait_for_function("document.querySelector('#watch-status').textContent.includes('No server answers')")
    monkeypatch.setenv("SPACE_ID", "someone/space")
    watch(page, url)
    page.wait_for_function("document.querySelector('#watch-status').textContent.includes('open to everybody')")


def test_the_tab_fits_a_phone(visit):
    page = visit(viewport=PHONE)
    menu = page.locator(".overflow-menu > button")
    if not page.get_by_role("tab", name="Export").is_visible():
        menu.click()
        page.locator(".overflow-dropdown button", has_text="Export").click()
    page.wait_for_selector("#export-notes .note")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
