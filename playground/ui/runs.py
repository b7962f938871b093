"""The newest run of each browser session, so that its Stop button can show how its own run ended.

A cancelled stream cannot send its own last line; it leaves the finished log here and the Stop button
fetches it. Knows no gradio and no engine.
"""

import threading
from collections import OrderedDict

MAX_SESSIONS = 64  # logs kept; older ones have been seen long ago


class Run:
    """One run: its log once it is over."""

    def __init__(self):
        self.text: str | None = None
        self._over = threading.Event()

    def close(self, text: str) -> None:
        """Leave the finished log."""
        self.text = text
        self._over.set()

    def wait(self, timeout_s: float) -> str | None:
        """Return the finished log, or None when it is not finished in time."""
        self._over.wait(timeout_s)
        return self.text


class Runs:
    """The newest run by session."""

    def __init__(self):
        self._lock = threading.Lock()
        self._by_session: OrderedDict[str | None, Run] = OrderedDict()

    def start(self, session: str | None) -> Run:
        """Register and return a new run of `session`."""
        run = Run()
        with self._lock:
            self._by_session.pop(session, None)
            self._by_session[session] = run
            while len(self._by_session) > MAX_SESSIONS:
                self._by_session.popitem(last=False)
        return run

    def ended(self, session: str | None, timeout_s: float) -> str | None:
        """Return the finished log of the newest run of `session`, waiting for it; None without one."""
        with self._lock:
            run = self._by_session.get(session)
        return run.wait(timeout_s) if run else None

    def forget(self, session: str | None) -> None:
        """Drop what is kept for a session that is gone."""
        with self._lock:
            self._by_session.pop(session, None)
