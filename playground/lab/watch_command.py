"""`python -m playground watch`: stream from a running server and read its speculative counters before and after.

Without --prompt only the counters are followed, for --seconds or until it is interrupted.
"""

import argparse
import os
import sys
import threading
from pathlib import Path

from playground.lab.guarded_http import WatchError
from playground.lab.watch import MAX_SECONDS, Piece, Question, Watch
from playground.replay import write_report

DEFAULT_SECONDS = 60.0


def add_watch(commands) -> None:
    """Add the subparser; no torch."""
    parser = commands.add_parser("watch", help="watch a running vLLM, SGLang or llama.cpp server")
    parser.set_defaults(act=run_watch)
    parser.add_argument("--url", required=True, help="e.g. http://127.0.0.1:8000")
    parser.add_argument("--prompt", default="", help="what to ask; - reads standard input; none: only the counters")
    parser.add_argument("--model", default="", help="default: the first the server offers")
    parser.add_argument("--key-env", metavar="NAME", help="environment variable that holds the server's API key")
    parser.add_argument("--no-chat", dest="chat", action="store_false", help="/v1/completions, without chat template")
    parser.add_argument("--max-tokens", type=int, default=160)
    parser.add_argument("--temperature", type=float, default=0.0)
    words = f"at most so long, up to {MAX_SECONDS:g}, default {DEFAULT_SECONDS:g}"
    parser.add_argument("--seconds", type=float, default=DEFAULT_SECONDS, help=words)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the record here; - for stdout")


def run_watch(options: argparse.Namespace) -> int:
    """Watch; 0 done, 1 the server could not be watched, 2 wrong command line."""
    try:
        prompt = sys.stdin.read() if options.prompt == "-" else options.prompt
        names = ("url", "model", "chat", "max_tokens", "temperature", "seconds")
        question = Question(prompt=prompt, **{name: getattr(options, name) for name in names})
        watch = Watch(question, os.environ.get(options.key_env or "", ""))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if options.json and str(options.json) != "-" and not os.access(options.json.resolve().parent, os.W_OK):
        print(f"{options.json} cannot be written: its folder does not exist or is read-only.", file=sys.stderr)
        return 2
    quiet, code = str(options.json) == "-", 0
    try:
        for item in watch.run(threading.Event()):
            if isinstance(item, Piece) and not quiet:
                print(item.text, end="", flush=True)
    except WatchError as error:
        print(error, file=sys.stderr)
        code = 1
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
    report = watch.report()
    if options.json is not None:
        write_report(report, options.json)
    if not quiet and not code:
        print("\n" + "\n".join(figure_lines(report)))
    return code


def figure_lines(report: dict) -> list[str]:
    """The figures of a record in words, for a terminal."""

    def shown(values: dict, name: str, form: str) -> str:
        return "—" if values.get(name) is None else format(values[name], form)

    lines = [report["notice"]] if report["notice"] else []
    speed, first = shown(report, "tokens_per_second", ".1f"), shown(report, "time_to_first_s", ".2f")
    lines.append(f"{speed} tokens/s, first piece after {first} s, {shown(report, 'num_tokens', 'd')} tokens")
    for title, values in (("this request", report["request"]), ("the server meanwhile", report["server"])):
        if values:
            length, kept = shown(values, "acceptance_length", ".2f"), shown(values, "draft_efficiency", ".3f")
            alpha = f", alpha {values['alpha']:.3f}" if values.get("alpha") is not None else ""
            rounds = shown(values, "num_rounds", "d")
            lines.append(f"{title}: acceptance length {length}, draft efficiency {kept}{alpha}, {rounds} rounds")
    return lines
