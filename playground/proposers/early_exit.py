"""Early exit: the first layers of the target draft, and verification goes on from what they computed.

The draft is no second model: the hidden states after k layers, and the keys and values on the way, stay in
the target, whose next pass runs the first k layers only for tokens they have not seen, and the others for
all. Either an adapter turns the state after k layers into one for the output rows, or the target's own
final norm and output head read it raw, which shows why the adapter is trained.
Sources: Draft & Verify (Zhang et al. 2024), LayerSkip (Elhoushi et al. 2024), Kangaroo (Liu et al. 2024).
"""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F

from playground.config import SamplingConfig
from playground.heads import DraftVocabulary, ExitAdapters
from playground.lm import LeanLM
from playground.proposers.base import Proposal, Proposer
from playground.proposers.chain import Chain


class EarlyExitProposer(Proposer):
    """Drafts with the first `num_layers` layers of the target itself.

    The context's last token is fed first, then each drafted token but the last: state (1, hidden) → draft
    logits (D,), one at a time. The target's own pass begins with the same tokens, so it takes them over; a
    rejection rolls the target back as always, and a draft that is never verified is dropped with the next
    prompt.

    Attributes:
        stops_after: as DraftModelProposer's.
    """

    name = "early-exit"
    stops_after: Callable[[float], bool] | None = None

    def __init__(self, target: LeanLM, num_layers: int, end_ids: Sequence[int], adapters: ExitAdapters | None = None):
        """Choose where to leave.

        Args:
            target: the very model and cache that verify.
            num_layers: layers that draft, 1 to all but one.
            end_ids: tokens after which drafting on is useless.
            adapters: bound to the target, with one for this depth; None = raw.

        Raises:
            ValueError: a target that cannot stop half-way, or a depth it or the adapters do not have.
        """
        if not isinstance(target, LeanLM):
            raise ValueError("Early exit needs a target whose pass can stop half-way (the lean decoder).")
        if not 1 <= num_layers < target.num_layers:
            raise ValueError(f"Early exit needs 1 to {target.num_layers - 1} layers, not {num_layers}.")
        if adapters is not None and num_layers not in adapters.exit_layers:
            known = ", ".join(map(str, adapters.exit_layers))
            raise ValueError(f"There is no adapter for {num_layers} layers, only for {known}.")
        self._target, self._num_layers, self._adapters = target, num_layers, adapters
        self._end_ids = frozenset(end_ids)
        ids = torch.arange(target.vocab_size, device=target.device) if adapters is None else adapters.draft_ids
        self._vocabulary = DraftVocabulary(ids, target.vocab_size)

    @torch.inference_mode()
    def propose(self, context: list[int], gamma: int, sampling: SamplingConfig, rng: torch.Generator) -> Proposal:
        """Draw up to `gamma` tokens one after another."""
        if gamma < 1:
            return Proposal([])
        assert self._target.length == len(context) - 1
        chain = Chain(self._vocabulary, gamma, sampling, rng, self._end_ids, self.stops_after)
        token = context[-1]
        while not chain.done:
            token = chain.draw(self._logits(self._target.extend_partly([token], self._num_layers)))
        return chain.proposal()

    def _logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """The state (1, hidden) after the first layers → draft logits (D,)."""
        if self._adapters is not None:
            return self._adapters.logits(self._adapters(hidden, self._num_layers))[0]
        weights = self._target.weights
        normed = F.rms_norm(hidden, (weights.hidden_size,), weights.final_norm, weights.eps)
        return weights.head(normed)[0, : self._target.vocab_size].float()
