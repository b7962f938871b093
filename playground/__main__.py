"""Headless commands on the same engine: run, replay, compare, load, train, models, bench, export, watch.

    python -m playground run --proposer ngram --gamma 5 --prompt "…" --json out.json
    python -m playground models --measure
    python -m playground bench --quick --json bench.json

Exit code 0: done; 1: the run failed (the sentence is on stderr); 2: the command line is wrong.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from playground.config import DEFAULTS
from playground.events import Event, Failed, Progress, Verified
from playground.lab.compare_command import add_compare
from playground.lab.export_command import add_export
from playground.lab.load_command import add_load
from playground.lab.watch_command import add_watch
from playground.replay import add_replay, write_report
from playground.report import Recorder, figure_lines
from playground.run_options import add_run_options, settings_of
from playground.speeds import Speed, Step
from playground.trace import save
from playground.training.command import add_train

os.environ.setdefault("GOMP_SPINCOUNT", "10000")  # as in app.py: the same engine, the same manners
CLEAR_LINE = "\r\033[K"


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, do what it says, return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m playground", description="Speculative decoding, headless.")
    commands = parser.add_subparsers(dest="command", required=True)
    _add_run(commands)
    _add_models(commands)
    _add_bench(commands)
    add_compare(commands)
    add_load(commands)
    add_replay(commands)
    add_train(commands)
    add_export(commands)
    add_watch(commands)
    options = parser.parse_args(arguments)
    return options.act(options)


def _add_run(commands) -> None:
    run = commands.add_parser("run", help="generate once and report")
    run.set_defaults(act=_run)
    add_run_options(run)
    run.add_argument("--json", type=Path, metavar="FILE", help="write the record of the run here; - for stdout")
    run.add_argument("--trace", type=Path, metavar="FILE", help="save the run, for replay and for the page")
    run.add_argument("--quiet", action="store_true", help="print no text and no figures")


def _add_models(commands) -> None:
    models = commands.add_parser("models", help="list what can be chosen here, and why the rest cannot")
    models.set_defaults(act=_models)
    models.add_argument("--measure", action="store_true", help="time plain decoding in every precision first")
    models.add_argument("--target", default=DEFAULTS["target"], help="the model whose tokens/s are shown or measured")
    models.add_argument("--json", action="store_true")


def _add_bench(commands) -> None:
    bench = commands.add_parser("bench", help="time the engine against transformers' generate, interleaved")
    bench.set_defaults(act=_bench)
    bench.add_argument("--quick", action="store_true", help="about two minutes: two tasks, fewer tokens")
    bench.add_argument("--page", action="store_true", help="what an open page costs instead (needs a browser)")
    bench.add_argument("--json", type=Path, metavar="FILE", help="write the figures here; - for stdout")
    bench.add_argument("--table", type=Path, metavar="FILE", help="write the printed table here")


def _run(options: argparse.Namespace) -> int:
    try:
        settings = settings_of(options)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    for path in (options.json, options.trace):
        if path and str(path) != "-" and not os.access(path.resolve().parent, os.W_OK):
            print(f"{path} cannot be written: its folder does not exist or is read-only.", file=sys.stderr)
            return 2
    from playground.session import Playground

    recorder, events, quiet = Recorder(), [], options.quiet or str(options.json) == "-"

    def emit(event: Event) -> None:
        recorder(event)
        events.append(event)
        _show(event, quiet)

    try:
        Playground().run(settings, emit, keep_logits=options.trace is not None)
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
    report = recorder.report()
    if options.json is not None:
        write_report(report, options.json)
    if options.trace is not None:
        save(events, options.trace)
    if not quiet and report["num_rounds"]:
        print("\n".join(figure_lines(report)))
    return 1 if "error" in report else 0


def _show(event: Event, quiet: bool) -> None:
    """Print text as it comes and progress on one line of a terminal's stderr."""
    if isinstance(event, Failed):
        print(f"{event.message} {event.hint}".strip(), file=sys.stderr)
    elif isinstance(event, Progress) and sys.stderr.isatty():
        share = "" if event.fraction is None else f" {event.fraction:.0%}"
        print(f"{CLEAR_LINE}{event.message}{share}", end="", file=sys.stderr, flush=True)
    elif isinstance(event, Verified):
        if event.round == 1 and sys.stderr.isatty():
            print(CLEAR_LINE, end="", file=sys.stderr, flush=True)
        if not quiet:
            print("".join(token.text for token in event.committed), end="", flush=True)


def _bench(options: argparse.Namespace) -> int:
    from playground.lab.bench import run_bench
    from playground.lab.bench_table import table

    def report(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    if options.page:
        from playground.ui.page_tax import measure

        figures = measure(2 if options.quick else 7, report)
        print(json.dumps(figures, indent=1))
        return 0
    figures = run_bench(options.quick, report)
    if not options.quick:
        figures |= _page_tax(report)
    if options.json is not None:
        write_report(figures, options.json)
    if options.table:
        options.table.write_text(table(figures) + "\n", encoding="utf-8")
    if str(options.json) != "-":
        print(table(figures))
    return 0


def _page_tax(report: Callable[[str], None]) -> dict:
    from playground.ui.page_tax import measure

    try:
        return measure(7, report)
    except RuntimeError as error:
        report(str(error))
        return {}


def _models(options: argparse.Namespace) -> int:
    from playground.choices import gamma_policies, proposer_options
    from playground.session import Playground

    playground = Playground()
    code = _measure(playground, options.target) if options.measure else 0
    chosen, speeds = playground.options(), playground.speeds(options.target)
    if options.json:
        known = {"speeds": {precision: asdict(speed) for precision, speed in speeds.items()}}
        known |= {"proposers": proposer_options(options.target), "gamma_policies": gamma_policies()}
        print(json.dumps(asdict(chosen) | known, ensure_ascii=False, indent=1))
        return code
    if not options.measure:
        print(f"proposers, for {options.target}:")
        for item in proposer_options(options.target):
            print(f"  · {item['id']:<14} {item['facts']}".rstrip())
        print("\ntargets and drafts:")
        _print_options([*chosen.targets, *(draft for draft in chosen.drafts if draft not in chosen.targets)])
        print()
    print(f"precisions, with the tokens/s of plain decoding of {options.target} measured here:")
    figures = {item.id: _speed_words(speeds.get(item.id)) if item.available else "" for item in chosen.precisions}
    _print_options(chosen.precisions, figures)
    if chosen.notice:
        print(f"\n{chosen.notice}")
    return code


def _print_options(items: list, figures: dict[str, str] | None = None) -> None:
    for item in items:
        line = f"  {'·' if item.available else '✗'} {item.id:<24} {item.label:<26}{(figures or {}).get(item.id, '')}"
        print(line.rstrip())
        for note in (item.detail, item.reason):
            if note:
                print(f"      {note}")


def _speed_words(speed: Speed | None) -> str:
    if speed is None:
        return "not measured here yet"
    threads = f"{speed.threads} thread{'s' if speed.threads != 1 else ''}"
    return f"{speed.tokens_per_second:7.1f}  {speed.date}, {threads}"


def _measure(playground, target: str) -> int:
    """Measure every precision, saying how far it is; return the exit code: 1 when none could be measured."""
    code = 1
    try:
        for event in (event for batch in playground.measure(target) for event in batch):
            if isinstance(event, Step):
                _show_step(event)
                code = 0 if event.stage == "measured" else code
            else:
                _show(event, True)
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
    return code


def _show_step(step: Step) -> None:
    if step.stage not in ("measured", "failed"):
        _show(Progress(step.stage, f"{step.precision}: {step.message}", step.fraction), True)
        return
    words = step.message or f"{step.tokens_per_second:.1f} tokens/s"
    print(f"{CLEAR_LINE if sys.stderr.isatty() else ''}{step.precision}: {words}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
