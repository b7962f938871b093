"""Measuring tokens/s from the page: progress, figures in table and lists, Stop, another visitor's turn."""

import pytest
from browser.conftest import run, serve
from browser.double import Double

OVERFLOW = "document.documentElement.scrollWidth - window.innerWidth"


@pytest.fixture
def served():
    double = Double(round_s=0.02)
    page, url = serve(double)
    yield double, url
    page.close()


def open_block(page):
    page.click("#precisions button.label-wrap")
    page.wait_for_selector("#measure:enabled")


def test_measuring_fills_the_table_and_the_lists_with_figures(served, visit):
    double, url = served
    double.step_s = 0.8
    page = visit(url)
    open_block(page)
    page.wait_for_function("document.querySelectorAll('#precision-speeds tr').length === 3")
    assert "44" not in page.inner_text("#precision-speeds")
    page.click("#measure")
    page.wait_for_selector("#precision-speeds >> text=measuring 50%")
    page.wait_for_selector("#precision-speeds >> text=fails")
    page.wait_for_function("document.querySelector('#set-target_precision input').value.includes('44 tokens/s')")
    assert page.inner_text("#precision-speeds tr:nth-child(2) b") == "44"
    assert page.evaluate(OVERFLOW) <= 0
    field = page.locator("#set-target_precision input")
    assert field.evaluate("(input) => input.scrollWidth <= input.clientWidth")
    page.locator("#set-proposer label", has_text="Quantized copy").click()
    page.click("#set-quantized_precision input")
    page.get_by_role("option", name="float32 · 20 tokens/s measured here").wait_for()
    later = visit(url)
    later.wait_for_function("document.querySelector('#set-target_precision input').value.includes('44 tokens/s')")


def test_stopping_a_measurement_keeps_what_it_found_and_frees_the_engine(served, visit):
    double, url = served
    double.step_s = 0.8
    page = visit(url)
    open_block(page)
    page.click("#measure")
    page.wait_for_selector("#precision-speeds >> text=2026-11-29")
    page.click("#measure-stop")
    page.wait_for_selector("#measure:enabled")
    page.wait_for_selector("#precision-speeds .state", state="detached")
    assert page.inner_text("#precision-speeds tr:nth-child(1) b") == "20"
    page.wait_for_timeout(1000)
    assert double.measuring == 0
    assert ("smollm2-135m", "bfloat16") not in double.known


def test_another_target_shows_its_own_figures(served, visit):
    double, url = served
    double.known = {("smollm2-135m", "bfloat16"): 44.0, ("someone/else", "bfloat16"): 7.0}
    page = visit(url)
    page.wait_for_function("document.querySelector('#set-target_precision input').value.includes('44 tokens/s')")
    field = page.locator("#set-target input")
    field.fill("someone/else")
    field.press("Enter")
    page.wait_for_function("document.querySelector('#set-target_precision input').value.includes('7.0 tokens/s')")


def test_the_figure_of_a_run_is_in_the_list_when_the_run_is_over(served, visit):
    double, url = served
    page = visit(url)
    double.known = {("smollm2-135m", "bfloat16"): 50.0}
    run(page, "#markup x")
    page.wait_for_function("document.querySelector('#set-target_precision input').value.includes('50 tokens/s')")
