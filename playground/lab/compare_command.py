"""`python -m playground compare`: sweep proposers over prompts, print the table, say what to choose.

Results are kept prompt by prompt beside the cache, so a stopped sweep goes on with --resume.
"""

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from playground.config import DEFAULTS, PRECISIONS, RunSettings
from playground.lab.compare_arms import STANDING, TASKS, arms_of, held_out, read_prompts

PER_TASK, MAX_NEW_TOKENS = 5, 64


def add_compare(commands) -> None:
    """Add the subparser; torch is imported only when it runs."""
    compare = commands.add_parser("compare", help="sweep proposers, gammas and tasks against plain decoding")
    compare.set_defaults(act=run_compare)
    compare.add_argument("--all", action="store_true", help="the standing list of proposers, as in README")
    compare.add_argument("--proposer", action="append", default=[], help="may be repeated; eagle:tree drafts a tree")
    compare.add_argument("--gamma", action="append", type=int, default=[], help="may be repeated, default 4")
    compare.add_argument("--task", action="append", default=[], help=f"of the held-out prompts: {', '.join(TASKS)}, …")
    compare.add_argument("--file", type=Path, help="own prompts: .txt, or .jsonl with `prompt` or `turns`")
    compare.add_argument("--prompts", type=int, default=PER_TASK, help="per task, default 5")
    compare.add_argument("--temperature", action="append", type=float, default=[], help="may be repeated, default 0")
    compare.add_argument("--max-new-tokens", type=int, default=MAX_NEW_TOKENS)
    compare.add_argument("--target", default=DEFAULTS["target"])
    compare.add_argument("--precision", choices=PRECISIONS, default=DEFAULTS["target_precision"])
    compare.add_argument("--resume", action="store_true", help="go on with the sweep that was stopped")
    compare.add_argument("--json", type=Path, metavar="FILE", help="write results and figures here")
    compare.add_argument("--csv", type=Path, metavar="FILE", help="write one row per arm and prompt here")
    compare.add_argument("--table", type=Path, metavar="FILE", help="write the printed table here")


def run_compare(options: argparse.Namespace) -> int:
    """Compare; 0 done, 1 failed or nothing measured, 2 wrong command line."""
    try:
        arms = list(STANDING) if options.all else []
        arms += arms_of(options.proposer, options.gamma or [4])
        if not arms:
            raise ValueError("Nothing to compare: give --all or --proposer.")
        if options.prompts < 1:
            raise ValueError("--prompts must be at least 1.")
        prompts = read_prompts(options.file) if options.file else held_out(options.task or TASKS, options.prompts)
        given = {"target": options.target, "target_precision": options.precision}
        bases = [
            RunSettings("-", temperature=temperature, max_new_tokens=options.max_new_tokens, **given)
            for temperature in options.temperature or [0.0]
        ]
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    return _sweep(options, arms, prompts, bases)


def _sweep(options: argparse.Namespace, arms: list, prompts: dict, bases: list[RunSettings]) -> int:
    from playground.lab.compare_kept import Kept
    from playground.lab.compare_table import summaries
    from playground.registry.errors import ModelError

    kept = Kept.beside_cache(options, resume=options.resume)
    try:
        _measure(kept, arms, prompts, bases)
    except KeyboardInterrupt:
        print("\nStopped; what was measured is kept. Go on with --resume.", file=sys.stderr)
    except ModelError as error:
        print(f"{error.message} {error.hint}", file=sys.stderr)
        return 1
    if not kept.results:
        print("Nothing was measured.", file=sys.stderr)
        return 1
    _write(options, kept, summaries(kept.results))
    return 0


def _measure(kept, arms: list, prompts: dict, bases: list[RunSettings]) -> None:
    from playground.lab.compare import Skipped, compare
    from playground.models import ModelStore
    from playground.training.session import Line

    show, store = Line(), ModelStore()

    def report(stage: str, message: str, fraction: float | None) -> None:
        show(f"{message}{'' if fraction is None else f' ({fraction:.0%})'}")

    for base in bases:
        for item in compare(store, base, arms, prompts, kept.done(base), report):
            if isinstance(item, Skipped):
                show(f"Left out: {item.arm.name}: {item.reason}", end=True)
            else:
                kept.add(item)
                show(f"T {item.temperature:g} {item.task}: {item.arm} {item.speedup:.2f}x, {len(kept.results)} done")


def _write(options: argparse.Namespace, kept, found: list) -> None:
    from playground import registry
    from playground.lab.compare_table import markdown, recommendation, to_csv

    text = f"{markdown(found)}\n{recommendation(found)}"
    print(text)
    if options.table:
        options.table.write_text(text + "\n", encoding="utf-8")
    if options.csv:
        options.csv.write_text(to_csv(kept.results), encoding="utf-8")
    if options.json:
        record = {"environment": registry.environment(), "recommendation": recommendation(found)}
        record |= {"summaries": [asdict(item) for item in found], "results": [asdict(r) for r in kept.results]}
        options.json.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
