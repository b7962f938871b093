"""Several visitors, and visitors who come early, in a real browser: turns, places, nothing mixed up."""

from browser.conftest import ask, output, run_id, serve, status, wait_end, wait_idle
from browser.double import Double


def figure(page, name):
    return page.inner_text(f".spec .figure.{name} strong")


def test_two_browsers_keep_their_runs_apart(visit, double):
    first, second = visit(), visit()
    second.locator("#set-proposer label", has_text="None").click()
    before = run_id(first), run_id(second)
    ask(first, "first story", gamma=3, max_new_tokens=50)
    ask(second, "second tale", max_new_tokens=30)
    wait_end(first, before[0])
    wait_end(second, before[1])
    assert first.locator(".strip .out").count() == 50
    assert second.locator(".strip .out").count() == second.locator(".strip .plain").count() == 30
    assert figure(second, "alpha") == "—" != figure(first, "alpha")
    assert first.input_value("#prompt textarea") == "first story"
    sent = {item.prompt: (item.proposer, item.gamma) for item in double.settings[-2:]}
    assert sent["first story"] == ("ngram", 3)
    assert sent["second tale"][0] == "none"


def test_who_waits_sees_a_place_in_the_queue_and_may_leave_it(visit, double):
    first, second, third = visit(), visit(), visit()
    ask(first, "#slow story", max_new_tokens=2000)
    first.wait_for_selector(".strip .tok")
    runs = double.num_runs
    ask(second, "waiting", max_new_tokens=5)
    second.wait_for_selector(".spec >> text=place 1 of 1 in the queue")
    third.locator("#presets label", has_text="Table to JSON").click()
    third.wait_for_function("document.querySelector('#prompt textarea').value.includes('JSON')")
    second.click("#stop")
    second.wait_for_selector("#generate:enabled")
    first.click("#stop")
    wait_end(first)
    second.wait_for_timeout(500)
    assert double.num_runs == runs
    assert output(second) == ""


def test_a_closed_page_frees_the_engine(visit, double):
    page = visit()
    ask(page, "#slow story", max_new_tokens=2000)
    page.wait_for_selector(".strip .tok")
    page.close()
    wait_idle(double)


def test_while_the_target_loads_the_page_is_usable_and_generate_waits(visit):
    double = Double(load_s=6.0)
    server, url = serve(double)
    double.start_loading()
    try:
        page = visit(url, ready=False)
        assert "Loading SmolLM2" in page.inner_text("#ready")
        page.locator("#presets label", has_text="Translate").click()
        page.wait_for_function("document.querySelector('#prompt textarea').value.includes('Translate')")
        ask(page, "#markup after loading")
        page.wait_for_selector(".spec .status:has-text('Loading SmolLM2')")
        wait_end(page)
        assert output(page) == "after loading"
        page.wait_for_selector("#ready .ready.ok")
    finally:
        server.close()


def test_stop_works_while_the_target_loads(visit):
    double = Double(load_s=60.0)
    server, url = serve(double)
    double.start_loading()
    try:
        page = visit(url, ready=False)
        ask(page, "too early")
        page.wait_for_selector(".spec .status:has-text('Loading SmolLM2')")
        page.click("#stop")
        wait_end(page)
        assert status(page) == "Stopped: what was made is kept"
        wait_idle(double)
    finally:
        server.close()
