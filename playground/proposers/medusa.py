"""Medusa: several heads guess the next tokens at once, from one hidden state of the target.

A chain takes one token per head: each is drawn without knowing the drafted ones before it, from a distribution
that depends on the context only. A tree takes the likeliest tokens of each head, hence one-hot; its shape
is fixed beforehand from how often each head's 1st, 2nd, … choice was right. Verified exactly, unlike the
paper's typical acceptance. Source: Cai et al. 2024, arXiv 2401.10774.
"""

import heapq
import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from playground.config import SamplingConfig
from playground.heads import DraftVocabulary, MedusaHeads
from playground.proposers.base import Proposal, Proposer
from playground.proposers.chain import Chain
from playground.verify import Verdict

FIGURES_NAME = "figures.json"


@dataclass(frozen=True, slots=True)
class Branch:
    """A node of a fixed tree: which of its head's choices follows which node."""

    parent: int  # index of a node before it, -1 = the context
    depth: int  # 0 = head 1
    rank: int  # 0 = the head's likeliest token


def best_tree(accuracies: Sequence[Sequence[float]], num_nodes: int) -> list[Branch]:
    """The tree of `num_nodes` nodes with the most expected accepted tokens, best node first.

    Args:
        accuracies: by depth and rank: how often that choice of that head is right. A node's worth is the
            product along its path, as if the heads were right independently.

    Returns:
        The nodes, fewer where no others are worth anything; parents and likelier siblings come first.

    >>> [(b.parent, b.depth, b.rank) for b in best_tree([[0.6, 0.2], [0.4, 0.1]], 4)]
    [(-1, 0, 0), (0, 1, 0), (-1, 0, 1), (2, 1, 0)]
    """
    tree: list[Branch] = []
    order = itertools.count()  # of equals, the one reached first
    heap = [(-accuracies[0][0], next(order), 1.0, Branch(-1, 0, 0))] if accuracies and accuracies[0] else []
    while heap and len(tree) < num_nodes:
        negative, _, above, branch = heapq.heappop(heap)
        if negative == 0:
            break
        tree.append(branch)
        depth, rank = branch.depth, branch.rank + 1
        if rank < len(accuracies[depth]):
            sibling = Branch(branch.parent, depth, rank)
            heapq.heappush(heap, (-above * accuracies[depth][rank], next(order), above, sibling))
        if depth + 1 < len(accuracies) and accuracies[depth + 1]:
            child = Branch(len(tree) - 1, depth + 1, 0)
            heapq.heappush(heap, (negative * accuracies[depth + 1][0], next(order), -negative, child))
    return tree


def read_accuracies(folder: Path) -> list[list[float]]:
    """Per head, the share of its 1st, 2nd, … choice that was right, as training measured it.

    Raises:
        ValueError: the folder holds no such figures.
    """
    try:
        found = json.loads((Path(folder) / FIGURES_NAME).read_text(encoding="utf-8"))["rank_accuracy"]
        return [found[f"depth {number}"] for number in range(1, len(found) + 1)]
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{folder} has no {FIGURES_NAME} with the accuracy of each head: draft a chain.") from error


class MedusaProposer(Proposer):
    """Drafts up to one token per head; head i guesses the i-th drafted token.

    At row n − 2, the last token the target has seen, the target itself chose token n − 1, whose embedding the
    heads read too; head 1 guesses token n, head i token n − 1 + i. States (1, K, hidden) → draft logits (K, D).

    Attributes:
        stops_after: as DraftModelProposer's, for a chain.
    """

    name = "medusa"
    stops_after: Callable[[float], bool] | None = None

    def __init__(
        self,
        heads: MedusaHeads,
        embedding: torch.Tensor,
        num_tokens: int,
        accuracies: Sequence[Sequence[float]] = (),
        num_nodes: int = 0,
    ):
        """Args:
        heads: bound to the target.
        embedding: (ids, hidden) the target's.
        num_tokens: ids the target knows.
        accuracies: what `best_tree` takes; needed for a tree only.
        num_nodes: tokens of the tree, 0 = a chain.
        """
        if num_nodes and not accuracies:
            raise ValueError("A tree needs the measured accuracy of each head.")
        self.taps = frozenset(heads.feature_layers)
        self._heads, self._embedding, self._num_nodes = heads, embedding, num_nodes
        self._vocabulary = DraftVocabulary(heads.draft_ids, num_tokens)
        self._accuracies = [list(ranks)[: len(heads.draft_ids)] for ranks in accuracies[: heads.num_heads]]
        self._trees: dict[int, list[Branch]] = {}  # by depth allowed
        self.reset()

    def reset(self) -> None:
        """Forget the last run."""
        self._hidden: dict[int, torch.Tensor] | None = None  # layer → (1, hidden) of the last token seen

    def observe_prefill(self, hidden: dict[int, torch.Tensor]) -> None:
        """Keep the states of the last token."""
        self._hidden = {layer: states[-1:].clone() for layer, states in hidden.items()}

    def observe(
        self, verdict: Verdict, hidden: dict[int, torch.Tensor], scratch_logits: torch.Tensor | None = None
    ) -> None:
        """Keep the states of the last accepted token."""
        self.observe_prefill(hidden)

    @torch.inference_mode()
    def propose(self, context: list[int], gamma: int, sampling: SamplingConfig, rng: torch.Generator) -> Proposal:
        """Run all heads once; a prompt of one token has no state to run them on."""
        if self._hidden is None or gamma < 1:
            return Proposal([])
        newest = self._embedding[context[-1]][None]  # (1, hidden)
        logits = self._heads.logits(self._heads(self._hidden, newest)[0, :gamma])  # (depth, D)
        if self._num_nodes:
            return self._tree(logits)
        chain = Chain(self._vocabulary, len(logits), sampling, rng, stops_after=self.stops_after)
        for row in logits:
            chain.draw(row)
            if chain.done:
                break
        return chain.proposal()

    def _tree(self, logits: torch.Tensor) -> Proposal:
        depth = len(logits)
        if depth not in self._trees:
            self._trees[depth] = best_tree(self._accuracies[:depth], self._num_nodes)
        tree = self._trees[depth]
        if not tree:
            return Proposal([])
        num_ranks = 1 + max(branch.rank for branch in tree)
        choices = self._vocabulary.ids[logits.topk(num_ranks, dim=-1).indices].tolist()  # depth × ranks
        ids = [choices[branch.depth][branch.rank] for branch in tree]
        return Proposal(ids, None, [branch.parent for branch in tree])
