"""The Cost and load tab in a real browser: charts grow, sliders redraw them, Stop keeps them, errors are sentences."""

import pytest
from browser.conftest import PHONE
from browser.double_labs import curve_of, result_of

from playground.events import Failed, Progress
from playground.ui.text_cost import COST_NAME, NEEDS, STOPPED

CHARTS = "#cost-view .line-chart"
CURVES = [[Progress("measuring", "bfloat16: passes behind 128 tokens", 0.5)], [curve_of(128, 1), curve_of(512, 1)]]
LOAD = [[Progress("measuring", "4 at once, plain: 10 of 99 tokens", 0.1), result_of(1)], [result_of(4), result_of(16)]]


@pytest.fixture
def script(double):
    """Lay out what the lab will say; nothing again afterwards."""

    def lay_out(*batches, pause_s=0.15):
        double.lab_script, double.lab_pause_s = batches, pause_s

    yield lay_out
    double.lab_script, double.lab_pause_s = (), 0.15


def opened(visit, **options):
    page = visit(**options)
    page.get_by_role("tab", name=COST_NAME).click()
    page.wait_for_selector("#cost-start")
    return page


def wait_charts(page, count):
    page.wait_for_function("([what, n]) => document.querySelectorAll(what).length === n", arg=[CHARTS, count])


def test_charts_come_as_they_are_measured_each_with_a_conclusion(visit, script):
    script(*CURVES, *LOAD, pause_s=1.5)  # time enough to see the bar, whatever else the machine does
    page = opened(visit)
    page.click("#cost-start")
    page.wait_for_selector("#cost-status progress")
    wait_charts(page, 5)
    page.wait_for_function("document.querySelectorAll('#cost-view tbody tr').length === 3")
    assert all(words.strip() for words in page.locator(f"{CHARTS} > p").all_inner_texts())
    assert page.locator(f"{CHARTS}:has(> p)").count() == 5
    assert "it bends at 16 tokens" in page.inner_text("#cost-view")
    assert "stops paying at B = 16" in page.inner_text("#cost-view")
    page.wait_for_function("!document.querySelector('#cost-status').textContent.trim()")


def test_sliders_redraw_what_is_expected_and_another_tab_forgets_nothing(visit, script):
    script(*CURVES)
    page = opened(visit)
    page.click("#cost-start")
    wait_charts(page, 2)
    before = page.inner_text(f"{CHARTS} >> nth=1")
    field = page.locator("#cost-alpha input[type=number]")
    field.fill("0")
    field.blur()
    page.wait_for_function("document.querySelectorAll('.line-chart')[1].innerText.includes('does not pay')")
    assert page.inner_text(f"{CHARTS} >> nth=1") != before
    page.get_by_role("tab", name="Theory").click()
    page.get_by_role("tab", name=COST_NAME).click()
    assert page.locator(CHARTS).count() == 2


def test_stop_keeps_what_was_measured(visit, script):
    script(*CURVES, *([[Progress("measuring", "going on", 0.1)]] * 200))
    page = opened(visit)
    page.click("#cost-start")
    wait_charts(page, 2)
    page.click("#cost-stop")
    page.wait_for_function("(words) => document.querySelector('#cost-status').innerText.includes(words)", arg=STOPPED)
    page.wait_for_timeout(600)
    assert STOPPED in page.inner_text("#cost-status")
    assert page.locator(CHARTS).count() == 2


def test_what_cannot_be_done_is_a_sentence(visit, script):
    script(*CURVES, [Failed("Gone <away>.", "Try again.")])
    page = opened(visit)
    page.click("#cost-start")
    page.wait_for_selector("#cost-status [role=alert]")
    assert "Gone <away>. Try again." in page.inner_text("#cost-status")
    assert page.locator(CHARTS).count() == 2
    for box in page.locator("#cost-precisions input:checked").all():
        box.uncheck()
    page.click("#cost-start")
    page.wait_for_selector("[data-testid=toast-body]")
    assert NEEDS in page.inner_text("[data-testid=toast-body]")


def test_on_a_phone_nothing_is_cut_off_and_the_dark_theme_has_its_own_colours(visit, script):
    script(*CURVES, *LOAD)
    page = opened(visit, theme="dark")  # a phone has the tab in a menu
    page.set_viewport_size(PHONE)
    page.click("#cost-start")
    wait_charts(page, 5)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.evaluate("getComputedStyle(document.querySelector('.line-chart .mark')).fill") == "rgb(74, 168, 224)"
