"""The record of one run as one JSON object: what the command line writes and other tools read.

Made from events alone, so a recorded run gives the same record as the live one. Rates 0..1, times
in seconds where the name ends in `_s`. Needs no torch.
"""

from dataclasses import asdict

from playground.acceptance import vllm_metrics
from playground.events import Event, Failed, Finished, Verified
from playground.metrics import RunMetrics


class Recorder:
    """Takes every event of a run in order; `report` may be read at any time."""

    def __init__(self):
        self.metrics = RunMetrics()
        self._ids: list[int] = []
        self._pieces: list[str] = []
        self._rounds: list[dict] = []

    def __call__(self, event: Event) -> None:
        """Take one event."""
        self.metrics.update(event)
        if isinstance(event, Verified):
            self._ids += [token.id for token in event.committed]
            self._pieces += [token.text for token in event.committed]
            record = self.metrics.rounds[-1]
            self._rounds.append(asdict(record) | {"committed_ids": [token.id for token in event.committed]})

    def report(self) -> dict:
        """Return the record; a run without an end counts as stopped."""
        metrics, end = self.metrics, self.metrics.finished
        started = metrics.started
        reason = end.reason if isinstance(end, Finished) else "failed" if isinstance(end, Failed) else "stopped"
        record = {
            "token_ids": self._ids,
            "text": "".join(self._pieces),
            "finish_reason": reason,
            "num_prompt_tokens": metrics.num_prompt,
            "num_committed": metrics.num_committed,
            "num_rounds": metrics.num_rounds,
            "num_drafted": metrics.num_drafted,
            "num_tested": metrics.num_tested,
            "num_accepted": metrics.num_accepted,
            "alpha": metrics.alpha,
            "mean_overlap": metrics.mean_overlap,
            "lossy": metrics.is_lossy,
            "drift": metrics.drift,
            "draft_efficiency": metrics.draft_efficiency,
            "acceptance_length": metrics.acceptance_length,
            "acceptance_by_position": metrics.acceptance_by_position,
            "tokens_per_second": metrics.tokens_per_second,
            "baseline_tokens_per_second": metrics.baseline_tokens_per_second,
            "speedup": metrics.speedup,
            "prefill_s": metrics.prefill_ms / 1000,
            "draft_s": metrics.draft_ms / 1000,
            "verify_s": metrics.verify_ms / 1000,
            "other_s": metrics.other_ms / 1000,
            "vllm": vllm_metrics(metrics.rounds, started.gamma if started else 0),
            "rounds": self._rounds,
            "settings": started.settings if started else {},
            "environment": started.environment if started else {},
        }
        if isinstance(end, Failed):
            record |= {"error": end.message, "hint": end.hint}
        return record


def figure_lines(report: dict) -> list[str]:
    """The figures of a record in words, for a terminal."""

    def shown(name: str, form: str) -> str:
        return "—" if report[name] is None else format(report[name], form)

    times = ", ".join(f"{part} {report[f'{part}_s']:.2f} s" for part in ("prefill", "draft", "verify", "other"))
    return [
        f"\n\nend: {report['finish_reason']}, {report['num_committed']} tokens in {report['num_rounds']} rounds",
        f"speedup {shown('speedup', '.2f')}x measured ({shown('tokens_per_second', '.1f')} tokens/s, plain "
        f"{shown('baseline_tokens_per_second', '.1f')})",
        f"alpha {shown('alpha', '.3f')}, draft efficiency {shown('draft_efficiency', '.3f')}, acceptance length "
        f"{shown('acceptance_length', '.2f')}",
        times,
    ]
