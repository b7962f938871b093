"""The newest run of each browser session: for its Stop button, for saving, and for the tabs that explain it.

A cancelled stream cannot send its own last line; it leaves the finished log here and the Stop button
fetches it. A stream that gradio forgets, as it does when Stop comes during its first step, is closed
here. Knows no gradio and no engine.
"""

import threading
import uuid
from collections import OrderedDict
from collections.abc import Generator
from time import monotonic

FIRST = "first"  # what the page shows by itself
MAX_SESSIONS = 64  # logs kept; older ones have been seen long ago
MAX_EVENTS = 6000  # kept of one run: some 2,000 rounds


class Run:
    """One run: its stream of logs, the event that stops it, and its log once it is over."""

    def __init__(self):
        self.name = uuid.uuid4().hex
        self.text: str | None = None
        self.stop = threading.Event()
        self.steps: Generator | None = None
        self.events: list | None = []  # what it said, to be saved; None once there is too much of it
        self._over = threading.Event()

    def keep(self, events: list) -> None:
        """Keep what a run says, up to a limit."""
        if self.events is not None:
            self.events += events
            if len(self.events) > MAX_EVENTS:
                self.events = None

    def close(self, text: str) -> None:
        """Leave the finished log."""
        self.text = text
        self._over.set()

    def end(self, timeout_s: float) -> str | None:
        """Stop the run if it goes on; return the finished log, or None when it is not finished in time."""
        self.stop.set()
        deadline = monotonic() + timeout_s
        while not self._over.wait(min(0.1, timeout_s)) and monotonic() < deadline:
            try:
                if self.steps is not None:
                    self.steps.close()
                    break
            except ValueError:  # it is at work on its next step, and will see that it is to stop
                pass
        return self.text


class Runs:
    """The newest run by session, made or opened; before any, the recording that the page shows by itself."""

    def __init__(self, first: list | None = None):
        """`first`: the events of what is shown before any run."""
        self._lock = threading.Lock()
        self._first = first or []
        self._by_session: OrderedDict[str | None, Run] = OrderedDict()

    def start(self, session: str | None) -> Run:
        """Register and return a new run of `session`."""
        return self._put(session, Run())

    def open(self, session: str | None, events: list) -> None:
        """Register a recorded run as the newest of `session`."""
        run = Run()
        run.keep(events)
        run.close("")
        self._put(session, run)

    def _put(self, session: str | None, run: Run) -> Run:
        with self._lock:
            self._by_session.pop(session, None)
            self._by_session[session] = run
            while len(self._by_session) > MAX_SESSIONS:
                self._by_session.popitem(last=False)
        return run

    def ended(self, session: str | None, timeout_s: float) -> str | None:
        """End the newest run of `session` and return its log; None without one."""
        with self._lock:
            run = self._by_session.get(session)
        return run.end(timeout_s) if run else None

    def events(self, session: str | None) -> list | None:
        """What the newest run of `session` has said so far; None when it is too much to keep."""
        with self._lock:
            run = self._by_session.get(session)
        return list(self._first) if run is None else None if run.events is None else list(run.events)

    def name(self, session: str | None) -> str:
        """A name that tells the newest run of `session` from others; FIRST before any."""
        with self._lock:
            run = self._by_session.get(session)
        return FIRST if run is None else run.name

    def forget(self, session: str | None) -> None:
        """End and drop the run of a session that is gone."""
        with self._lock:
            run = self._by_session.pop(session, None)
        if run is not None:
            run.end(0.0)
