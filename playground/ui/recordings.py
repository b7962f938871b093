"""Recorded runs for the view: from a trace to the log that a live run would have written, and what is shipped.

Knows traces and logs, no components and no models.
"""

from functools import cache
from pathlib import Path

from playground import trace
from playground.events import Event, Started
from playground.ui.render import RunLog
from playground.ui.text_proposers import PROPOSER_LABELS
from playground.ui.text_recordings import OF_MODEL, RECORDING, RECORDING_OF
from playground.ui.view import STATIC

FOLDER = STATIC / "traces"


def log_of(events: list[Event], created: str, run_id: str) -> str:
    """The log of a recorded run, which says that it is one."""
    log = RunLog(run_id)
    log.note_recording(described(events, created))
    log.add(events)
    return log.stop()


def described(events: list[Event], created: str) -> str:
    """What a recording is of: proposer, model, machine and date, as far as it says."""
    started = next((event for event in events if isinstance(event, Started)), None)
    if started is None:
        return RECORDING
    device = started.environment.get("device_name") or started.environment.get("device") or ""
    parts = [
        RECORDING_OF.format(proposer=PROPOSER_LABELS.get(started.proposer, started.proposer)),
        OF_MODEL.format(
            target=started.environment.get("target", ""), precision=started.environment.get("target_precision", "")
        ),
        str(device),
        created[:10],
    ]
    return " · ".join(part.strip() for part in parts if part.strip())


def shipped() -> list[tuple[str, str]]:
    """The recordings that come with the program: (title, file name), in the order of their names."""
    return [(title_of(path), path.name) for path in sorted(FOLDER.glob("*.jsonl"))]


def title_of(path: Path) -> str:
    """A file's name as words: "2-story-quantized.jsonl" → "story quantized"."""
    words = path.stem.split("-")
    return " ".join(words[1:] if words[0].isdigit() else words)


@cache
def shipped_recording(name: str) -> tuple[str, list[Event]]:
    """The log and the events of a shipped recording. Raises ValueError for a name that is not shipped."""
    if name not in {file for _, file in shipped()}:
        raise ValueError("There is no such recording.")
    return _opened(FOLDER / name, f"recording-{Path(name).stem}")


def first_recording() -> tuple[str, list[Event]]:
    """What a visitor sees before any run: log and events of the first shipped recording, or nothing."""
    found = shipped()
    return shipped_recording(found[0][1]) if found else ("", [])


def opened_recording(path: str, run_id: str) -> tuple[str, list[Event]]:
    """Log and events of a trace that a person opened. Raises ValueError with a sentence when it is none."""
    if Path(path).stat().st_size > trace.MAX_BYTES:
        raise ValueError(f"The trace is larger than {trace.MAX_BYTES / 1e6:.0f} MB.")
    return _opened(Path(path), run_id)


def _opened(path: Path, run_id: str) -> tuple[str, list[Event]]:
    events = trace.load(path)
    return log_of(events, trace.created_of(path.read_text(encoding="utf-8")), run_id), events
