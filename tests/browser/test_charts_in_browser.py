"""The charts in a real browser: live, calm, zoom kept, themed, light on memory."""

import time

from browser.conftest import ask, run, wait_end

PLOTS = ".spec .plot.js-plotly-plot"


def show_charts(page):
    page.locator(".spec .charts").scroll_into_view_if_needed()
    page.wait_for_function("document.querySelectorAll('.spec .plot.js-plotly-plot').length === 4")


def points(page, chart, trace=0):
    return page.evaluate(
        "([chart, trace]) => document.querySelectorAll('.spec .plot')[chart].data[trace].y.length", [chart, trace]
    )


def test_four_charts_are_drawn_from_the_run(visit):
    page = visit(viewport={"width": 1280, "height": 2200})
    run(page, "a story", max_new_tokens=60)
    show_charts(page)
    rounds = page.evaluate("Number(document.querySelector('.status .more').textContent.match(/in (\\d+) rounds/)[1])")
    assert [points(page, chart) for chart in range(3)] == [rounds] * 3
    assert points(page, 3) >= 3
    titles = page.locator(".spec figcaption b").all_inner_texts()
    assert titles == ["Alpha", "Speedup", "Where a round's time goes", "Acceptance by draft position"]
    assert page.evaluate("document.querySelectorAll('.spec .plot')[1].layout.shapes[0].y0") == 1
    assert page.locator(f"{PLOTS}[aria-label]").count() == 4


def test_charts_move_while_the_run_goes_on_and_are_drawn_a_few_times_a_second_at_most(visit):
    page = visit(viewport={"width": 1280, "height": 2200})
    show_charts(page)
    page.evaluate("""() => {
        window.draws = 0;
        const react = window.Plotly.react;
        window.Plotly.react = (...given) => { window.draws++; return react(...given); };
    }""")
    ask(page, "#slow story", max_new_tokens=2000)
    page.wait_for_selector(".strip .tok")
    page.wait_for_function("document.querySelectorAll('.spec .plot')[1].data[0].y.length > 3")
    began = time.monotonic()
    draws = page.evaluate("window.draws")
    page.wait_for_function("(draws) => window.draws >= draws + 8", arg=draws)
    page.wait_for_timeout(1000)
    rate = (page.evaluate("window.draws") - draws) / (time.monotonic() - began)
    page.click("#stop")
    wait_end(page)
    assert rate <= 13, "four charts, each drawn about three times a second at most"


def test_zoom_and_scroll_position_survive_updates_without_a_rebuild(visit):
    page = visit()
    show_charts(page)
    ask(page, "#slow story", max_new_tokens=2000)
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")  # charts out of sight are not drawn
    page.wait_for_function("document.querySelectorAll('.spec .plot')[0].data[0].y.length > 4")
    page.evaluate("() => { window.first = document.querySelector('.spec .plot svg'); }")
    area = page.locator(".spec .plot").first.locator(".nsewdrag").bounding_box()
    page.mouse.move(area["x"] + 0.3 * area["width"], area["y"] + 0.2 * area["height"])
    page.mouse.down()
    page.mouse.move(area["x"] + 0.7 * area["width"], area["y"] + 0.7 * area["height"], steps=6)
    page.mouse.up()
    ranges = "['xaxis', 'yaxis'].map((axis) => document.querySelector('.spec .plot').layout[axis].range)"
    page.wait_for_function(f"{ranges}[1][1] < 1")
    page.wait_for_timeout(300)
    zoomed = page.evaluate(ranges)
    scroll, before = page.evaluate("window.scrollY"), points(page, 0)
    height = page.evaluate("document.querySelector('.spec .chart').offsetHeight")
    page.wait_for_function("(n) => document.querySelectorAll('.spec .plot')[0].data[0].y.length > n", arg=before)
    page.wait_for_timeout(500)
    same = page.evaluate("window.first === document.querySelector('.spec .plot svg')")
    state = [page.evaluate(ranges), same, page.evaluate("window.scrollY")]
    page.click("#stop")
    wait_end(page)
    assert state == [zoomed, True, scroll]
    assert page.evaluate("document.querySelector('.spec .chart').offsetHeight") == height


def test_charts_follow_a_change_of_theme(visit):
    page = visit(viewport={"width": 1280, "height": 2200})
    run(page, "a story", max_new_tokens=30)
    show_charts(page)
    color = "document.querySelectorAll('.spec .plot')[0].layout.font.color"
    light = page.evaluate(color)
    page.click("#theme-toggle")
    page.wait_for_function(f"{color} !== '{light}'")
    ink = page.evaluate("getComputedStyle(document.querySelector('.spec')).getPropertyValue('--ink-soft').trim()")
    assert page.evaluate(color) == ink


def test_a_run_without_drafts_says_why_a_chart_is_empty(visit):
    page = visit(viewport={"width": 1280, "height": 2200})
    page.locator("#set-proposer label", has_text="None").click()
    run(page, "plain", max_new_tokens=10)
    show_charts(page)
    page.wait_for_selector(".spec .chart .empty:has-text('No drafted token was tested')")


def test_many_updates_do_not_pile_up_in_memory(visit):
    page = visit(viewport={"width": 1280, "height": 2200})
    show_charts(page)
    run(page, "warm up", max_new_tokens=30)
    session = page.context.new_cdp_session(page)

    def heap():
        session.send("HeapProfiler.collectGarbage")
        return session.send("Runtime.getHeapUsage")["usedSize"] / 2**20

    before = heap()
    page.evaluate("""async () => {
        const plot = document.querySelectorAll('.spec .plot')[0];
        for (let i = 0; i < 150; i++) await window.Plotly.react(plot, plot.data, { ...plot.layout });
    }""")
    for _ in range(2):
        run(page, "again", max_new_tokens=120)
    assert heap() - before < 30
