"""From settings to events: text in, models, lock, errors as sentences. What the page and the command line call.

`Playground.run` pushes the events of one run; `stream` does the same from a worker thread and hands
them out in batches a few times a second. One run at a time uses the models. The only place that
turns exceptions into sentences for people. Knows no gradio.
"""

import logging
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing

from playground.config import DEFAULT_TARGET, DEFAULTS, RunSettings
from playground.events import Event, Failed, Finished, Progress, Started
from playground.turns import Turns

log = logging.getLogger(__name__)
Emit = Callable[[Event], None]
OUT_OF_MEMORY = Failed("There is not enough memory for this run.", "Choose a smaller model or a lower precision.")
WAIT_S = 0.2  # how often a waiting run says so
HINT_UNEXPECTED = "The page is ready for another run. If it happens again, the server's log has the details."


class RunStopped(Exception):
    """Raised inside a run by an `emit` whose consumer has gone."""


class Playground:
    """One per process: the models in memory, and turns that give them to one run at a time."""

    def __init__(self):
        self._turns = Turns()
        # One thread does all the model work for good: a new thread starts with empty kernel caches and a
        # thread team of its own, and decodes about a fifth slower.
        self._closing = threading.Event()
        self._engine = ThreadPoolExecutor(1, thread_name_prefix="engine")
        self._store = None  # models.ModelStore, made by the first thread that needs torch
        self._baseline = None
        self._loading: Progress | Failed | None = Progress("loading", "Starting", None)

    def start_loading(self) -> None:
        """Load the default target in the background, so that the first run need not wait for it."""
        threading.Thread(target=self._load_default, name="loading", daemon=True).start()

    def loading(self) -> Progress | Failed | None:
        """How far `start_loading` is; None once the default target is ready."""
        return self._loading

    def _load_default(self) -> None:
        def report(stage: str, message: str, fraction: float | None) -> None:
            if self._closing.is_set():
                raise RunStopped
            self._loading = Progress(stage, message, fraction)

        ticket = self._turns.join()

        def load(_: Emit) -> None:
            while ticket.wait(WAIT_S):
                pass
            arguments = (DEFAULT_TARGET, DEFAULTS["target_precision"], report)
            self._engine.submit(lambda: self._models().target(*arguments)).result()

        try:
            events = _collect(lambda emit: _guarded(load, emit))
            failures = [event for event in events if isinstance(event, Failed)]
            self._loading = failures[0] if failures else None
        except RunStopped:
            return
        finally:
            ticket.leave()

    def close(self) -> None:
        """End what is going on at its next event, so that the process can end."""
        self._closing.set()

    def run(self, settings: RunSettings, emit: Emit) -> None:
        """Do one run, pushing its events to `emit`; errors arrive as a Failed event.

        An exception raised by `emit` stops the run: the current pass ends, the models are free again.
        """
        _guarded(lambda checked: self._run(settings, checked), emit)

    def stream(self, settings: RunSettings, wait_s: float = 1 / 12) -> Iterator[list[Event]]:
        """Run in a worker thread and yield its events in batches, [] when nothing is new.

        Closing the generator stops the run.
        """
        stop, over, events = threading.Event(), threading.Event(), deque()

        def emit(event: Event) -> None:
            if stop.is_set():
                raise RunStopped
            events.append(event)

        def work() -> None:
            try:
                self.run(settings, emit)
            except RunStopped:
                pass
            finally:
                over.set()

        worker = threading.Thread(target=work, name="run", daemon=True)
        worker.start()
        try:
            last = False
            while not last:
                last = over.wait(wait_s)  # not woken by each event: that would interrupt the engine
                yield [events.popleft() for _ in range(len(events))]
        finally:
            stop.set()  # the worker ends at its next event; waiting for it here would hold up the server

    def _models(self):
        if self._store is None:
            from playground.baseline import Baseline
            from playground.models import ModelStore

            self._store, self._baseline = ModelStore(), Baseline()
        return self._store

    def _run(self, settings: RunSettings, emit: Emit) -> None:
        """Wait for the turn, saying what is waited for and staying stoppable; then run."""
        ticket = self._turns.join()
        try:
            while ahead := ticket.wait(WAIT_S):
                loading = self._loading
                place = Progress("waiting", f"Waiting: place {ahead} of {len(self._turns) - 1} in the queue", None)
                emit(loading if ahead == 1 and isinstance(loading, Progress) else place)
            self._in_engine(settings, emit)
        finally:
            ticket.leave()

    def _in_engine(self, settings: RunSettings, emit: Emit) -> None:
        """Do the run in the engine's thread and wait for it; an interruption of the wait stops it."""
        gone = threading.Event()

        def checked(event: Event) -> None:
            if gone.is_set() or self._closing.is_set():
                raise RunStopped
            emit(event)

        work = self._engine.submit(self._run_alone, settings, checked)
        try:
            work.result()
        finally:
            gone.set()
            wait([work])

    def _run_alone(self, settings: RunSettings, emit: Emit) -> None:
        from playground.engine import generate
        from playground.prompt import encode
        from playground.run_setup import environment_of, make_proposer

        def report(stage: str, message: str, fraction: float | None) -> None:
            emit(Progress(stage, message, fraction))

        target = self._models().target(settings.target, settings.target_precision, report)
        if settings.target == DEFAULT_TARGET:
            self._loading = None
        proposer, drafter = make_proposer(self._models(), target, settings, report)
        text, ids = encode(target.loaded, settings)
        emit(
            Started(
                run_id=uuid.uuid4().hex[:12],
                settings=settings.to_dict(),
                prompt_ids=tuple(ids),
                prompt_text=text,
                proposer=settings.proposer,
                gamma=settings.gamma,
                environment=environment_of(target, drafter),
            )
        )
        plain = (target.key, target.lm, ids, settings.spec.sampling, target.decoder)
        _emit_all(self._baseline.measure(*plain), emit)
        run = generate(target.lm, proposer, ids, settings.spec, target.loaded.end_ids, target.decoder)
        end = _emit_all(run, emit)
        try:
            _emit_all(self._baseline.confirm(*plain, end.token_ids), emit)
        except (ValueError, RuntimeError, MemoryError):  # the run itself is whole: it keeps its first baseline
            log.exception("Plain decoding could not be measured again")
        emit(end)

    def options(self):
        """What can be chosen here: see choices.Options."""
        from playground.choices import options

        return options()

    def drafts_for(self, target_id: str):
        """The draft models known for a target, the first to try in front."""
        from playground.registry import draft_options

        return draft_options(target_id)


def _emit_all(events: Iterator[Event], emit: Emit) -> Finished | None:
    """Emit all events but Finished, which is returned; close the generator whatever happens."""
    end = None
    with closing(events):
        for event in events:
            if isinstance(event, Finished):
                end = event
            else:
                emit(event)
    return end


def _guarded(work: Callable[[Emit], None], emit: Emit) -> None:
    """Run `work(emit)`; turn what goes wrong into one Failed event with a sentence."""
    from playground.registry.errors import ModelError

    try:
        work(emit)
    except RunStopped:
        raise
    except ModelError as error:
        emit(Failed(error.message, error.hint))
    except ValueError as error:
        emit(Failed(str(error)))
    except MemoryError:
        emit(OUT_OF_MEMORY)
    except Exception as error:  # the last line of defence: a person gets a sentence, the log the traceback
        log.exception("A run failed")
        if "memory" in str(error) and "alloc" in str(error):  # torch says it in its own ways
            emit(OUT_OF_MEMORY)
            return
        emit(Failed(f"The run broke off with an unexpected error ({type(error).__name__}).", HINT_UNEXPECTED))


def _collect(work: Callable[[Emit], None]) -> list[Event]:
    events: list[Event] = []
    work(events.append)
    return events
