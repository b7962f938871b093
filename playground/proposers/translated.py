"""A draft model with another tokenizer: it continues the text, and the text is re-encoded for the target.

The context is decoded, encoded with the draft's tokenizer, continued greedily by the draft, and what it
wrote is encoded with the target's tokenizer again. The drafted ids are certain once written, so q is
one-hot and the output is the target's at every temperature. Only the tail is encoded anew each round, so
a round costs the same however long the text is.
Source: universal assisted generation (Timor et al. 2024, "Accelerating LLM inference with lossless
speculative decoding algorithms for heterogeneous vocabularies").
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

from playground.config import SamplingConfig
from playground.lm import CachedLM
from playground.proposers.base import Proposal, Proposer
from playground.proposers.draft_model import DraftModelProposer

TAIL = 16  # tokens encoded again with what follows them: a word may merge with its beginning
GREEDY = SamplingConfig(temperature=0.0)
HALF = "\ufffd"  # what a tokenizer decodes an incomplete character to


class TranslatedProposer(Proposer):
    """Drafts with a `CachedLM` whose token ids mean other texts than the target's."""

    name = "draft"

    def __init__(
        self, lm: CachedLM, end_ids: tuple[int, ...], draft_tokenizer: Any, target_tokenizer: Any, num_tokens: int
    ):
        """Args:
        lm: the draft model.
        end_ids: the draft's own end tokens; the target's end token is proposed in their place.
        draft_tokenizer, target_tokenizer: of transformers.
        num_tokens: ids the target knows.
        """
        self._draft = DraftModelProposer(lm, end_ids, lm.vocab_size)
        self._end_ids = frozenset(end_ids)
        self._from, self._to = draft_tokenizer, target_tokenizer
        self._num_tokens = num_tokens
        start = draft_tokenizer("")["input_ids"][:1]
        self._begin = start if start == [draft_tokenizer.bos_token_id] else []
        self.reset()

    @property
    def stops_after(self) -> Callable[[float], bool] | None:
        """As DraftModelProposer's."""
        return self._draft.stops_after

    @stops_after.setter
    def stops_after(self, decide: Callable[[float], bool] | None) -> None:
        self._draft.stops_after = decide

    def reset(self) -> None:
        """Forget the last run."""
        self._draft.reset()
        self._num_read = 0  # tokens of the context that are in the source
        self._source = list(self._begin)  # the context's text in the draft's tokens

    def prefill(self, context: list[int]) -> Iterator[int]:
        """Take in the prompt. Raises ValueError when it is too long for the draft model."""
        self._read(context)
        if self._source:
            yield from self._draft.prefill(self._source)

    def propose(self, context: list[int], gamma: int, sampling: SamplingConfig, rng: torch.Generator) -> Proposal:
        """Let the draft write about as much text as `gamma` tokens of the target take, and encode it.

        Nothing is drafted while the context ends inside a character, which is no text yet.
        """
        if not self._read(context) or not self._source:
            return Proposal([])
        wanted = math.ceil(gamma * len(self._source) / len(context))  # as many as such a text takes, …
        written = self._draft.propose(self._source, wanted + 1, GREEDY, rng).ids  # … and one for the seam
        ended = bool(written) and written[-1] in self._end_ids
        ids = self._encoded(context, written[: len(written) - ended])
        if ended and self._to.eos_token_id is not None:
            ids.append(self._to.eos_token_id)
        known = next((index for index, token in enumerate(ids) if token >= self._num_tokens), len(ids))
        return Proposal(ids[: min(gamma, known)])

    def _read(self, context: list[int]) -> bool:
        """Bring the source up to the context; False while the context ends inside a character."""
        if self._num_read == len(context):
            return True
        overlap = context[max(0, self._num_read - TAIL) : self._num_read]
        before = _text(self._to, overlap)
        after = _text(self._to, overlap + context[self._num_read :])
        if after.endswith(HALF):
            return False
        if not after.startswith(before):  # a tokenizer that spaces by what surrounds a token
            before, after = "", _text(self._to, context)
            self._source = list(self._begin)
        self._append(after[len(before) :])
        self._num_read = len(context)
        return True

    def _append(self, text: str) -> None:
        """Add text to the source, encoding its last tokens again, from where the first of them stays as it is.

        A tokenizer that puts a space before every text needs a tail that begins with a word.
        """
        first = len(self._begin)
        for back in (*range(TAIL, 2 * TAIL), len(self._source)):
            start = max(first, len(self._source) - back)
            ids = self._from(_text(self._from, self._source[start:]) + text, add_special_tokens=False)["input_ids"]
            if start == first or ids[:1] == self._source[start : start + 1]:
                break
        self._source[start:] = ids
        self._draft.distrust(start)

    def _encoded(self, context: list[int], written: list[int]) -> list[int]:
        """What the draft wrote in the target's tokens, so that it follows the context's last ones."""
        overlap = self._source[-TAIL:]
        before, after = _text(self._from, overlap), _text(self._from, overlap + written)
        new = after[len(before) :].rstrip(HALF)  # a character cut short is left out
        if not new or not after.startswith(before):
            return []
        tail = context[-TAIL:]
        text = _text(self._to, tail)
        together = self._to(text + new, add_special_tokens=False)["input_ids"]
        for cut in sorted(range(len(together)), key=lambda cut: abs(cut - len(tail))):  # mostly the first
            if _text(self._to, together[:cut]) == text:
                return together[cut:]
        alone = self._to(new, add_special_tokens=False)["input_ids"]  # a token would span the seam: two then
        return alone if _text(self._to, tail + alone) == text + new else []


def _text(tokenizer: Any, ids: list[int]) -> str:
    return tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
