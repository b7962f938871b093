"""CachedLM: a causal model plus the tokens whose keys and values it holds.

Invariant: `ids` are exactly the tokens in the cache, `length == len(ids)`, whatever the consumer
did before. Rolling back is a change of length; a verified tree keeps one path. Knows nothing of
sampling, proposers or text. The contract is the one of the project's design: `extend`, `rollback`,
`keep`; a backend supplies the pass itself and the moving of cache rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import torch

PREFILL_CHUNK = 256  # tokens per prefill pass: a stop is noticed between two


class CachedLM(ABC):
    """A model with a cache. Not thread-safe: one run at a time.

    Attributes:
        vocab_size: tokens the tokenizer knows, and the number of logits unless there are `head_ids`.
        head_ids: (D,) the ids that logits stand for, in order, where the output head is cut to them.
        context_limit: longest context in tokens.
        ids: the tokens in the cache.
        taps: numbers of layers after which to keep the hidden states of each pass: 0 = embeddings,
            num_layers = before the final norm. Empty by default.
        hidden: layer number → (n, hidden) of the last pass, for the layers in `taps`.
    """

    num_layers: int
    head_ids: torch.Tensor | None = None

    def __init__(self, vocab_size: int, context_limit: int, device: torch.device):
        self.vocab_size = vocab_size
        self.context_limit = context_limit
        self.device = device
        self.ids: list[int] = []
        self.taps: frozenset[int] = frozenset()
        self.hidden: dict[int, torch.Tensor] = {}
        self._prefilled = 0  # leading ids that came from prefill passes of this chunking, hence reusable

    @property
    def length(self) -> int:
        """Tokens in the cache."""
        return len(self.ids)

    @torch.inference_mode()
    def extend(self, ids: Sequence[int], parents: Sequence[int] | None = None, logits: bool = True) -> torch.Tensor:
        """Run `ids` in one pass after what the cache holds, and add them to it.

        Args:
            ids: n token ids, n >= 1.
            parents: for a tree: the index in `ids` of the token each one follows, -1 for the end of
                the cache; a parent comes before its child. None = a chain.
            logits: False skips the output head and returns an empty tensor.

        Returns:
            float32 logits (n, vocab_size) of the token after each; (n, D) with `head_ids`.

        Raises:
            ValueError: no ids, an id outside the vocabulary, or a context longer than the limit.
        """
        if not ids:
            raise ValueError("extend needs at least one token.")
        if min(ids) < 0 or max(ids) >= self.vocab_size:
            raise ValueError(f"Token ids must be below {self.vocab_size}: got {min(ids)} to {max(ids)}.")
        if self.length + len(ids) > self.context_limit:
            raise ValueError(f"The context limit is {self.context_limit} tokens, {self.length + len(ids)} asked for.")
        out = self._forward(list(ids), None if parents is None else list(parents), logits)
        self.ids.extend(ids)
        return out

    def rollback(self, length: int) -> None:
        """Forget all tokens after the first `length` (absolute). Raises ValueError when there are fewer."""
        if not 0 <= length <= self.length:
            raise ValueError(f"Cannot roll back to {length}: the cache holds {self.length} tokens.")
        del self.ids[length:]
        self._prefilled = min(self._prefilled, length)
        self._truncate(length)

    @torch.inference_mode()
    def keep(self, start: int, indices: Sequence[int]) -> None:
        """Of the tokens after the first `start`, keep those at `indices` (one path of a verified tree).

        Args:
            start: tokens before the tree.
            indices: increasing indices relative to `start`.
        """
        path = [self.ids[start + index] for index in indices]
        if list(indices) != list(range(len(indices))):
            self._move(start, list(indices))
        self.rollback(start + len(indices))
        self.ids[start:] = path

    def prefill(self, ids: Sequence[int], keep_any: bool = False) -> Iterator[int]:
        """Bring the cache to exactly `ids`, chunk by chunk, yielding the tokens done so far.

        The longest common start that an earlier prefill made in the same chunks is kept, so the
        same context always gives the same keys and values, whatever ran before. `keep_any` also keeps
        what other passes made: right where only time is measured.
        """
        self.rollback(self._common(ids, self.length) if keep_any else self._reusable(ids))
        self._prefilled = min(self._prefilled, self.length) if keep_any else self.length
        yield self.length
        while self.length < len(ids):
            chunk = ids[self.length : self.length + PREFILL_CHUNK]
            self.extend(chunk, logits=False)
            if not keep_any:
                self._prefilled = self.length
            yield self.length

    def _reusable(self, ids: Sequence[int]) -> int:
        common = self._common(ids, self._prefilled)
        if common == len(ids):
            return common
        return common - common % PREFILL_CHUNK  # only whole chunks: the rest would be cut differently

    def _common(self, ids: Sequence[int], limit: int) -> int:
        limit, common = min(limit, len(ids)), 0
        while common < limit and self.ids[common] == ids[common]:
            common += 1
        return common

    def reset(self) -> None:
        """Forget everything."""
        self.rollback(0)

    @abstractmethod
    def _forward(self, ids: list[int], parents: list[int] | None, logits: bool) -> torch.Tensor:
        """One pass; must leave the cache rows length .. length+n-1 filled."""

    @abstractmethod
    def _truncate(self, length: int) -> None:
        """Drop cache rows from `length` on."""

    @abstractmethod
    def _move(self, start: int, indices: list[int]) -> None:
        """Copy cache rows start+indices[i] to start+i."""


def tree_layout(parents: Sequence[int]) -> tuple[list[int], torch.Tensor]:
    """Depths and visibility of a tree of tokens.

    Returns:
        depth of each token (0 = follows the context), and a bool (n, n) matrix: row i may see
        column j (itself and its ancestors).

    Raises:
        ValueError: a parent that does not come before its child.
    """
    depths: list[int] = []
    seen: list[list[int]] = []  # by each token: its ancestors and itself
    for index, parent in enumerate(parents):
        if not -1 <= parent < index:
            raise ValueError(f"Token {index} of a tree has parent {parent}; parents come first.")
        depths.append(0 if parent < 0 else depths[parent] + 1)
        seen.append([index] if parent < 0 else [*seen[parent], index])
    visible = torch.zeros(len(depths), len(depths), dtype=torch.bool)
    rows = [index for index, columns in enumerate(seen) for _ in columns]
    visible[rows, [column for columns in seen for column in columns]] = True
    return depths, visible
