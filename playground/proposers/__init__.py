"""The proposers, one file each. `PROPOSERS` maps the name a person chooses to its class."""

from playground.proposers.base import Proposal, Proposer
from playground.proposers.draft_model import DraftModelProposer
from playground.proposers.ngram import NgramProposer

PROPOSERS: dict[str, type[Proposer]] = {
    "none": Proposer,
    "ngram": NgramProposer,
    "draft": DraftModelProposer,
    "quantized": DraftModelProposer,
}

__all__ = ["PROPOSERS", "DraftModelProposer", "NgramProposer", "Proposal", "Proposer"]
