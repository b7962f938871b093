"""Generate and Stop in a real browser: one run at a time, every end told, nobody's run mixed up."""

import time

import pytest
from browser.conftest import ask, output, run, run_id, serve, status, wait_end, wait_idle
from browser.double import Double


def figure(page, name):
    return page.inner_text(f".spec .figure.{name} strong")


def test_a_finished_run_shows_its_reason_and_final_figures(visit):
    page = visit()
    run(page, "#list", gamma=4)
    assert status(page).startswith("Finished: ")
    assert figure(page, "speedup").endswith("×")
    assert figure(page, "alpha").endswith("%")
    assert float(figure(page, "acceptance_length")) > 1
    assert "plain decoding 50.0" in page.inner_text(".spec .figure.tokens_per_second")
    assert "draft efficiency" in page.inner_text(".spec .status .more")
    assert page.is_disabled("#stop")


@pytest.mark.parametrize(
    ("prompt", "reason"), [("#markup a b c", "wrote its end token"), ("#markup a b", "limit of new tokens")]
)
def test_each_way_to_end_is_told_apart(visit, prompt, reason):
    page = visit()
    run(page, prompt)
    assert reason in status(page)
    assert "rounds" in page.inner_text(".spec .status .more")


def test_figures_are_empty_before_a_run_and_where_there_is_nothing_to_divide(visit):
    page = visit()
    assert [figure(page, name) for name in ("speedup", "alpha", "acceptance_length", "tokens_per_second")] == ["—"] * 4
    page.locator("#set-proposer label", has_text="None").click()
    run(page, "plain words", max_new_tokens=12)
    assert figure(page, "alpha") == "—"
    assert figure(page, "acceptance_length") == "1.00"
    assert page.locator(".strip .plain").count() == 12


def test_an_answer_without_a_token_is_said_to_be_empty(visit):
    page = visit()
    run(page, "#empty")
    assert figure(page, "speedup") == "—"
    assert page.inner_text(".spec .page") == "No token was written."


def test_stop_keeps_the_text_and_says_stopped(visit, double):
    page = visit()
    ask(page, "#slow story", max_new_tokens=2000)
    page.wait_for_selector(".strip .tok:nth-child(20)")
    page.click("#stop")
    wait_end(page)
    assert status(page) == "Stopped: what was made is kept"
    assert output(page)
    assert figure(page, "speedup").endswith("×")
    wait_idle(double)
    kept = output(page)
    page.wait_for_timeout(400)
    assert output(page) == kept


def test_after_a_stop_the_next_run_starts_afresh(visit):
    page = visit()
    ask(page, "#slow story", max_new_tokens=2000)
    page.wait_for_selector(".strip .tok:nth-child(20)")
    page.click("#stop")
    wait_end(page)
    run(page, "#markup fresh start")
    assert output(page) == "fresh start"


def test_stop_works_at_once_at_any_moment(visit, double):
    page = visit()
    for wait_ms in (0, 60, 150, 400):
        ask(page, "#slow story", max_new_tokens=2000)
        page.wait_for_selector("#stop:enabled")
        page.wait_for_timeout(wait_ms)
        page.click("#stop")
        page.wait_for_selector("#generate:enabled")
    page.wait_for_timeout(500)
    assert status(page) == "Stopped: what was made is kept"
    wait_idle(double)


def test_five_fast_clicks_run_once(visit, double):
    page = visit()
    before, runs = run_id(page), double.num_runs
    page.fill("#prompt textarea", "click click click")
    page.evaluate("() => { for (let i = 0; i < 5; i++) document.querySelector('#generate').click(); }")
    wait_end(page, before)
    page.wait_for_timeout(300)
    assert double.num_runs == runs + 1


def test_a_run_that_fails_midway_keeps_its_text_and_gives_the_reason(visit):
    page = visit()
    run(page, "#fail soon")
    assert "ran out of memory in round 3" in status(page)
    assert "lower precision" in status(page)
    assert page.get_attribute(".spec .status", "data-state") == "failed"
    assert output(page)
    run(page, "#markup works again")
    assert output(page) == "works again"


def test_an_unforeseen_error_becomes_a_sentence_and_the_page_is_ready_again(visit):
    page = visit()
    run(page, "#raise")
    assert "mistake of its own" in status(page)
    assert "secret" not in page.content()
    run(page, "#markup works again")
    assert output(page) == "works again"


def test_a_model_that_cannot_be_loaded_is_said_in_words(visit):
    page = visit()
    run(page, "#unloadable")
    assert "not found on the Hub" in status(page)


def test_an_empty_prompt_is_refused_and_nothing_is_lost(visit):
    page = visit()
    run(page, "#markup keep me")
    ask(page, "   ")
    toast = page.wait_for_selector("[data-testid=toast-body]")
    assert "The prompt is empty" in toast.inner_text()
    page.wait_for_selector("#generate:enabled")
    assert page.is_disabled("#stop")
    assert output(page) == "keep me"
    page.locator("[data-testid=toast-close]").click()
    run(page, "#markup next")
    assert output(page) == "next"


def test_a_number_typed_out_of_range_is_refused_or_brought_into_range(visit, double):
    page = visit()
    runs = double.num_runs
    ask(page, "#markup x", gamma=1000)
    page.wait_for_selector("#generate:enabled")
    page.wait_for_timeout(300)
    assert page.locator("[data-testid=toast-body]", has_text="gamma").count() or double.settings[-1].gamma <= 16
    assert double.num_runs <= runs + 1


def test_a_fast_engine_is_followed_within_a_second_and_not_slowed_down(visit):
    double = Double(round_s=0.02)  # about 200 tokens/s
    server, url = serve(double)
    try:
        page = visit(url)
        page.locator(".spec .charts").scroll_into_view_if_needed()
        page.wait_for_function("window.Plotly")
        began = time.monotonic()
        before = run_id(page)
        ask(page, "a very long story", gamma=5, max_new_tokens=1000)
        wait_end(page, before)
        seen = time.monotonic()
        rounds = page.evaluate(
            "Number(document.querySelector('.status .more').textContent.match(/in (\\d+) rounds/)[1])"
        )
        assert page.locator(".strip .out").count() == 1000
        assert seen - double.ended[-1] < 10  # the page does not fall behind: some tenths on a quiet machine
        assert double.ended[-1] - began < 2 * 0.02 * rounds + 10  # nor holds up the run
    finally:
        server.close()
