"""Rules of verification that look right and are not: what each does to the output is the lesson.

Each is a rule for `engine.generate`. Only `RIGHT` gives the target's distribution. They judge chains; a
tree is judged by the right rule only. The letters p and q as in verify.py.
"""

from dataclasses import dataclass

import torch

from playground.config import SamplingConfig
from playground.proposers import Proposal, Proposer
from playground.sampling import draw
from playground.verify import Rule, Verdict, verify_chain, verify_tree

RIGHT = "right"


@dataclass(frozen=True, slots=True)
class NamedRule:
    """A rule with what it takes: `softmax_scored` has the draft's likeliest token judged as if it were drawn."""

    rule: Rule
    softmax_scored: bool = False


def argmax_agrees(p_probs, ids, parents, q_probs, rng) -> Verdict:
    """Keep a drafted token exactly when it is the target's likeliest, else take that one. Right at temperature 0."""
    return verify_chain(_one_hot(p_probs), ids, None, rng)


def argmax_after_rejection(p_probs, ids, parents, q_probs, rng) -> Verdict:
    """Judge rightly, but after a refusal take the target's likeliest token in place of one from the residual."""
    verdict = verify_chain(p_probs, ids, q_probs, rng)
    if verdict.final_kind == "residual":
        verdict.final_id = int(p_probs[verdict.num_accepted].argmax())
    return verdict


def target_after_rejection(p_probs, ids, parents, q_probs, rng) -> Verdict:
    """Judge rightly, but after a refusal draw from the target's distribution in place of the residual."""
    verdict = verify_chain(p_probs, ids, q_probs, rng)
    if verdict.final_kind == "residual":
        verdict.final_id = draw(p_probs[verdict.num_accepted], rng)
    return verdict


RULES: dict[str, NamedRule] = {
    RIGHT: NamedRule(verify_tree),
    "argmax-agrees": NamedRule(argmax_agrees),
    "argmax-after-rejection": NamedRule(argmax_after_rejection),
    "target-after-rejection": NamedRule(target_after_rejection),
    "softmax-scored-argmax": NamedRule(verify_tree, softmax_scored=True),
}


def _one_hot(p_probs: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(p_probs).scatter_(1, p_probs.argmax(-1, keepdim=True), 1.0)


class SoftmaxScored(Proposer):
    """Drafts the likeliest token, but claims to have drawn it from the draft's distribution: one token a round."""

    def __init__(self, inner: Proposer):
        self._inner, self.name, self.taps = inner, inner.name, inner.taps
        self.reset, self.prefill = inner.reset, inner.prefill
        self.observe, self.observe_prefill = inner.observe, inner.observe_prefill

    def propose(self, context: list[int], gamma: int, sampling: SamplingConfig, rng: torch.Generator) -> Proposal:
        """Draft one token; one that is certain anyway stays as it is."""
        proposal = self._inner.propose(context, gamma, sampling, rng).first(1)
        if proposal.probs is not None:
            proposal.ids = [int(proposal.probs[0].argmax())]
        return proposal


def applied(name: str, proposer: Proposer) -> tuple[Proposer, Rule]:
    """The proposer and the rule of a name in RULES."""
    chosen = RULES[name]
    return (SoftmaxScored(proposer) if chosen.softmax_scored else proposer), chosen.rule
