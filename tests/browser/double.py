"""A Playground without models: the same methods, events from a script, seeded and timed.

The prompt chooses the script by its first word, e.g. "#markup <b>x</b>"; any other prompt gives seeded
words. `PYTHONPATH=.:tests python -m browser.double 7860` shows the page without weights.
"""

import random
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from browser.double_labs import LabsDouble
from browser.double_speeds import SpeedsDouble
from browser.double_trees import tree_rounds

from playground.config import RunSettings
from playground.events import (
    Calibrated,
    Candidate,
    Committed,
    Event,
    Failed,
    Finished,
    Node,
    Position,
    Prefilled,
    Progress,
    Proposed,
    Started,
    Tested,
    Verified,
)
from playground.turns import Turns

WORDS = ["the", "river", "moves", "under", "a", "low", "bridge", "and", "nobody", "hears", "it", "before", "rain"]
HALVES = [("", "⟨F0 9F⟩"), ("", "⟨91 A9⟩")]
EMOJI = [*HALVES, ("👩", ""), ("", "⟨E2 80 8D⟩"), ("\u200d🚀", ""), (" 漢字", ""), (" e\u0301", "")]
CODE = "def  f(x):\n\n\tif x < 1:\n        return  {'a': [1, 2]}\n\n    # end\r\n\treturn x\n"
BASE_STEP_MS = 20.0


@dataclass
class Option:
    """One thing to choose."""

    id: str
    label: str
    available: bool = True
    reason: str = ""
    detail: str = ""


@dataclass
class Options:
    """What can be chosen here."""

    targets: list[Option]
    drafts: list[Option]
    precisions: list[Option]
    quantized: list[Option]
    environment: dict = field(default_factory=dict)
    notice: str = ""
    suggested_target: str = ""


def pieces_of(text: str) -> list[tuple[str, str]]:
    """Cut text into token-like pieces; each is (text, label)."""
    return [(piece, "") for piece in re.findall(r"\s?\w+|[ ]+|\n|.", text, re.DOTALL)]


class Double(SpeedsDouble, LabsDouble):
    """Plays a scripted run at a set pace; counts its runs and how many go on at once."""

    def __init__(self, round_s: float = 0.01, load_s: float = 0.0):
        super().__init__()
        self.round_s = round_s
        self.load_s = load_s
        self.born = time.monotonic()
        self.num_runs = 0
        self.running = 0
        self.most_running = 0
        self.settings: list[RunSettings] = []
        self.ended: list[float] = []  # when each script had nothing more to say
        self._lock = threading.Lock()
        self._turns = Turns()

    def start_loading(self) -> None:
        """Begin to pretend to load."""
        self.born = time.monotonic()

    def loading(self) -> Progress | Failed | None:
        """Say how far loading is."""
        fraction = (time.monotonic() - self.born) / self.load_s if self.load_s else 1.0
        return None if fraction >= 1 else Progress("loading", "Loading SmolLM2-135M-Instruct", fraction)

    def options(self) -> Options:
        """Return a few choices, one of them not available."""
        precisions = [Option(name, name) for name in ("float32", "bfloat16", "int8")]
        precisions.append(Option("nf4", "nf4", False, "needs a CUDA device"))
        targets = [
            Option("smollm2-135m", "SmolLM2-135M-Instruct", detail="135 M parameters, Apache 2.0, 0.27 GB."),
            Option("qwen2.5-1.5b", "Qwen2.5-1.5B-Instruct", False, "The Hub is out of reach here."),
        ]
        drafts = self.drafts_for("smollm2-135m")
        environment = {"device": "cpu", "threads": 2}
        return Options(targets, drafts, precisions, [Option("auto", "Fastest here"), *precisions], environment)

    def facts(self, proposer: str, target: str, draft: str = "", precision: str = "auto") -> str:
        return f"Facts about {proposer}."

    def drafts_for(self, target_id: str) -> list[Option]:
        """Return the drafts that fit."""
        return [Option("tiny", "Tiny draft")] if target_id == "smollm2-135m" else []

    def stream(
        self, settings: RunSettings, wait_s: float = 1 / 12, stop: threading.Event | None = None
    ) -> Iterator[list[Event]]:
        """Yield batches of events, as the real one does, in turn."""
        for batch in self._in_turn(settings, wait_s):
            if stop is not None and stop.is_set():
                return
            yield batch

    def _in_turn(self, settings: RunSettings, wait_s: float) -> Iterator[list[Event]]:
        ticket = self._turns.join()
        try:
            while ahead := ticket.wait(wait_s):
                yield [Progress("waiting", f"Waiting: place {ahead} of {len(self._turns) - 1} in the queue")]
            yield from self._counted(settings, wait_s)
        finally:
            ticket.leave()

    def _counted(self, settings: RunSettings, wait_s: float) -> Iterator[list[Event]]:
        with self._lock:
            self.num_runs += 1
            self.running += 1
            self.most_running = max(self.most_running, self.running)
            self.settings.append(settings)
        try:
            while (progress := self.loading()) is not None:
                yield [progress]
                time.sleep(wait_s)
            yield from self._batches(settings, wait_s)
        finally:
            with self._lock:
                self.running -= 1

    def _batches(self, settings: RunSettings, wait_s: float) -> Iterator[list[Event]]:
        waiting: list[Event] = []
        due = sent = time.monotonic()
        round_s = self.round_s * (5 if settings.prompt.startswith("#slow") else 1)
        for event in script(settings):
            waiting.append(event)
            if isinstance(event, Verified):
                due += round_s
            while time.monotonic() < due or time.monotonic() - sent >= wait_s:
                time.sleep(max(0.0, min(due, sent + wait_s) - time.monotonic()))
                if time.monotonic() - sent >= wait_s:
                    yield waiting
                    waiting, sent = [], time.monotonic()
        self.ended.append(time.monotonic())
        yield waiting


def script(settings: RunSettings) -> Iterator[Event]:
    """Yield the events of the run that the prompt asks for."""
    name, _, rest = settings.prompt.partition(" ")
    pieces = {
        "#emoji": EMOJI * 3,
        "#code": pieces_of(CODE),
        "#markup": pieces_of(rest),
        "#empty": [],
    }.get(name)
    rng = random.Random(f"{settings.seed} {settings.prompt}")
    if pieces is None:
        pieces = [(" " + rng.choice(WORDS), "") for _ in range(settings.max_new_tokens)]
    if name == "#list":
        pieces = [(text, "") for i in range(40) for text in (str(i), "\n")]
    yield Started("double", settings.to_dict(), (1, 2, 3), "…", settings.proposer, settings.gamma, {"device": "cpu"})
    yield Progress("prefill", "Reading the prompt", None)
    yield Prefilled(len(settings.prompt.split()) + 1, 0, 42.0)
    if name == "#unloadable":
        yield Failed("The model 'nobody/nothing' was not found on the Hub.", "Check the id, or choose the default.")
        return
    yield Progress("calibrating", "Measuring plain decoding", 0.5)
    yield Calibrated(1000 / BASE_STEP_MS, BASE_STEP_MS, 16, False)
    fail_at = 3 if name == "#fail" else 0
    if name == "#raise":
        raise RuntimeError("secret path /nowhere")
    if name == "#trees":
        yield from tree_rounds()
        yield Finished("length", "", ())
        return
    yield from rounds(settings, pieces, rng, fail_at)


def rounds(settings: RunSettings, pieces: list[tuple[str, str]], rng: random.Random, fail_at: int) -> Iterator[Event]:
    """Yield proposal and verdict of each round, then the end."""
    made: list[Committed] = []
    number = 0
    while len(made) < len(pieces):
        number += 1
        if number == fail_at:
            yield Failed("The device ran out of memory in round 3.", "Choose a smaller model or a lower precision.")
            return
        todo = pieces[len(made) : len(made) + settings.gamma + 1]
        size = min(settings.gamma, len(todo)) if settings.proposer != "none" and rng.random() < 0.93 else 0
        kept = next((i for i in range(size) if rng.random() > 0.82), size)
        drafted = proposal(number, todo[:size], kept, rng)
        yield drafted
        verdict = verified(number, todo, size, kept, rng, 40 + len(made))
        made.extend(verdict.committed)
        yield verdict
    text = "".join(token.text for token in made)
    yield Finished("end_token" if len(pieces) % 2 else "length", text, tuple(token.id for token in made))


def proposal(number: int, todo: list[tuple[str, str]], kept: int, rng: random.Random) -> Proposed:
    """Draft the true pieces up to `kept`, then others."""
    nodes = []
    for i, (text, label) in enumerate(todo):
        shown = (text or label) if i < kept else " " + rng.choice(WORDS)
        if i == kept and rng.random() < 0.15:
            shown = "⟨E2 80⟩"
        nodes.append(Node(rng.randrange(49152), shown, i - 1, round(rng.uniform(0.2, 0.99), 3)))
    return Proposed(number, tuple(nodes), 0.4 + 0.1 * len(nodes))


def verified(
    number: int, todo: list[tuple[str, str]], size: int, kept: int, rng: random.Random, context: int
) -> Verified:
    """Accept `kept` pieces, refuse the next, add the target's own."""
    tested = [Tested(i, i, rng.uniform(0.6, 1), rng.uniform(0.3, 0.9), rng.random(), True, 0.8) for i in range(kept)]
    if kept < size:
        tested.append(Tested(kept, kept, rng.uniform(0, 0.1), 0.9, rng.uniform(0.3, 1), False, 0.21))
    final = "plain" if size == 0 else "residual" if kept < size else "bonus"
    committed = [Committed(i, "accepted", text, label, 0.9) for i, (text, label) in enumerate(todo[:kept])]
    if kept < len(todo):
        committed.append(Committed(99, final, *todo[kept], 0.7))
    tops = tuple(position(rng, size > 0, i == kept and kept < size) for i in range(len(tested) + (kept == size)))
    return Verified(
        number, tuple(tested), tuple(committed), final, tops, 21 + rng.uniform(-2, 6), rng.uniform(0.1, 0.6), context
    )


def position(rng: random.Random, drafted: bool, refused: bool) -> Position:
    """Five likely words for each distribution that exists here."""

    def five() -> tuple[Candidate, ...]:
        left, row = 1.0, []
        for i in range(5):
            share = left * rng.uniform(0.4, 0.8)
            left -= share
            row.append(Candidate(i, " " + rng.choice(WORDS), share, 3.0 - i))
        return tuple(row)

    return Position(five(), five() if drafted else (), five() if refused else ())


def main() -> None:
    """Serve the page with the double."""
    import sys

    from playground.ui.layout import build, launch_options

    port, load_s = int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
    build(Double(round_s=0.06, load_s=load_s)).launch(server_port=port, **launch_options())


if __name__ == "__main__":
    main()
