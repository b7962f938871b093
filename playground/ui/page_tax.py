"""What watching a run costs the engine: with a browser beside it, with a client alone, with nobody.

One process serves the page and does all runs, so models, threads and caches are the same. The client
stands for a browser on another machine: the server streams to it, nothing is drawn here. Needs the
playwright package and a Chromium; asked for by `python -m playground bench --page`.
"""

import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from time import perf_counter
from typing import Any

from playground.config import RunSettings
from playground.events import Event
from playground.lab.bench import ratio
from playground.metrics import RunMetrics
from playground.presets import DEFAULT_PRESET, preset, preset_settings
from playground.session import Playground
from playground.ui.layout import build, launch_options

FLAGS = ("--no-sandbox", "--disable-gpu")
WAIT_MS = 120_000
CLIENT = """
import json, sys
from gradio_client import Client
settings = json.load(sys.stdin)
for log in Client(sys.argv[1], verbose=False).submit(**settings, api_name="/generate"):
    pass
"""
IDLE = "() => !document.querySelector('#generate').disabled && document.querySelector('#stop').disabled"

RUNS_PER_PAGE = 4
FIRST_TOKEN = "() => document.querySelector('#view .tok[data-i]')"


class _Watched(Playground):
    """A Playground that remembers the metrics of its newest run."""

    metrics = RunMetrics()

    def run(self, settings: RunSettings, emit: Callable[[Event], None]) -> None:
        """Run as usual, with figures kept aside."""
        self.metrics = RunMetrics()

        def both(event: Event) -> None:
            self.metrics.update(event)
            emit(event)

        super().run(settings, both)


def measure(cycles: int, report: Callable[[str], None] = print) -> dict:
    """Run the default preset unwatched, with a client, and in a browser, in turn.

    Returns:
        `client_vs_headless` and `page_vs_headless`: engine tokens/s ÷ those of the unwatched run of the
        same cycle, as a Ratio's fields; `first_token_s`: median seconds from the click to the first token.

    Raises:
        RuntimeError: no playwright package or no Chromium.
    """
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise RuntimeError("Measuring the page needs the playwright package: see requirements-dev.txt.") from error
    if chromium is None:
        raise RuntimeError("Measuring the page needs Chromium.")
    playground = _Watched()
    page = build(playground)
    _, url, _ = page.launch(prevent_thread_lock=True, quiet=True, **launch_options())
    item = preset(DEFAULT_PRESET)
    settings = {"prompt": item.prompt} | preset_settings(item)
    client, watched, waits = [], [], []
    try:
        with sync_playwright() as playwright:
            for cycle in range(cycles + 1):
                report(f"page: {'warm-up' if cycle == 0 else f'cycle {cycle} of {cycles}'}")
                playground.run(RunSettings(**settings), lambda event: None)
                alone = playground.metrics.tokens_per_second
                command = [sys.executable, "-c", CLIENT, url]
                subprocess.run(command, input=json.dumps(settings), text=True, check=True, capture_output=True)
                client.append((playground.metrics.tokens_per_second, alone))
                browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
                runs = [(wait, playground.metrics.tokens_per_second) for wait in _watch(browser, url)]
                waits += [wait for wait, _ in runs[1:]]  # the first warms up the page's scripts
                watched.append((statistics.median(rate for _, rate in runs[1:]), alone))
                browser.close()
    finally:
        page.close()
    return {
        "client_vs_headless": asdict(ratio(client[1:])),
        "page_vs_headless": asdict(ratio(watched[1:])),
        "first_token_s": round(statistics.median(waits), 2),
    }


def _watch(browser: Any, url: str) -> Iterator[float]:
    """Do runs in one page; yield after each the seconds from the click to the first token."""
    tab = browser.new_page()
    tab.goto(url)
    tab.wait_for_selector("#generate")
    tab.wait_for_timeout(1500)  # the page settles
    for _ in range(RUNS_PER_PAGE):
        start = perf_counter()
        tab.click("#generate")
        tab.wait_for_timeout(200)  # the click has emptied the strip
        tab.wait_for_function(FIRST_TOKEN, polling=20, timeout=WAIT_MS)
        waited = perf_counter() - start
        tab.wait_for_function(IDLE, polling=200, timeout=WAIT_MS)
        yield waited
