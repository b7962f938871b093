"""Work in a thread of its own whose events are handed out in batches, a few times a second.

Closing the batches stops the work at its next event. Knows nothing of what the work is.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

Emit = Callable[[Any], None]


class Stopped(Exception):
    """Raised inside the work by an `emit` whose consumer has gone."""


def batches(work: Callable[[Emit], None], wait_s: float, stop: threading.Event | None = None) -> Iterator[list]:
    """Do `work(emit)` in a thread and yield what it emits in batches, [] when nothing is new.

    Closing the generator stops the work, and so does setting `stop`, at once.
    """
    stop, over, events = stop or threading.Event(), threading.Event(), deque()

    def emit(event: Any) -> None:
        if stop.is_set():
            raise Stopped
        events.append(event)

    def run() -> None:
        try:
            work(emit)
        except Stopped:
            pass
        finally:
            over.set()

    threading.Thread(target=run, name="run", daemon=True).start()
    try:
        last = False
        while not last:
            last = over.wait(wait_s)  # not woken by each event: that would interrupt the engine
            yield [events.popleft() for _ in range(len(events))]
    finally:
        stop.set()  # the work ends at its next event; waiting for it here would hold up the server
