"""`python -m playground replay FILE`: a saved run told again, with the same record, no model and no torch."""

import argparse
import json
import sys
from pathlib import Path

from playground.events import Failed
from playground.report import Recorder, figure_lines
from playground.trace import load


def add_replay(commands) -> None:
    """Add the subparser."""
    replay = commands.add_parser("replay", help="tell a saved run again, without any model")
    replay.set_defaults(act=run_replay)
    replay.add_argument("file", type=Path, help="written by run --trace, or saved on the page")
    replay.add_argument("--json", type=Path, metavar="FILE", help="write the record of the run here; - for stdout")
    replay.add_argument("--quiet", action="store_true", help="print no text and no figures")


def run_replay(options: argparse.Namespace) -> int:
    """Replay; 0 done, 1 the run had failed, 2 no trace."""
    try:
        events = load(options.file)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    recorder = Recorder()
    for event in events:
        recorder(event)
        if isinstance(event, Failed):
            print(f"{event.message} {event.hint}".strip(), file=sys.stderr)
    report = recorder.report()
    if options.json is not None:
        write_report(report, options.json)
    if not options.quiet and str(options.json) != "-":
        print(report["text"])
        if report["num_rounds"]:
            print("\n".join(figure_lines(report)))
    return 1 if "error" in report else 0


def write_report(report: dict, path: Path) -> None:
    """Write a record as JSON; - is standard output."""
    text = json.dumps(report, ensure_ascii=False, indent=1)
    if str(path) == "-":
        print(text)
    else:
        path.write_text(text + "\n", encoding="utf-8")
