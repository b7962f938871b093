"""EAGLE: one decoder layer drafts on from the target's features, with a cache of its own.

Between rounds the cache holds exactly the rows made from the target's features; what drafting adds from
the head's own features is rolled back as soon as the draft is made, so any verdict leaves it valid. A
chain draws each token from the head's filtered distribution. The dynamic tree follows EAGLE-2: nodes of
the highest cumulative confidence are expanded, layer by layer, and of all that came up the best N are
kept. Which ones depends on the draft's probabilities only, so its nodes are certain, one-hot.
Sources: Li et al. 2024, arXiv 2401.15077 (EAGLE) and 2406.16858 (EAGLE-2); Li et al. 2025 (EAGLE-3).
"""

from collections.abc import Callable, Iterator, Sequence

import torch

from playground.config import SamplingConfig
from playground.heads import DraftVocabulary, EagleCache, EagleHead
from playground.proposers.base import Proposal, Proposer
from playground.proposers.chain import Chain
from playground.verify import Verdict

PREFILL_CHUNK = 256  # rows per pass


class Candidates:
    """The nodes of a growing tree with their cumulative log confidence; parents come before children.

    Attributes:
        ids, parents, scores: of each node in the order of making; parent -1 = the context.
    """

    def __init__(self, num_kept: int):
        self._num_kept = num_kept
        self.ids: list[int] = []
        self.parents: list[int] = []
        self.scores: list[float] = []

    def add(self, parents: Sequence[int], ids: list[list[int]], log_probs: list[list[float]]) -> None:
        """Add children of each of `parents`, most confident first."""
        for parent, tokens, values in zip(parents, ids, log_probs, strict=True):
            above = 0.0 if parent < 0 else self.scores[parent]
            self.ids += tokens
            self.parents += [parent] * len(tokens)
            self.scores += [above + min(value, 0.0) for value in values]

    def best(self) -> list[int]:
        """The kept nodes, best first. No child scores above its parent, so they are a tree, parents first."""
        return sorted(range(len(self.ids)), key=lambda node: (-self.scores[node], node))[: self._num_kept]

    def proposal(self) -> Proposal:
        """The kept nodes as a draft."""
        kept = self.best()
        place = {node: index for index, node in enumerate(kept)} | {-1: -1}
        parents = [place[self.parents[node]] for node in kept]
        return Proposal([self.ids[node] for node in kept], None, parents)


class EagleProposer(Proposer):
    """Drafts with an `EagleHead`.

    Row t reads the embedding (hidden,) of token t + 1 and the feature (hidden,) of token t, and guesses token
    t + 2 as draft logits (D,). After n tokens the rows 0 … n − 2 come from the target's features; the last of
    them guesses token n, the first of the draft.

    Attributes:
        stops_after: as DraftModelProposer's, for a chain.
    """

    name = "eagle"
    stops_after: Callable[[float], bool] | None = None

    def __init__(
        self,
        head: EagleHead,
        embedding: torch.Tensor,
        end_ids: Sequence[int],
        num_tokens: int,
        num_nodes: int = 0,
        top_k: int = 4,
    ):
        """Args:
        head: bound to the target.
        embedding: (ids, hidden) the target's.
        end_ids: tokens after which drafting a chain on is useless.
        num_tokens: ids the target knows.
        num_nodes: tokens of the tree, 0 = a chain.
        top_k: children tried per expanded node, and nodes expanded per layer.
        """
        if num_nodes < 0 or top_k < 1:
            raise ValueError("A tree needs at least one child per node; 0 nodes is a chain.")
        self.taps = frozenset(head.feature_layers)
        self._head, self._embedding, self._end_ids = head, embedding, frozenset(end_ids)
        self._vocabulary = DraftVocabulary(head.draft_ids, num_tokens)
        self._num_nodes, self._top_k = num_nodes, min(top_k, len(head.draft_ids))
        self._cache = EagleCache()
        self.reset()

    def reset(self) -> None:
        """Forget the last run."""
        self._cache.rollback(0)
        self._seen: list[dict[int, torch.Tensor]] = []  # hidden states not fused yet
        self._features: list[torch.Tensor] = []  # the target's, of tokens whose rows are not cached yet

    @torch.inference_mode()
    def observe_prefill(self, hidden: dict[int, torch.Tensor]) -> None:
        """Keep the features of the next tokens."""
        self._features.append(self._head.fuse(hidden))

    def observe(
        self, verdict: Verdict, hidden: dict[int, torch.Tensor], scratch_logits: torch.Tensor | None = None
    ) -> None:
        """Keep what the features of the committed tokens are made from, as a part of the next draft."""
        self._seen.append(hidden)

    def prefill(self, context: list[int]) -> Iterator[int]:
        """Make the rows of the prompt but the last one, whose guess begins the first draft."""
        features = torch.cat(self._features) if self._features else self._embedding[:0]
        while len(features) > 1:
            count = min(PREFILL_CHUNK, len(features) - 1)
            self._catch_up(context, features[:count])
            features = features[count:]
            self._features = [features]
            yield self._cache.length

    @torch.inference_mode()
    def propose(self, context: list[int], gamma: int, sampling: SamplingConfig, rng: torch.Generator) -> Proposal:
        """Catch up on the committed tokens, then draft; a prompt of one token has no features yet."""
        self._features += [self._head.fuse(hidden) for hidden in self._seen]
        self._seen = []
        if not self._features or gamma < 1:
            return Proposal([])
        feature = self._catch_up(context, torch.cat(self._features))[-1:]  # (1, hidden)
        self._features = []
        num_rows = self._cache.length
        assert num_rows == len(context) - 1
        try:
            if self._num_nodes:
                return self._tree(feature, gamma)
            return self._chain(feature, Chain(self._vocabulary, gamma, sampling, rng, self._end_ids, self.stops_after))
        finally:
            self._cache.rollback(num_rows)

    @torch.inference_mode()
    def _catch_up(self, context: list[int], features: torch.Tensor) -> torch.Tensor:
        """Add the next rows, from features (n, hidden) of the target."""
        start = self._cache.length
        tokens = context[start + 1 : start + 1 + len(features)]
        return self._rows(tokens, features, list(range(start, start + len(features))))

    def _rows(self, tokens: list[int], features: torch.Tensor, positions: list[int], mask=None) -> torch.Tensor:
        device = features.device
        embeds = self._embedding[torch.tensor(tokens, device=device)]
        return self._head(embeds, features, torch.tensor(positions, device=device), mask, self._cache)

    def _chain(self, feature: torch.Tensor, chain: Chain) -> Proposal:
        while True:
            token = chain.draw(self._head.guess(feature)[0])
            if chain.done:
                return chain.proposal()
            feature = self._rows([token], feature, [self._cache.length])

    def _tree(self, features: torch.Tensor, gamma: int) -> Proposal:
        """Expand the most confident nodes of each layer; those that cannot be kept any more are left alone."""
        tree, start = Candidates(self._num_nodes), self._cache.length
        expanded = [-1]  # nodes that `features` (m, hidden) belong to
        seen: dict[int, list[int]] = {-1: []}  # by expanded node: cache rows of its ancestors and itself
        for depth in range(gamma):
            found = self._head.guess(features).log_softmax(-1).topk(self._top_k, dim=-1)
            first = len(tree.ids)
            tree.add(expanded, self._vocabulary.ids[found.indices].tolist(), found.values.tolist())
            chosen = [node for node in tree.best() if node >= first][: self._top_k]
            if depth == gamma - 1 or not chosen:
                break
            parents = [tree.parents[node] for node in chosen]
            for row, node in enumerate(chosen):
                seen[node] = [*seen[tree.parents[node]], self._cache.length + row]
            mask = self._mask(start, [seen[node] for node in chosen])
            above = features[[expanded.index(parent) for parent in parents]]
            features = self._rows([tree.ids[node] for node in chosen], above, [start + depth] * len(chosen), mask)
            expanded = chosen
        return tree.proposal()

    def _mask(self, start: int, seen: list[list[int]]) -> torch.Tensor:
        """Bool (m, cached + m): each row sees the first `start` rows and those listed for it."""
        mask = torch.zeros(len(seen), self._cache.length + len(seen), dtype=torch.bool)
        mask[:, :start] = True
        for row, columns in enumerate(seen):
            mask[row, columns] = True
        return mask.to(self._embedding.device)
