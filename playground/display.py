"""What a round shows of its distributions: the likeliest tokens, as plain values with labels.

Cut once per round from full-vocabulary probabilities; nothing here changes a decision.
"""

import torch

from playground.events import Candidate, Node, Position
from playground.proposers import Proposal
from playground.text import Decoder
from playground.verify import Judged, Verdict

NUM_CANDIDATES = 5


class Display:
    """Makes nodes and positions for events with one tokenizer's labels."""

    def __init__(self, decoder: Decoder):
        self._decoder = decoder

    def label(self, token_id: int) -> str:
        """One token for display."""
        return self._decoder.label(token_id)

    def nodes(self, proposal: Proposal) -> tuple[Node, ...]:
        """The drafted tokens with the probability each was drawn with."""
        ids = proposal.ids
        parents = proposal.parents or range(-1, len(ids) - 1)
        if proposal.probs is None:
            probs = [1.0] * len(ids)
        else:
            rows = torch.arange(len(ids), device=proposal.probs.device)
            probs = proposal.probs[rows, torch.tensor(ids, device=proposal.probs.device)].tolist()
        return tuple(Node(i, self.label(i), parent, q) for i, parent, q in zip(ids, parents, probs, strict=True))

    def positions(
        self,
        logits: torch.Tensor,
        p_probs: torch.Tensor,
        draft: Proposal,
        judged: list[Judged],
        final_kind: str,
        verdict: Verdict,
    ) -> tuple[Position, ...]:
        """One Position per judged token, and one more for the token after an all-accepted draft.

        Args:
            logits: (n + 1 or more, vocab) the target's, before temperature.
            p_probs: (n + 1, vocab).
            draft: the n tokens fed to the target.
            judged: those to show, all of a verdict or those before the run ended.
            final_kind: kind of the target's own token, "" when the run ended inside the draft.
        """
        count = len(judged) + (final_kind in ("bonus", "plain"))
        rows = _rows(draft, judged, count)
        shown = logits[rows]  # (count, vocab)
        top = shown.topk(min(NUM_CANDIDATES, shown.shape[-1]), dim=-1)
        target = p_probs[rows].gather(-1, top.indices)
        items = zip(top.indices.tolist(), target.tolist(), top.values.tolist(), strict=True)
        drafted = self._draft(draft, judged)
        residual = self._tops(verdict.residual[None])[0] if final_kind == "residual" else ()
        positions = []
        for index, (ids, probs, values) in enumerate(items):
            likely = tuple(Candidate(i, self.label(i), p, v) for i, p, v in zip(ids, probs, values, strict=True))
            last = index == count - 1
            positions.append(Position(likely, drafted[index] if index < len(drafted) else (), residual if last else ()))
        return tuple(positions)

    def _draft(self, draft: Proposal, judged: list[Judged]) -> list[tuple[Candidate, ...]]:
        ids = [draft.ids[item.index] for item in judged]
        if draft.probs is None:
            return [(Candidate(i, self.label(i), 1.0),) for i in ids]
        indices = slice(len(ids)) if draft.parents is None else [item.index for item in judged]
        return self._tops(draft.probs[indices])

    def _tops(self, probs: torch.Tensor) -> list[tuple[Candidate, ...]]:
        """The likeliest tokens of each row, those of probability 0 left out."""
        top = probs.topk(min(NUM_CANDIDATES, probs.shape[-1]), dim=-1)
        return [
            tuple(Candidate(i, self.label(i), p) for i, p in zip(ids, values, strict=True) if p > 0)
            for ids, values in zip(top.indices.tolist(), top.values.tolist(), strict=True)
        ]


def _rows(draft: Proposal, judged: list[Judged], count: int) -> slice | list[int]:
    """Rows of the target's pass that the judged tokens were held against, and that of a bonus token."""
    if draft.parents is None:
        return slice(count)  # a view: rows of a whole vocabulary are not copied
    rows = [draft.parents[item.index] + 1 for item in judged]
    return rows if count == len(rows) else [*rows, judged[-1].index + 1 if judged else 0]
