"""A real browser in front of the page, fed by the double: fixtures and small ways to look.

Needs Chromium and the playwright package. Without them these tests are skipped with a notice, except
where CI is set: there a missing browser is a failure.
"""

import os
import shutil
import time
from pathlib import Path
from unittest.mock import patch

import pytest
from browser.double import Double

from playground.ui.layout import build, launch_options
from playground.ui.recordings import first_recording

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in Path(item.fspath).parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser():
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _missing("the playwright package is not installed")
    if CHROMIUM is None:
        _missing("no chromium on this machine")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield launched
        launched.close()


def _missing(why):
    if os.environ.get("CI"):
        pytest.fail(f"Browser tests must run in CI, but {why}.")
    pytest.skip(f"Browser tests are skipped: {why}.")


def serve(double, recording=""):
    """Serve the page for `double`; returns (page to close, url). The view is empty at first, or shows a log."""
    shown = (recording, first_recording()[1] if recording else [])
    with (
        patch("playground.ui.generate.first_recording", return_value=shown),
        patch("playground.ui.layout.first_recording", return_value=shown),
    ):
        page = build(double)
    _, url, _ = page.launch(prevent_thread_lock=True, quiet=True, **launch_options())
    return page, url.rstrip("/")


@pytest.fixture(scope="session")
def fast_server():
    double = Double(round_s=0.02)
    page, url = serve(double)
    yield double, url
    page.close()


@pytest.fixture
def double(fast_server):
    return fast_server[0]


@pytest.fixture(scope="session")
def contexts(browser):
    """Browser contexts by their options; kept, so that a page's files are fetched once."""
    kept = {}

    def context(**options):
        key = repr(sorted(options.items()))
        if key not in kept:
            kept[key] = browser.new_context(**options)
            kept[key].set_default_timeout(20_000)
        return kept[key]

    yield context
    for item in kept.values():
        item.close()


@pytest.fixture
def visit(contexts, fast_server):
    """Open the page as a visitor of its own; fails the test on any console error or foreign request."""
    pages, complaints = [], []

    def open_page(url=None, theme="light", ready=True, viewport=DESKTOP, **options):
        url = url or fast_server[1]
        page = contexts(viewport=viewport, **options).new_page()
        pages.append(page)
        page.on("console", lambda message: message.type == "error" and complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: _foreign(request.url, url) and complaints.append(request.url))
        page.goto(f"{url}/?__theme={theme}", wait_until="commit")
        page.wait_for_selector(".spec .strip")
        if ready:
            page.wait_for_selector("#ready .ready.ok")
        return page

    yield open_page
    for page in pages:
        page.close()
    assert complaints == []


def _foreign(address, own):
    return not address.startswith((own, "data:", "blob:"))


def ask(page, prompt, **settings):
    """Fill in the prompt and settings and press Generate."""
    page.fill("#prompt textarea", prompt)
    for name, value in settings.items():
        field = page.locator(f"#set-{name} input[type=number]")
        field.fill(str(value))
        field.blur()
    page.click("#generate")


def status(page):
    return page.inner_text(".spec .status .what")


def run_id(page):
    """The id of the newest run that the page has shown."""
    return page.get_attribute(".spec", "data-run")


def wait_end(page, before=None):
    """Wait until a run other than `before` is over and the page is ready again."""
    page.wait_for_function(
        """(before) => {
            const { run, over } = document.querySelector('.spec').dataset;
            return run && run === over && run !== before;
        }""",
        arg=before,
    )
    page.wait_for_selector("#generate:enabled")


def run(page, prompt, **settings):
    """Ask and wait for the end."""
    before = run_id(page)
    ask(page, prompt, **settings)
    wait_end(page, before)


def output(page):
    """The text of the output tokens, as it stands in the page."""
    return page.evaluate("[...document.querySelectorAll('.strip .out')].map((t) => t.textContent).join('')")


def copied(page):
    """The text that selecting the whole strip and copying puts on the clipboard."""
    return page.evaluate("""() => {
        const strip = document.querySelector('.spec .strip');
        const range = document.createRange();
        range.selectNodeContents(strip);
        const selection = document.getSelection();
        selection.removeAllRanges();
        selection.addRange(range);
        const data = new DataTransfer();
        strip.dispatchEvent(new ClipboardEvent('copy', { clipboardData: data, bubbles: true, cancelable: true }));
        selection.removeAllRanges();
        return data.getData('text/plain');
    }""")


def wait_idle(double):
    """Wait until no run of the double goes on: a stop reaches it with its next batch."""
    deadline = time.monotonic() + 30
    while double.running and time.monotonic() < deadline:
        time.sleep(0.05)
    assert double.running == 0
