"""The options of the `run` command: names, ranges and help from `config`, and back to checked settings.

An option's destination is the name of the setting. Knows no models and no engine.
"""

import argparse
import sys
from dataclasses import fields
from pathlib import Path

from playground.config import DEFAULT_TREE, DEFAULTS, GAMMA_POLICIES, PRECISIONS, PROPOSERS, RANGES, RunSettings

CHOICES = {
    "proposer": PROPOSERS,
    "gamma_policy": GAMMA_POLICIES,
    "draft_precision": PRECISIONS,
    "quantized_precision": ("auto", *PRECISIONS),
}
SWITCHED_OFF = {
    "chat_template": "feed the prompt as plain text",
    "adapter": "early exit: read the state after the first layers raw",
    "guess_tree": "lookahead: draft the latest guess only, as a chain",
}


def add_run_options(run: argparse.ArgumentParser) -> None:
    """Add an option for every setting of a run."""
    run.add_argument("--prompt", help="the prompt; - reads standard input", required=True)
    run.add_argument("--system-prompt", default="")
    run.add_argument("--target", default=DEFAULTS["target"], help="manifest id, local folder or Hub id")
    run.add_argument("--precision", dest="target_precision", choices=PRECISIONS, default=DEFAULTS["target_precision"])
    run.add_argument("--draft", default="", help="draft model, for --proposer draft")
    for name, choices in CHOICES.items():
        run.add_argument(_flag(name), choices=choices, default=DEFAULTS[name])
    for name in DEFAULTS:
        if name in RANGES and name != "tree_nodes":
            allowed, kind = RANGES[name], int if RANGES[name].whole else float
            text = f"{allowed.low:g} to {allowed.high:g}, default {allowed.default:g}"
            run.add_argument(_flag(name), type=kind, default=kind(allowed.default), help=text)
    tree = RANGES["tree_nodes"]
    words = f"draft a tree, of so many nodes (medusa, eagle): up to {tree.high:g}, {DEFAULT_TREE} unless said otherwise"
    run.add_argument(
        "--tree", dest="tree_nodes", type=int, nargs="?", const=DEFAULT_TREE, default=0, metavar="N", help=words
    )
    for name, words in SWITCHED_OFF.items():
        run.add_argument(f"--no-{_flag(name)[2:]}", dest=name, action="store_false", help=words)
    words = "draft and quantized: always draft the likeliest token, whatever the temperature"
    run.add_argument("--greedy-draft", action="store_true", help=words)
    run.add_argument("--corpus", type=Path, metavar="FILE", help="text to look up in, for ngram and suffix")
    run.add_argument("--stop", action="append", default=[], help="a stop string; may be repeated")


def settings_of(options: argparse.Namespace) -> RunSettings:
    """Build checked settings from parsed options.

    Raises:
        ValueError: a value out of range, or a corpus that cannot be read, in a sentence.
    """
    given = vars(options)
    values = {item.name: given[item.name] for item in fields(RunSettings) if item.name in given}
    return RunSettings(
        **values
        | {
            "prompt": sys.stdin.read() if options.prompt == "-" else options.prompt,
            "stop_strings": tuple(options.stop),
            "corpus": _read(options.corpus) if options.corpus else "",
        }
    )


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"The corpus {path} cannot be read as UTF-8 text ({type(error).__name__}).") from error
