"""From settings to events: text in, models, lock, errors as sentences. What the page and the command line call.

`Playground.run` pushes the events of one run; `stream` hands them out in batches from a worker thread.
One run, or one measurement, at a time uses the models. The only place that turns exceptions into
sentences for people. Knows no gradio.
"""

import logging
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from functools import partial

from playground.batches import Emit, Stopped, batches
from playground.config import DEFAULT_TARGET, DEFAULTS, RunSettings
from playground.events import Event, Failed, Finished, Progress, Started
from playground.speeds import Speed, Speeds, Step
from playground.turns import Turns

log = logging.getLogger(__name__)
OUT_OF_MEMORY = Failed("There is not enough memory for this run.", "Choose a smaller model or a lower precision.")
WAIT_S = 0.2  # how often a waiting run says so
HINT_UNEXPECTED = "The page is ready for another run. If it happens again, the server's log has the details."


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
        self._speeds = Speeds()
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
                raise Stopped
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
        except Stopped:
            return
        finally:
            ticket.leave()

    def close(self) -> None:
        """End what is going on at its next event, so that the process can end."""
        self._closing.set()

    def run(self, settings: RunSettings, emit: Emit, keep_logits: bool = True) -> None:
        """Do one run, pushing its events to `emit`; errors arrive as a Failed event.

        An exception raised by `emit` stops the run: the current pass ends, the models are free again.
        `keep_logits`: also tell what the distributions were made from (Logits).
        """
        _guarded(lambda checked: self._in_turn(partial(self._run_alone, settings, keep_logits), checked), emit)

    def stream(
        self, settings: RunSettings, wait_s: float = 1 / 12, stop: threading.Event | None = None
    ) -> Iterator[list[Event]]:
        """Run in a worker thread and yield its events in batches, [] when nothing is new.

        Closing the generator stops the run, and so does setting `stop`, at once.
        """
        return batches(partial(self.run, settings), wait_s, stop)

    def speeds(self, model: str) -> dict[str, Speed]:
        """Return the tokens/s of plain decoding remembered for a model on this machine, by precision."""
        return self._speeds.of(model)

    def measure(self, model: str, last: str = "", wait_s: float = 1 / 12) -> Iterator[list[Step | Progress | Failed]]:
        """Measure plain decoding of a model in every precision there is here, and remember it.

        Takes its turn like a run and is stopped by closing the generator.

        Args:
            last: the precision to measure last, so that it is the one in memory afterwards.

        Yields:
            Batches of Step; Progress while it waits for its turn; Failed when nothing could be measured.
        """
        job = partial(self._in_turn, partial(self._measure_alone, model, last))
        return batches(partial(_guarded, job), wait_s)

    def lab(self, job: Callable, wait_s: float = 1 / 12, stop: threading.Event | None = None) -> Iterator[list]:
        """Do a lab's job in its turn: `job(models.ModelStore, report)` is an iterator of values.

        Yields:
            Batches of those values; Progress while it waits and loads; Failed when it cannot go on.
        """

        def work(emit: Emit) -> None:
            def report(stage: str, message: str, fraction: float | None) -> None:
                emit(Progress(stage, message, fraction))

            with closing(job(self._models(), report)) as values:
                for value in values:
                    emit(value)

        return batches(partial(_guarded, partial(self._in_turn, work)), wait_s, stop)

    def _models(self):
        if self._store is None:
            from playground.baseline import Baseline
            from playground.models import ModelStore

            self._store, self._baseline = ModelStore(), Baseline()
        return self._store

    def _in_turn(self, job: Callable[[Emit], None], emit: Emit) -> None:
        """Wait for the turn, saying what is waited for and staying stoppable; then do the job."""
        ticket = self._turns.join()
        try:
            while ahead := ticket.wait(WAIT_S):
                loading = self._loading
                place = Progress("waiting", f"Waiting: place {ahead} of {len(self._turns) - 1} in the queue", None)
                emit(loading if ahead == 1 and isinstance(loading, Progress) else place)
            self._in_engine(job, emit)
        finally:
            ticket.leave()

    def _in_engine(self, job: Callable[[Emit], None], emit: Emit) -> None:
        """Do a job in the engine's thread and wait for it; an interruption of the wait stops it."""
        gone = threading.Event()

        def checked(event: Event) -> None:
            if gone.is_set() or self._closing.is_set():
                raise Stopped
            emit(event)

        work = self._engine.submit(job, checked)
        try:
            work.result()
        finally:
            gone.set()
            wait([work])

    def _run_alone(self, settings: RunSettings, keep_logits: bool, emit: Emit) -> None:
        from playground.engine import generate
        from playground.kept_logits import KeptLogits
        from playground.measurement import remember
        from playground.prompt import encode
        from playground.run_setup import environment_of, make_proposer, rule_of

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
        remembered = partial(remember, self._speeds, target)
        _emit_all(self._baseline.measure(*plain), emit, remembered)
        kept = KeptLogits() if keep_logits else None
        given = (settings.spec, target.loaded.end_ids, target.decoder)
        run = generate(target.lm, proposer, ids, *given, rule=rule_of(settings), kept=kept)
        end = _emit_all(run, emit)
        try:
            _emit_all(self._baseline.confirm(*plain, end.token_ids), emit, remembered)
        except (ValueError, RuntimeError, MemoryError):  # the run itself is whole: it keeps its first baseline
            log.exception("Plain decoding could not be measured again")
        emit(end)

    def _measure_alone(self, model: str, last: str, emit: Emit) -> None:
        from playground.measurement import measure_precisions
        from playground.registry import device
        from playground.registry.precision import precision_options

        known = [option.id for option in precision_options(device()) if option.available]
        measure_precisions(self._models(), self._speeds, model, sorted(known, key=lambda id: id == last), emit)

    def options(self):
        """What can be chosen here: see choices.Options."""
        from playground.choices import options

        return options()

    def facts(self, proposer: str, target: str, draft: str = "", precision: str = "auto") -> str:
        """What a proposer is made of, for this target: see facts.proposer_facts."""
        from playground.facts import proposer_facts

        return proposer_facts(proposer, target, draft, precision)

    def drafts_for(self, target_id: str):
        """The draft models known for a target, the first to try in front."""
        from playground.registry import draft_options

        return draft_options(target_id)


def _emit_all(events: Iterator[Event], *emits: Emit) -> Finished | None:
    """Emit all events but Finished, which is returned; close the generator whatever happens."""
    end = None
    with closing(events):
        for event in events:
            if isinstance(event, Finished):
                end = event
                continue
            for emit in emits:
                emit(event)
    return end


def _guarded(work: Callable[[Emit], None], emit: Emit) -> None:
    """Run `work(emit)`; turn what goes wrong into one Failed event with a sentence."""
    from playground.registry.errors import ModelError

    try:
        work(emit)
    except Stopped:
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
