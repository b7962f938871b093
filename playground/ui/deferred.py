"""A stand-in for the Playground while the real one is still being made.

Importing the engine takes seconds; the page should not wait for it. `Deferred` makes the real
Playground in a background thread and answers in its place until then. Same four methods, no models.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

from playground.config import RunSettings
from playground.events import Event, Failed, Progress
from playground.ui.text import BROKEN, STARTING

log = logging.getLogger(__name__)


class Deferred:
    """Answers like a Playground; passes everything on once the real one exists."""

    def __init__(self, make: Callable[[], Any]):
        self._make = make
        self._made = threading.Event()
        self._playground: Any = None
        self._failure: Failed | None = None

    def start_loading(self) -> None:
        """Begin making the real Playground and loading its default target, in the background."""
        threading.Thread(target=self._work, name="make-playground", daemon=True).start()

    def _work(self) -> None:
        try:
            playground = self._make()
            playground.start_loading()
            self._playground = playground
        except Exception as error:  # whatever it was, the page has to say it
            log.exception("The engine could not be started")
            self._failure = Failed(f"The engine could not be started: {error}", "Restart the app.")
        finally:
            self._made.set()

    def loading(self) -> Progress | Failed | None:
        """Return how far it is; None when runs can start at once."""
        if self._playground is not None:
            return self._playground.loading()
        return self._failure or Progress("loading", STARTING)

    def options(self) -> Any | None:
        """Return what can be chosen, or None while that is not known yet."""
        return self._playground.options() if self._playground is not None else None

    def drafts_for(self, target_id: str) -> list:
        """Return the draft models that fit a target; none while that is not known yet."""
        return self._playground.drafts_for(target_id) if self._playground is not None else []

    def stream(self, settings: RunSettings, wait_s: float = 1 / 12) -> Iterator[list[Event]]:
        """Run as the real Playground would, waiting for it first."""
        yield [Progress("loading", STARTING)]
        while not self._made.wait(wait_s):
            yield []
        if self._playground is None:
            yield [self._failure or Failed(BROKEN)]
            return
        yield from self._playground.stream(settings, wait_s)
