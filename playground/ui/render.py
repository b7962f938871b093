"""Events in, JSON lines out: the append-only log that the page's view reads.

One line per thing to show, never changed once written, so the server sends only what is new. The
last line of a finished log holds the final text, the figures and the reason, for programs that read
the same log. Every figure comes from `RunMetrics`; the page computes none. No torch, no gradio.
"""

import json
from collections.abc import Iterable

from playground.events import (
    Calibrated,
    Candidate,
    Event,
    Failed,
    Finished,
    Logits,
    Position,
    Prefilled,
    Progress,
    Proposed,
    Started,
    Verified,
)
from playground.metrics import RunMetrics

# One row per round, in this order; the chart specifications name these columns.
ROUND_COLUMNS = ("round", "alpha", "running_alpha", "seconds", "speedup", "draft_ms", "verify_ms", "other_ms", "tokens")
SIGNIFICANT_DIGITS = 5


def short(value: float | None) -> float | None:
    """Return `value` with five significant digits: enough to show, short to send."""
    return None if value is None else float(f"{value:.{SIGNIFICANT_DIGITS}g}")


def figures(metrics: RunMetrics) -> dict:
    """Return every figure of a run so far under its glossary name, None where there is none yet."""
    return {
        "speedup": short(metrics.speedup),
        "alpha": short(metrics.alpha),
        "acceptance_length": short(metrics.acceptance_length),
        "tokens_per_second": short(metrics.tokens_per_second),
        "baseline_tokens_per_second": short(metrics.baseline_tokens_per_second),
        "draft_efficiency": short(metrics.draft_efficiency),
        "mean_overlap": short(metrics.mean_overlap),
        "drift": short(metrics.drift),
        "overhead_share": short(metrics.overhead_share),
        "num_tokens": metrics.num_committed,
        "num_rounds": metrics.num_rounds,
        "num_drafted": metrics.num_drafted,
        "num_tested": metrics.num_tested,
        "num_accepted": metrics.num_accepted,
        "num_prompt_tokens": metrics.num_prompt,
        "prefill_s": short(metrics.prefill_ms / 1000),
        "draft_s": short(metrics.draft_ms / 1000),
        "verify_s": short(metrics.verify_ms / 1000),
        "other_s": short(metrics.other_ms / 1000),
        "decode_s": short(metrics.decode_ms / 1000),
    }


def positions(metrics: RunMetrics) -> dict:
    """Return acceptance by draft position as chart columns."""
    return {
        "position": list(range(1, len(metrics.tested_by_position) + 1)),
        "acceptance": [short(rate) for rate in metrics.acceptance_by_position],
        "accepted": list(metrics.accepted_by_position),
        "tested": list(metrics.tested_by_position),
    }


class RunLog:
    """The growing log of one run. `text` is the log so far; `closed` once the last line is written."""

    def __init__(self, run_id: str):
        self.metrics = RunMetrics()
        self.closed = False
        self._pieces: list[str] = []
        self._token_ids: list[int] = []
        self._proposed: Proposed | None = None
        self.text = ""
        self._write("run", id=run_id)

    def add(self, events: Iterable[Event]) -> str:
        """Write what `events` say and return the whole log."""
        num_rounds = self.metrics.num_rounds
        for event in events:
            if self.closed:
                break
            self.metrics.update(event)
            _WRITERS[type(event)](self, event)
        if self.metrics.num_rounds > num_rounds and not self.closed:
            self._write("figures", figures=figures(self.metrics), positions=positions(self.metrics))
        return self.text

    def note_recording(self, words: str) -> None:
        """Say that what follows is a recording, and of what."""
        self._write("recording", words=words)

    def stop(self) -> str:
        """End the log early, keeping what was made, and return it."""
        return self.add([Finished("stopped", "".join(self._pieces), tuple(self._token_ids))])

    def fail(self, message: str, hint: str = "") -> str:
        """End the log with a reason in words, keeping what was made, and return it."""
        return self.add([Failed(message, hint)])

    def _write(self, kind: str, **values: object) -> None:
        line = json.dumps({"e": kind} | values, ensure_ascii=False, separators=(",", ":"))
        self.text += line.replace("<", "\\u003c") + "\n"  # no reader may ever take the log for markup

    def _close(self, kind: str, text: str, token_ids: Iterable[int], **values: object) -> None:
        self.closed = True
        outcome = {"text": text, "token_ids": list(token_ids), "figures": figures(self.metrics)}
        self._write(kind, **values, **outcome, positions=positions(self.metrics))

    def _started(self, event: Started) -> None:
        self._write(
            "started",
            proposer=event.proposer,
            gamma=event.gamma,
            num_prompt_tokens=len(event.prompt_ids),
            max_new_tokens=event.settings.get("max_new_tokens"),
            environment=event.environment,
        )

    def _progress(self, event: Progress) -> None:
        self._write("progress", stage=event.stage, message=event.message, fraction=short(event.fraction))

    def _prefilled(self, event: Prefilled) -> None:
        self._write("prefilled", tokens=event.num_tokens, reused=event.num_reused, ms=short(event.prefill_ms))

    def _calibrated(self, event: Calibrated) -> None:
        speed = short(event.tokens_per_second)
        self._write("baseline", tokens_per_second=speed, ms=short(event.step_ms), cached=event.cached)

    def _keep_proposal(self, event: Proposed) -> None:
        self._proposed = event

    def _verified(self, event: Verified) -> None:
        self._pieces.extend(token.text for token in event.committed)
        self._token_ids.extend(token.id for token in event.committed)
        self._write("round", **_round(self._proposed, event), row=_row(self.metrics))

    def _logits(self, event: Logits) -> None:
        """Nothing: the strip shows what was drawn, the inspector reads the events."""

    def _finished(self, event: Finished) -> None:
        self._close("end", event.text, event.token_ids, reason=event.reason)

    def _failed(self, event: Failed) -> None:
        text = "".join(self._pieces)
        self._close("failed", text, self._token_ids, reason="failed", message=event.message, hint=event.hint)


_WRITERS = {
    Started: RunLog._started,
    Progress: RunLog._progress,
    Prefilled: RunLog._prefilled,
    Calibrated: RunLog._calibrated,
    Proposed: RunLog._keep_proposal,
    Verified: RunLog._verified,
    Logits: RunLog._logits,
    Finished: RunLog._finished,
    Failed: RunLog._failed,
}


def _row(metrics: RunMetrics) -> list[float | None]:
    """Return the chart columns of the newest round, in the order of ROUND_COLUMNS."""
    last = metrics.rounds[-1]
    return [
        last.round,
        short(last.alpha),
        short(metrics.alpha),
        short(metrics.decode_ms / 1000),
        short(metrics.speedup),
        short(last.draft_ms),
        short(last.verify_ms),
        short(last.other_ms),
        metrics.num_committed,
    ]


def _round(proposed: Proposed, verified: Verified) -> dict:
    """Return one round as short arrays: drafted, tested, committed, tops per position.

    A tree also has `parents`; the view then shows what was tested, along the winning path.
    """
    parents = [node.parent for node in proposed.nodes]
    return {
        "n": verified.round,
        **({} if parents == list(range(-1, len(parents) - 1)) else {"parents": parents}),
        "drafted": [[node.id, node.text, short(node.q)] for node in proposed.nodes],
        "tested": [
            [test.node, short(test.p), short(test.q), short(test.u), int(test.accepted), short(test.overlap)]
            for test in verified.tested
        ],
        "committed": [[token.id, token.kind, token.text, token.label, short(token.p)] for token in verified.committed],
        "tops": [_tops(position) for position in verified.positions],
    }


def _tops(position: Position) -> list[list]:
    return [_candidates(row) for row in (position.target, position.draft, position.residual)]


def _candidates(row: tuple[Candidate, ...]) -> list[list]:
    return [
        [item.text, float(f"{item.prob:.3g}"), *([] if item.logit is None else [round(item.logit, 2)])] for item in row
    ]
