"""Watch a running server: its counters before, during and after, and one request streamed with its times.

Without a prompt nothing is asked and only the counters are followed: acceptance and tokens/s of the traffic the
server has anyway. Everything is a plain value; `Watch.run` yields as things come. Rates are `server_metrics`'.
"""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from queue import SimpleQueue

from playground.lab.guarded_http import Refused, Server, WatchError
from playground.lab.server_metrics import Counters, ServerRates, counters, difference
from playground.lab.server_stream import Chunk, body, chunks

READ_TIMEOUT_S, MAX_SECONDS = 10.0, 120.0
POLL_S, SETTLE_S = 0.5, 0.3  # a server counts a step shortly after it has sent its tokens
MAX_METRICS, MAX_STREAM, MAX_MODELS = 8 << 20, 4 << 20, 1 << 20
NO_COUNTERS = (
    "This server shows no metrics this page knows at /metrics; only text and tokens/s are measured. vLLM has them "
    "unless it was started with --disable-log-stats, SGLang needs --enable-metrics, llama.cpp --metrics."
)
NO_SPECULATION = (
    "This server counts no speculative decoding, so it most likely runs without. It is switched on when the server "
    "starts: vLLM --speculative-config, SGLang --speculative-algorithm, llama.cpp --spec-type."
)


@dataclass(frozen=True, slots=True)
class Question:
    """What to watch. `model` "" takes the first the server offers; `prompt` "" only reads counters."""

    url: str
    prompt: str = ""
    model: str = ""
    chat: bool = True
    max_tokens: int = 160
    temperature: float = 0.0
    seconds: float = 60.0

    def __post_init__(self):
        if not 1 <= self.max_tokens <= 4096 or not 0 <= self.temperature <= 2:
            raise ValueError("Tokens must be from 1 to 4096, temperature from 0 to 2.")
        if not 1 <= self.seconds <= MAX_SECONDS:
            raise ValueError(f"Seconds must be from 1 to {MAX_SECONDS:g}.")


@dataclass(frozen=True, slots=True)
class Piece:
    """Text that came, seconds after the question; `num_tokens` so far where the server says."""

    seconds: float
    text: str
    num_tokens: int | None


@dataclass(frozen=True, slots=True)
class Reading:
    """Rates from the start to now."""

    seconds: float
    rates: ServerRates


@dataclass(slots=True)
class Watch:
    """One go. Its fields fill while `run` is followed; `report` may be read at any time.

    `key` and `public_only` are those of `guarded_http.Server`; the key is in no report. `before` and `after` are the
    first and the newest counters read, None where the server has none.
    """

    question: Question
    key: str = field(default="", repr=False)
    public_only: bool = False
    model: str = ""
    notice: str = ""
    pieces: list[Piece] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    acceptance: dict = field(default_factory=dict)
    seconds: float = 0.0
    num_tokens: int | None = None
    before: Counters | None = None
    after: Counters | None = None

    def run(self, stop: threading.Event) -> Iterator[Piece | Reading]:
        """Watch until the answer is complete, time is over, or `stop` is set.

        Raises:
            WatchError: the server cannot be watched, or no longer.
        """
        server = Server(self.question.url, READ_TIMEOUT_S, self.key, self.public_only)
        self.before = self.after = before = self._counters(server)
        if before is None and not self.question.prompt:
            raise WatchError("Without a prompt there is nothing to watch: " + NO_COUNTERS)
        self.notice = NO_COUNTERS if before is None else ""
        if self.question.prompt:
            self.model = self.question.model or _first_model(server)
        began = time.monotonic()
        deadline = began + self.question.seconds
        if self.question.prompt:
            poller = _Poller(server, began, before)
            poller.start()
            try:
                yield from self._asked(server, before, began, deadline, poller, stop)
            finally:
                poller.stop.set()
        while not self.question.prompt and not stop.wait(POLL_S) and time.monotonic() < deadline:
            yield from self._read(server, before, began)
        stop.wait(SETTLE_S)
        yield from self._read(server, before, began)
        rates = self.readings[-1].rates if self.readings else None
        if rates and not rates.num_rounds and rates.num_generated and not self.acceptance:
            self.notice = NO_SPECULATION

    def _asked(
        self,
        server: Server,
        before: Counters | None,
        began: float,
        deadline: float,
        poller: "_Poller",
        stop: threading.Event,
    ) -> Iterator[Piece | Reading]:
        question = self.question
        asked = body(
            before.engine if before else "",
            self.model,
            question.prompt,
            question.chat,
            question.max_tokens,
            question.temperature,
        )
        path = "/v1/chat/completions" if question.chat else "/v1/completions"
        try:
            for chunk in chunks(server.stream("POST", path, asked, MAX_STREAM, deadline + READ_TIMEOUT_S)):
                if stop.is_set() or time.monotonic() > deadline:
                    return
                yield from self._kept(chunk, time.monotonic() - began)
                for reading in poller.taken():
                    self.readings.append(reading)
                    yield reading
        except WatchError:
            raise
        except ValueError as error:
            raise WatchError(str(error)) from error

    def _kept(self, chunk: Chunk, seconds: float) -> Iterator[Piece]:
        self.acceptance = chunk.acceptance or self.acceptance
        self.num_tokens = chunk.num_tokens if chunk.num_tokens is not None else self.num_tokens
        if chunk.text:
            piece = Piece(seconds, chunk.text, chunk.num_tokens)
            self.pieces.append(piece)
            yield piece

    def _read(self, server: Server, before: Counters | None, began: float) -> Iterator[Reading]:
        self.seconds = time.monotonic() - began
        now = self._counters(server) if before else None
        if now is not None:
            self.after = now
            try:
                reading = Reading(self.seconds, difference(before, now))
            except ValueError as error:
                raise WatchError(str(error)) from error
            self.readings.append(reading)
            yield reading

    @staticmethod
    def _counters(server: Server) -> Counters | None:
        try:
            return counters(server.get("/metrics", MAX_METRICS))
        except Refused:  # it is there, but shows no metrics
            return None

    @property
    def tokens_per_second(self) -> float | None:
        """Of the answer, after its first piece; of all traffic where nothing was asked."""
        if not self.question.prompt:
            last = self.readings[-1] if self.readings else None
            return last.rates.num_generated / last.seconds if last and last.seconds else None
        spent = self.pieces[-1].seconds - self.pieces[0].seconds if self.pieces else 0.0
        first = self.pieces[0].num_tokens or 1 if self.pieces else 1
        return (self.num_tokens - first) / spent if self.num_tokens is not None and spent > 0 else None

    def report(self) -> dict:
        """Return all of it as plain values, ready for JSON."""
        rates = self.readings[-1].rates if self.readings else None
        return {
            "question": asdict(self.question),
            "model": self.model,
            "notice": self.notice,
            "text": "".join(piece.text for piece in self.pieces),
            "num_tokens": self.num_tokens,
            "time_to_first_s": self.pieces[0].seconds if self.pieces else None,
            "seconds": self.seconds,
            "tokens_per_second": self.tokens_per_second,
            "server": asdict(rates) if rates else None,
            "counters": [asdict(found) if found else None for found in (self.before, self.after)],
            "request": self.acceptance or None,
            "pieces": [[piece.seconds, piece.num_tokens] for piece in self.pieces],
            "readings": [{"seconds": item.seconds} | asdict(item.rates) for item in self.readings],
        }


class _Poller(threading.Thread):
    """Reads the counters beside the stream, so that reading them does not delay its times."""

    def __init__(self, server: Server, began: float, before: Counters | None):
        super().__init__(daemon=True)
        self.server, self.began, self.before = server, began, before
        self.stop = threading.Event()
        self._ready: SimpleQueue[Reading] = SimpleQueue()

    def run(self) -> None:
        """Read until told to stop, or until it fails: the last reading, taken elsewhere, says why."""
        while self.before is not None and not self.stop.wait(POLL_S):
            try:
                now = counters(self.server.get("/metrics", MAX_METRICS))
                if now is not None:
                    self._ready.put(Reading(time.monotonic() - self.began, difference(self.before, now)))
            except ValueError:
                return

    def taken(self) -> list[Reading]:
        """Return what is new."""
        return [self._ready.get() for _ in range(self._ready.qsize())]


def _first_model(server: Server) -> str:
    try:
        offered = json.loads(server.get("/v1/models", MAX_MODELS))["data"]
        return str(offered[0]["id"])
    except WatchError:
        raise
    except (ValueError, LookupError, TypeError) as error:
        raise WatchError("The server names no model: give one.") from error
