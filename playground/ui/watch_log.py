"""What a watched server did as a log for the charts: JSON lines, one string that only grows.

A row has the COLUMNS, null where the server does not say. Knows no component and no server.
"""

import json

from playground.lab.server_metrics import ServerRates
from playground.lab.watch import Piece, Reading

COLUMNS = (
    "seconds",
    "answer_speed",
    "traffic_speed",
    "length",
    "length_now",
    "efficiency",
    "efficiency_now",
)
NOTHING = ServerRates("", 0, 0, 0, 0, None, None, None, ())


class WatchLog:
    """Takes pieces and readings in order; `text` is the log so far."""

    def __init__(self, run_id: str):
        self.text = ""
        self._first: Piece | None = None
        self._last: Piece | None = None
        self._reading = Reading(0.0, NOTHING)
        self._line({"e": "run", "id": run_id})

    def add(self, items: list) -> None:
        """Take what came since the last call: a row for each reading, or else one for the text."""
        readings = [item for item in items if isinstance(item, Reading)]
        for item in items:
            if isinstance(item, Piece) and item.num_tokens is not None:
                self._first = self._first or item
                self._last = item
            elif isinstance(item, Reading):
                self._row(item.seconds, item)
                self._reading = item
        if not readings and self._last in items:
            self._row(self._last.seconds, None)
        if readings and readings[-1].rates.acceptance_by_position:
            shares = readings[-1].rates.acceptance_by_position
            columns = {"position": list(range(1, len(shares) + 1)), "acceptance": list(shares)}
            self._line({"e": "positions", "columns": columns})

    def end(self) -> None:
        """Say that nothing more comes."""
        self._line({"e": "end"})

    def _row(self, seconds: float, reading: Reading | None) -> None:
        row = [seconds, self._answer_speed()]
        row += [None] * 5 if reading is None else _between(self._reading, reading)
        self._line({"e": "row", "row": [None if value is None else round(value, 4) for value in row]})

    def _answer_speed(self) -> float | None:
        if self._first is None or self._last.seconds <= self._first.seconds:
            return None
        return (self._last.num_tokens - self._first.num_tokens) / (self._last.seconds - self._first.seconds)

    def _line(self, values: dict) -> None:
        self.text += json.dumps(values, separators=(",", ":")) + "\n"


def _between(before: Reading, now: Reading) -> list[float | None]:
    """Tokens/s of all traffic; acceptance length and draft efficiency, since the start and since `before`."""
    old, new = before.rates, now.rates
    seconds = now.seconds - before.seconds
    rounds, drafted = new.num_rounds - old.num_rounds, new.num_drafted - old.num_drafted
    accepted, generated = new.num_accepted - old.num_accepted, new.num_generated - old.num_generated
    length = None
    if rounds > 0:
        length = 1 + accepted / rounds if new.num_drafted else generated / rounds
    return [
        generated / seconds if seconds > 0 else None,
        new.acceptance_length,
        length,
        new.draft_efficiency,
        accepted / drafted if drafted > 0 else None,
    ]
