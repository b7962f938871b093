"""The logits of a run's rounds, held while it runs and told in short after the last one.

A round only leaves its tensors here, which costs nothing; cutting them to a few numbers per row comes when
no clock runs. Lets a round be judged again under another temperature, with no model: see `lab/what_if`.
"""

from collections.abc import Iterator

import torch

from playground.events import LogitRow, Logits
from playground.proposers import Proposal
from playground.text import Decoder

MAX_BYTES = 400_000_000  # held at once; rounds after that are not told
NUM_LIKELIEST = 24
NUM_GROUPS = 20


class KeptLogits:
    """Takes rounds while a run goes on; gives them back as events."""

    def __init__(self):
        self._rounds: list[tuple[int, torch.Tensor, Proposal]] = []
        self._num_bytes = 0

    def keep(self, number: int, logits: torch.Tensor, draft: Proposal) -> None:
        """Take one round.

        Args:
            logits: (n + 1, vocab), the target's before temperature; on an accelerator they are copied, for
                there the buffer belongs to the next pass.
            draft: the n tokens fed to the target.
        """
        rows = len(draft.ids) * (draft.probs is not None) + logits.shape[0]
        self._num_bytes += rows * logits.shape[1] * logits.element_size()
        if self._num_bytes <= MAX_BYTES:
            kept = logits if logits.device.type == "cpu" else logits.to("cpu", copy=True)
            self._rounds.append((number, kept, draft))

    def events(self, decoder: Decoder) -> Iterator[Logits]:
        """Tell the rounds in order, and let go of each."""
        rounds, self._rounds = self._rounds, []
        while rounds:
            number, logits, draft = rounds.pop(0)
            parents = draft.parents or range(-1, len(draft.ids) - 1)
            wanted: list[list[int]] = [[] for _ in range(len(draft.ids) + 1)]
            for parent, token in zip(parents, draft.ids, strict=True):
                wanted[parent + 1].append(token)
            target = rows_of(logits.float(), wanted, decoder)
            yield Logits(number, target, _draft_rows(draft, decoder))


def _draft_rows(draft: Proposal, decoder: Decoder) -> tuple[LogitRow, ...]:
    if draft.probs is None:
        return tuple(LogitRow((token,), (decoder.label(token),), (0.0,)) for token in draft.ids)
    return rows_of(draft.probs[: len(draft.ids)].cpu().log(), [[token] for token in draft.ids], decoder)


def rows_of(logits: torch.Tensor, wanted: list[list[int]], decoder: Decoder) -> tuple[LogitRow, ...]:
    """Cut rows of logits short.

    Args:
        logits: (n, vocab) float32; -inf = impossible.
        wanted: for each row, tokens that must be among those named.

    Example: logits (2, 1, 0, 0) with one likeliest token give ids (0,), and three others in groups.
    """
    rows = []
    for row, tokens in zip(logits, wanted, strict=True):
        top = row.topk(min(NUM_LIKELIEST, len(row)))
        ids = [i for i, value in zip(top.indices.tolist(), top.values.tolist(), strict=True) if value > float("-inf")]
        ids += [token for token in dict.fromkeys(tokens) if token not in ids and float(row[token]) > float("-inf")]
        named = torch.tensor(ids)
        values = row[named]
        groups, counts = _groups(row.index_fill(0, named, float("-inf")))
        labels = tuple(decoder.label(token) for token in ids)
        rows.append(LogitRow(tuple(ids), labels, _short(values), _short(groups), tuple(counts.tolist())))
    return tuple(rows)


def _groups(rest: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Logit and size of each group of the finite entries of (vocab,), likeliest first; finer where they are likely."""
    rest = rest[rest > float("-inf")]
    if not len(rest):
        return torch.empty(0), torch.empty(0, dtype=torch.long)
    high, low = rest.max(), rest.min()
    place = ((high - rest) / (high - low).clamp(min=1e-6)).clamp(0, 1).sqrt() * NUM_GROUPS
    place = place.long().clamp(max=NUM_GROUPS - 1)
    counts = torch.bincount(place, minlength=NUM_GROUPS)
    sums = torch.zeros(NUM_GROUPS, dtype=torch.float64).scatter_add_(0, place, (rest - high).double().exp())
    full = counts > 0
    return (sums[full] / counts[full]).log().float() + high, counts[full]


def _short(values: torch.Tensor) -> tuple[float, ...]:
    return tuple(round(value, 4) for value in values.tolist())
