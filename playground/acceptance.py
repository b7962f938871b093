"""A run's acceptance in the schema of vLLM's per-request metrics, so that its tools read ours.

Source: vLLM, features/speculative_decoding/acceptance_metrics.md and vllm/v1/metrics/stats.py
(RequestSpecDecodeMetrics), level "detailed". As there, rounds that drafted nothing are left out, the mean length is
1 + accepted / rounds, and drafts of nothing give 1.0 and 0.0. In a tree every node counts as drafted, and what a
round accepted is its path. Needs no torch.
"""

from collections.abc import Sequence

from playground.metrics import RoundRecord


def vllm_metrics(rounds: Sequence[RoundRecord], num_spec_tokens: int) -> dict:
    """Return what vLLM puts under `metrics.speculative_decoding`.

    Args:
        rounds: of one run.
        num_spec_tokens: the most that was asked of the proposer per round: gamma.
    """
    steps = [(item.num_drafted, item.num_accepted) for item in rounds if item.num_drafted]
    accepted, drafted = sum(kept for _, kept in steps), sum(size for size, _ in steps)
    most = max([num_spec_tokens, *(kept for _, kept in steps)])
    lengths = sorted({size for size, _ in steps})
    return {
        "mean_acceptance_length": 1.0 + accepted / len(steps) if steps else 1.0,
        "draft_acceptance_rate": accepted / drafted if drafted else 0.0,
        "acceptance_histogram": _histogram([kept for _, kept in steps], most),
        "acceptance_histogram_by_draft_length": {
            str(length): _histogram([kept for size, kept in steps if size == length], length) for length in lengths
        },
        "num_spec_steps": len(steps),
        "num_accepted_draft_tokens": accepted,
        "num_draft_tokens": drafted,
        "num_spec_tokens": num_spec_tokens,
        "per_step_accepted": [kept for _, kept in steps],
        "per_step_drafted": [size for size, _ in steps],
    }


def _histogram(values: list[int], most: int) -> list[int]:
    return [values.count(value) for value in range(most + 1)]


def vllm_response(record: dict) -> dict:
    """Return the record of a run as the part of vLLM's answer that tools read: `usage` and `metrics`.

    Args:
        record: what `report.Recorder` makes of a run.
    """
    prompt, answer = record["num_prompt_tokens"], record["num_committed"]
    usage = {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
    return {"usage": usage, "metrics": {"speculative_decoding": record["vllm"]}}
