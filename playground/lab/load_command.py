"""`python -m playground load`: the cost of a pass by width, and what speculation is worth to B sequences at once."""

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from playground.config import DEFAULTS, PRECISIONS, RunSettings
from playground.lab.compare_arms import TASKS, held_out, read_prompts
from playground.lab.load_plan import BATCHABLE, BATCHES, CYCLES, LENGTH, LoadPlan, check_load

CONTEXTS, CURVE_CYCLES, PER_TASK = (128, 512, 2048), 5, 5


def add_load(commands) -> None:
    """Add the subparser; torch is imported only when it runs."""
    load = commands.add_parser("load", help="cost of a target pass by width; decode B sequences at once")
    load.set_defaults(act=run_load)
    load.add_argument("--batch", type=int, nargs="+", default=list(BATCHES), help="sequences at once, several sizes")
    load.add_argument("--gamma", type=int, default=4, help="drafted tokens per sequence and round, default 4")
    load.add_argument("--proposer", default="ngram", help=f"{', '.join(BATCHABLE)}; default ngram")
    load.add_argument("--precision", nargs="+", choices=PRECISIONS, default=[DEFAULTS["target_precision"]])
    load.add_argument("--context", type=int, nargs="+", default=list(CONTEXTS), help="tokens behind which passes run")
    load.add_argument("--alpha", type=float, default=0.7, help="of the expected speedup, default 0.7")
    load.add_argument("--c", type=float, default=0.0, help="draft step in plain steps, of the expected speedup")
    load.add_argument("--curve-only", action="store_true", help="measure the cost curve and decode nothing")
    load.add_argument("--target", default=DEFAULTS["target"])
    load.add_argument("--draft", default="", help="the draft model, for --proposer draft")
    load.add_argument("--temperature", type=float, default=0.0)
    load.add_argument("--length", type=int, default=LENGTH, help=f"new tokens of each sequence, default {LENGTH}")
    load.add_argument("--cycles", type=int, default=CYCLES, help="speculative runs per batch size, default 1")
    load.add_argument("--curve-cycles", type=int, default=CURVE_CYCLES, help="times each pass is measured, default 5")
    load.add_argument("--task", action="append", default=[], help=f"of the held-out prompts: {', '.join(TASKS)}")
    load.add_argument("--file", type=Path, help="own prompts: .txt, or .jsonl with `prompt` or `turns`")
    load.add_argument("--json", type=Path, metavar="FILE", help="write curves and load here")
    load.add_argument("--table", type=Path, metavar="FILE", help="write the printed tables here")


def prompts_in_turn(by_task: dict[str, list[str]]) -> tuple[str, ...]:
    """The prompts with tasks in turn: the first of each, the second of each, …"""
    longest = max(map(len, by_task.values()), default=0)
    return tuple(texts[place] for place in range(longest) for texts in by_task.values() if place < len(texts))


def run_load(options: argparse.Namespace) -> int:
    """Measure; 0 done, 1 failed or nothing measured, 2 wrong command line."""
    try:
        prompts = read_prompts(options.file) if options.file else held_out(options.task or TASKS, PER_TASK)
        plan = LoadPlan(tuple(options.batch), prompts_in_turn(prompts), options.length, options.cycles)
        check_load(options.proposer, options.gamma)
        if min(options.context) < 1 or options.curve_cycles < 1:
            raise ValueError("--context and --curve-cycles must be at least 1.")
        if not 0 <= options.alpha <= 1 or not options.c >= 0:
            raise ValueError("--alpha must be from 0 to 1, --c at least 0.")
        base = RunSettings(
            "-",
            target=options.target,
            target_precision=options.precision[0],
            proposer=options.proposer,
            draft=options.draft,
            gamma=options.gamma,
            temperature=options.temperature,
        )
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    return _measure(options, base, None if options.curve_only else plan)


def _measure(options: argparse.Namespace, base: RunSettings, plan: LoadPlan | None) -> int:
    from playground.lab.cost_curve import LeftOut
    from playground.lab.load import curves_and_load
    from playground.lab.load_plan import LoadResult
    from playground.models import ModelStore
    from playground.registry.errors import ModelError
    from playground.training.session import Line

    show, curves, results = Line(), {}, []

    def report(stage: str, message: str, fraction: float | None) -> None:
        show(f"{message}{'' if fraction is None else f' ({fraction:.0%})'}")

    wanted = options.precision, options.context, options.curve_cycles
    try:
        for item in curves_and_load(ModelStore(), base, *wanted, plan, report):
            if isinstance(item, LeftOut):
                show(f"Left out: {item.what}: {item.reason}", end=True)
            elif isinstance(item, LoadResult):
                results.append(item)
                show(f"B = {item.batch}: {item.speedup:.2f}x measured, {item.predicted:.2f}x predicted", end=True)
            else:
                curves[item.precision, item.context] = item
    except KeyboardInterrupt:
        print("\nStopped; what was measured is below.", file=sys.stderr)
    except (ModelError, ValueError) as error:
        print(f"{error.message} {error.hint}" if isinstance(error, ModelError) else error, file=sys.stderr)
        return 1
    if not curves:
        print("Nothing was measured.", file=sys.stderr)
        return 1
    _write(options, base, list(curves.values()), results)
    return 0


def _write(options: argparse.Namespace, base: RunSettings, curves: list, results: list) -> None:
    from playground import registry
    from playground.lab.load_table import Assumed, expected_points, markdown

    assumed = Assumed(options.alpha, options.gamma, options.c)
    text = markdown(curves, results, assumed)
    print(text)
    if options.table:
        options.table.write_text(text, encoding="utf-8")
    if options.json:
        asked = {"target": base.target, "proposer": base.proposer, "gamma": base.gamma, "temperature": base.temperature}
        record = {"environment": registry.environment(), "asked": asked}
        record["assumed"] = asdict(assumed)
        record["curves"] = [
            asdict(curve) | {"bend": curve.bend, "expected": expected_points(curves, curve, assumed)}
            for curve in curves
        ]
        record["load"] = [result.to_dict() for result in results]
        options.json.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
