"""`python -m playground train`: text, features, training, evaluation, card, one after the other.

Everything on the way is kept under the cache folder (training/<target>/) and reused: a second recipe
needs no new text, an interrupted pass goes on. `--tokens` is the size of the text, `--minutes` the time
spent on training the drafter itself.
"""

import argparse
import os
import signal
import sys
from pathlib import Path

TARGET_TOKENS, TRAINING_MINUTES, NUM_DRAFT_IDS = 1_000_000, 60.0, 8192


def add_train(commands) -> None:
    """Add the subparser; torch is imported only when it runs."""
    train = commands.add_parser("train", help="train a drafter for a target from text it writes itself")
    train.set_defaults(act=run_train)
    train.add_argument("recipe", choices=("draft", "medusa", "eagle", "early-exit", "corpus"), help="corpus: text only")
    train.add_argument("--target", default="smollm2-135m", help="manifest id, local folder or Hub id")
    train.add_argument("--text", type=Path, action="append", default=[], help="own text to mix in, up to half")
    train.add_argument(
        "--corpus", type=Path, action="append", default=[], help="text this target wrote before (.jsonl)"
    )
    train.add_argument(
        "--tokens", type=int, default=TARGET_TOKENS, help=f"text to learn from, default {TARGET_TOKENS:,}"
    )
    train.add_argument("--minutes", type=float, default=TRAINING_MINUTES, help="training time, default 60")
    train.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    train.add_argument("--out", type=Path, help="folder for the weights, default models/<target>-<recipe>")
    train.add_argument("--seed", type=int, default=0)
    train.add_argument("--slots", type=int, default=128, help="conversations written at once")
    train.add_argument("--draft-ids", type=int, default=NUM_DRAFT_IDS, help="size of the draft vocabulary")
    train.add_argument("--layers", type=int, nargs="+", help="layers: features read, exits, or layers a draft keeps")
    train.add_argument("--learning-rate", type=float)
    train.add_argument("--batch-tokens", type=int)
    train.add_argument("--greedy-share", type=float, default=0.0, help="0..1: learn the likeliest token more")
    train.add_argument("--threads", type=int, help="default: measured")
    train.add_argument("--evaluation-prompts", type=int, help="held-out prompts per task; 0 = no evaluation")


def run_train(options: argparse.Namespace) -> int:
    """Train; 0 done, 1 failed or stopped, 2 wrong command line."""
    if options.tokens < 1 or options.minutes <= 0 or not 0 <= options.greedy_share <= 1:
        print("--tokens and --minutes must be positive, --greedy-share from 0 to 1.", file=sys.stderr)
        return 2
    # Decoding spins between its short passes; hours of training beside other work must not: on a busy
    # two-core machine waiting threads that sleep halve the processor time of a pass. Read when torch is imported.
    os.environ["GOMP_SPINCOUNT"] = "0"
    from playground.registry.errors import ModelError
    from playground.training.session import TrainingSession

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a job that is ended keeps its checkpoint too
    try:
        TrainingSession(options).run()
    except ModelError as error:
        print(f"{error.message} {error.hint}", file=sys.stderr)
        return 1
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped; what was done is kept. Go on with --resume.", file=sys.stderr)
        return 1
    return 0
