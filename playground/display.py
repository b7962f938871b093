"""What a round shows of its distributions: the likeliest tokens, as plain values with labels.

Cut once per round from full-vocabulary probabilities; nothing here changes a decision.
"""

import torch

from playground.events import Candidate, Node, Position
from playground.proposers import Proposal
from playground.text import Decoder
from playground.verify import Verdict

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
        q_probs: torch.Tensor | None,
        drafted: list[int],
        num_judged: int,
        final_kind: str,
        verdict: Verdict,
    ) -> tuple[Position, ...]:
        """One Position per judged token, and one more for the token after an all-accepted draft.

        Args:
            logits: (n + 1, vocab) the target's, before temperature.
            p_probs: (n + 1, vocab); q_probs: (n, vocab) or None for a deterministic draft.
            drafted: the n tested ids.
            final_kind: kind of the target's own token, "" when the run ended inside the draft.
        """
        count = num_judged + (final_kind in ("bonus", "plain"))
        top = logits[:count].topk(min(NUM_CANDIDATES, logits.shape[-1]), dim=-1)
        target = p_probs[:count].gather(-1, top.indices)
        rows = zip(top.indices.tolist(), target.tolist(), top.values.tolist(), strict=True)
        draft = self._draft(q_probs, drafted, min(count, len(drafted)))
        residual = self._tops(verdict.residual[None])[0] if final_kind == "residual" else ()
        positions = []
        for index, (ids, probs, values) in enumerate(rows):
            shown = tuple(Candidate(i, self.label(i), p, v) for i, p, v in zip(ids, probs, values, strict=True))
            last = index == count - 1
            positions.append(Position(shown, draft[index] if index < len(draft) else (), residual if last else ()))
        return tuple(positions)

    def _draft(self, q_probs: torch.Tensor | None, drafted: list[int], count: int) -> list[tuple[Candidate, ...]]:
        if q_probs is None:
            return [(Candidate(i, self.label(i), 1.0),) for i in drafted[:count]]
        return self._tops(q_probs[:count])

    def _tops(self, probs: torch.Tensor) -> list[tuple[Candidate, ...]]:
        """The likeliest tokens of each row, those of probability 0 left out."""
        top = probs.topk(min(NUM_CANDIDATES, probs.shape[-1]), dim=-1)
        return [
            tuple(Candidate(i, self.label(i), p) for i, p in zip(ids, values, strict=True) if p > 0)
            for ids, values in zip(top.indices.tolist(), top.values.tolist(), strict=True)
        ]
