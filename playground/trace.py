"""A run as a file: a header line, then its events, one JSON line each. Replays anywhere, with no model.

A trace from a stranger is data: limited in size, checked line by line, never executed; whatever shows it
escapes it. Every problem is a ValueError with a sentence. Old versions stay readable: `_UPGRADES` says how
a line of an older version becomes one of the next. Needs no torch.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path

from playground.events import Event, Failed, Finished, Logits, Proposed, Started, Verified, from_json, to_json

VERSION = 2  # 1: without Logits
MAX_BYTES = 64_000_000
MAX_LINE_BYTES = 2_000_000
MAX_EVENTS = 50_000
_UPGRADES: dict[int, Callable[[str], str]] = {1: str}  # version → a line of it as a line of the next version


def to_text(events: Iterable[Event], created: str | None = None) -> str:
    """Write a run as the text of a trace. `created`: a date for the header, by default now."""
    header = {"trace": VERSION, "created": created or f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"}
    return "\n".join([json.dumps(header), *(to_json(event) for event in events)]) + "\n"


def save(events: Iterable[Event], path: Path) -> None:
    """Write a run to a file, whole or not at all. Raises OSError."""
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(to_text(events), encoding="utf-8")
    partial.replace(path)


def load(path: Path) -> list[Event]:
    """Read a trace file. Raises ValueError with a sentence when it is none."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"The trace is larger than {MAX_BYTES / 1e6:.0f} MB.")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name} cannot be read as UTF-8 text ({type(error).__name__}).") from error
    return from_text(text)


def from_text(text: str) -> list[Event]:
    """Read the text of a trace: its events, checked.

    Raises:
        ValueError: no trace, a newer version, too large, or a line that does not fit; the sentence says which.
    """
    if len(text) > MAX_BYTES:
        raise ValueError(f"The trace is larger than {MAX_BYTES / 1e6:.0f} MB.")
    lines = text.split("\n")
    version = _version(lines[0])
    events: list[Event] = []
    check = _Order()
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        if len(line) > MAX_LINE_BYTES or len(events) >= MAX_EVENTS:
            raise ValueError(f"Line {number} of the trace is too long, or the trace has too many lines.")
        try:
            event = from_json(_upgraded(line, version))
            check.take(event)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ValueError(f"Line {number} of the trace does not fit: {str(error)[:200]}") from error
        events.append(event)
    if not events:
        raise ValueError("The trace holds no run.")
    return events


def created_of(text: str) -> str:
    """When a trace was made, as its header says, or ""."""
    try:
        return str(json.loads(text.split("\n", 1)[0]).get("created", ""))[:40]
    except (ValueError, AttributeError):
        return ""


def _version(header: str) -> int:
    try:
        version = json.loads(header)["trace"] if len(header) < MAX_LINE_BYTES else None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError("This is no trace: its first line does not say so.") from error
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise ValueError("This is no trace: its first line gives no version.")
    if version > VERSION:
        raise ValueError(f"This trace has version {version}; this program reads versions up to {VERSION}.")
    return version


def _upgraded(line: str, version: int) -> str:
    for older in range(version, VERSION):
        line = _UPGRADES[older](line)
    return line


class _Order:
    """Events in an order that a run can have, with indices that point to something."""

    def __init__(self):
        self._started = self._over = False
        self._rounds = 0
        self._proposed: Proposed | None = None
        self._drafted: dict[int, int] = {}  # tokens, by round

    def take(self, event: Event) -> None:
        """Check the next event. Raises ValueError."""
        if self._over:
            raise ValueError("the run is over already.")
        if isinstance(event, Started):
            _refuse_if(self._started, "a second run begins.")
            self._started = True
        elif isinstance(event, Finished | Failed):
            self._over = True
        elif isinstance(event, Proposed):
            _refuse_if(event.round != self._rounds + 1 or not self._started, "rounds must count from 1.")
            for index, node in enumerate(event.nodes):
                _refuse_if(not -1 <= node.parent < index, "a drafted token follows one that is not there.")
            self._proposed = event
        elif isinstance(event, Verified):
            proposed = self._proposed
            _refuse_if(
                proposed is None or event.round != proposed.round, "a round was verified before it was proposed."
            )
            for test in event.tested:
                _refuse_if(not 0 <= test.node < len(proposed.nodes), "a token was tested that was never drafted.")
            self._drafted[event.round] = len(proposed.nodes)
            self._rounds, self._proposed = event.round, None
        elif isinstance(event, Logits):
            _check_logits(event, self._drafted.get(event.round, -1))


def _check_logits(event: Logits, num_drafted: int) -> None:
    # the pass may have been cut at an end token, and so have fewer rows
    fits = len(event.target) == len(event.draft) + 1 and len(event.draft) <= num_drafted
    _refuse_if(not fits, "logits do not belong to their round.")
    for row in (*event.target, *event.draft):
        named, groups = len(row.ids), len(row.rest_logits)
        fits = 0 < named == len(row.texts) == len(row.logits) and groups == len(row.rest_counts)
        _refuse_if(not fits or min(row.rest_counts, default=1) < 1, "a row of logits is incomplete.")
        _refuse_if(not all(map(isfinite, (*row.logits, *row.rest_logits))), "a logit is no number.")


def _refuse_if(wrong: bool, why: str) -> None:
    if wrong:
        raise ValueError(why)


def batches(events: list[Event], size: int = 64) -> Iterator[list[Event]]:
    """The events in parts, as a live run hands them out."""
    for start in range(0, len(events), size):
        yield events[start : start + size]
