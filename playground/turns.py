"""Turns at something only one may use at a time, first come first served, with a place to show.

Fair where a lock is not, and a ticket can be left at any time. Knows nothing of what is waited for.
"""

import threading
from collections import deque


class Turns:
    """Hands out tickets; the oldest ticket not yet left has its turn."""

    def __init__(self):
        self._changed = threading.Condition()
        self._tickets: deque[Ticket] = deque()

    def join(self) -> "Ticket":
        """Stand in line at the end."""
        ticket = Ticket(self)
        with self._changed:
            self._tickets.append(ticket)
        return ticket

    def __len__(self) -> int:
        """Tickets in line, the one whose turn it is included."""
        with self._changed:
            return len(self._tickets)


class Ticket:
    """A place in line. Leave it when done, or to stop waiting."""

    def __init__(self, turns: Turns):
        self._turns = turns

    def wait(self, timeout_s: float) -> int:
        """Wait for the turn at most `timeout_s`; return how many are still ahead, 0 = it is the turn."""
        turns = self._turns
        with turns._changed:
            turns._changed.wait_for(lambda: turns._tickets[0] is self, timeout_s)
            return turns._tickets.index(self)

    def leave(self) -> None:
        """Give the turn, or the place in line, to the next. Leaving twice does nothing."""
        with self._turns._changed:
            if self in self._turns._tickets:
                self._turns._tickets.remove(self)
                self._turns._changed.notify_all()
