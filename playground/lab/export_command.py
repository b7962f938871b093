"""`python -m playground export`: the setting of a run as a snippet for another engine, on standard output.

Takes the options of `run`. What is not carried over goes to standard error as notes.
"""

import argparse
import sys

from playground.lab.export import ENGINES, export
from playground.run_options import add_run_options, settings_of


def add_export(commands) -> None:
    """Add the subparser; no torch, no network."""
    parser = commands.add_parser("export", help="print the setting for transformers, vLLM, SGLang, …")
    parser.set_defaults(act=run_export)
    parser.add_argument("--engine", choices=tuple(ENGINES), required=True)
    add_run_options(parser)


def run_export(options: argparse.Namespace) -> int:
    """Print; 0 done, 1 the engine does not support it, 2 wrong command line."""
    try:
        settings = settings_of(options)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    found = export(settings, options.engine)
    if found.reason:
        print(found.reason, file=sys.stderr)
        return 1
    print(found.text, end="")
    for note in (*found.notes, f"Field names: {found.source}."):
        print(note, file=sys.stderr)
    return 0
