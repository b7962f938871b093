"""What an open page costs the engine: the same run with a browser watching and without, in turn.

One process serves the page and does both kinds of run, so models, threads and caches are the same;
only the streaming and the browser, which shares the machine's cores, differ. Needs the playwright
package and a Chromium; asked for by `python -m playground bench --page`.
"""

import shutil
import statistics
from collections.abc import Callable
from dataclasses import asdict
from time import perf_counter

from playground.config import RunSettings
from playground.events import Event
from playground.lab.bench import Ratio, ratio
from playground.metrics import RunMetrics
from playground.presets import DEFAULT_PRESET, preset, preset_settings
from playground.session import Playground
from playground.ui.layout import build, launch_options

FLAGS = ("--no-sandbox", "--disable-gpu")
WAIT_MS = 120_000
IDLE = "() => !document.querySelector('#generate').disabled && document.querySelector('#stop').disabled"


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
    """Alternate runs with and without an open page on the default preset.

    Returns:
        `page_vs_headless`: engine tokens/s with the page open ÷ without, as a Ratio's fields, and
        `first_token_s`: median seconds from the click to the first token on the page.

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
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
            pairs, waits = _alternate(playground, browser, url, cycles, report)
            browser.close()
    finally:
        page.close()
    found: Ratio = ratio(pairs)
    return {"page_vs_headless": asdict(found), "first_token_s": round(statistics.median(waits), 2)}


def _alternate(playground, browser, url: str, cycles: int, report) -> tuple[list[tuple[float, float]], list[float]]:
    item = preset(DEFAULT_PRESET)
    settings = RunSettings(prompt=item.prompt, **preset_settings(item))
    pairs, waits = [], []
    for cycle in range(cycles + 1):
        report(f"page: {'warm-up' if cycle == 0 else f'cycle {cycle} of {cycles}'}")
        playground.run(settings, lambda event: None)
        headless = playground.metrics.tokens_per_second
        tab = browser.new_page()
        tab.goto(url)
        tab.wait_for_selector("#generate")
        tab.wait_for_timeout(1500)  # the page settles
        start = perf_counter()
        tab.click("#generate")
        tab.wait_for_selector("#view .tok[data-i]", timeout=WAIT_MS)
        waits.append(perf_counter() - start)
        tab.wait_for_function(IDLE, polling=200, timeout=WAIT_MS)
        if cycle:
            pairs.append((playground.metrics.tokens_per_second, headless))
        tab.close()
    return pairs, waits[1:]
