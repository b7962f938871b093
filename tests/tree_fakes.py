"""Stand-ins that draft trees and scratch tokens: shapes and guesses at random, true ones among them."""

import random

import torch

from playground.proposers import Proposal, Proposer
from playground.proposers.base import Scratch
from playground.sampling import draw


def random_parents(rng: random.Random, depth: int, width: int) -> list[int]:
    """A tree whose longest path has `depth` tokens, with up to `width` siblings, in any valid order."""
    parents = list(range(-1, depth - 1))  # one path to the full depth, so that gamma is used
    depths = list(range(1, depth + 1))
    for _ in range(rng.randrange(depth * width)):
        parent = rng.choice([-1, *(node for node, at in enumerate(depths) if at < depth)])
        parents.append(parent)
        depths.append(1 if parent < 0 else depths[parent] + 1)
    return parents


class TreeProposer(Proposer):
    """Deterministic random trees: each token is the true one with chance `right`, else any."""

    name = "tree"

    def __init__(self, truth, prompt_length, vocab, right=0.6, width=3, scratch=0, seed=0):
        self.truth, self.prompt_length, self.vocab = list(truth), prompt_length, vocab
        self.right, self.width, self.scratch, self.seed = right, width, scratch, seed
        self.reset()

    def reset(self):
        self.rng = random.Random(self.seed)
        self.scratch_seen, self.verdicts = [], []

    def _guess(self, place):
        known = place < len(self.truth) and self.rng.random() < self.right
        return self.truth[place] if known else self.rng.randrange(self.vocab)

    def propose(self, context, gamma, sampling, rng):
        parents = random_parents(self.rng, gamma, self.width)
        start, depths, ids = len(context) - self.prompt_length, [], []
        for parent in parents:
            depths.append(0 if parent < 0 else depths[parent] + 1)
            ids.append(self._guess(start + depths[-1]))
        return Proposal(ids, None, parents, self._scratch(len(ids)))

    def _scratch(self, num_drafted):
        if not self.scratch:
            return None
        ids = [self.rng.randrange(self.vocab) for _ in range(self.scratch)]
        return Scratch(ids, [self.rng.randrange(-1, num_drafted + j) for j in range(self.scratch)])

    def observe(self, verdict, hidden, scratch_logits=None):
        self.verdicts.append(verdict)
        self.scratch_seen.append(scratch_logits)


class DrawnTreeProposer(Proposer):
    """Siblings drawn from a table's row of their parent's token, without replacement or independently."""

    name = "drawn tree"

    def __init__(self, table, parents, replacement):
        self.table, self.parents, self.replacement = torch.tensor(table), parents, replacement

    def propose(self, context, gamma, sampling, rng):
        ids, rows, parents = [], [], []
        depths = []
        for parent in self.parents:
            depth = 1 if parent < 0 else depths[parent] + 1
            depths.append(depth)
            if depth > gamma:
                break  # parents come first by depth in the shapes used here
            row = self.table[context[-1] if parent < 0 else ids[parent]].clone()
            if not self.replacement:
                row[[i for i, other in zip(ids, parents, strict=True) if other == parent]] = 0
            rows.append(row / row.sum())
            ids.append(draw(rows[-1], rng))
            parents.append(parent)
        return Proposal(ids, torch.stack(rows), parents)


class TappingProposer(TreeProposer):
    """Keeps the hidden states it is given, in the order of the context."""

    name = "tapping"

    def __init__(self, taps, *args, **options):
        self.taps = frozenset(taps)
        super().__init__(*args, **options)

    def reset(self):
        super().reset()
        self.seen = {layer: [] for layer in self.taps}
        self.known = []  # rows known at each call of propose, and the context's length

    def observe_prefill(self, hidden):
        for layer in self.taps:
            self.seen[layer].append(hidden[layer])

    def propose(self, context, gamma, sampling, rng):
        self.known.append((sum(map(len, self.seen[min(self.taps)])), len(context)))
        return super().propose(context, gamma, sampling, rng)

    def observe(self, verdict, hidden, scratch_logits=None):
        super().observe(verdict, hidden, scratch_logits)
        self.observe_prefill(hidden)
