"""`python -m playground.ui.record`: makes the shipped recordings on the bundled target, from the lessons' settings.

A recording says on what machine it was made. Run it on a quiet one: the speedups in it are measured.
"""

import sys
from pathlib import Path

from playground import trace
from playground.config import RunSettings
from playground.events import Event, Failed
from playground.presets import preset, preset_settings
from playground.ui.lessons import LESSONS
from playground.ui.recordings import FOLDER

FIRST = "1-editing-with-n-gram-lookup.jsonl"  # what a visitor sees before any run: the edit preset


def wanted() -> dict[str, dict]:
    """The settings of each recording, by file name; lessons that share one are in its first user's terms."""
    edit = preset("edit")
    found = {FIRST: preset_settings(edit) | {"prompt": edit.prompt}}
    for lesson in LESSONS:
        if lesson.recording:
            found.setdefault(lesson.recording, lesson.settings)
    return found


def main(folder: Path = FOLDER) -> int:
    """Record every run; 1 when one failed."""
    from playground.session import Playground

    playground = Playground()
    for name, settings in wanted().items():
        events: list[Event] = []
        playground.run(RunSettings(**settings), events.append)
        if isinstance(events[-1], Failed):
            print(f"{name}: {events[-1].message}", file=sys.stderr)
            return 1
        trace.save(events, folder / name)
        print(f"{name}: {(folder / name).stat().st_size / 1000:.0f} kB", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
