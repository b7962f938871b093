"""The proposers, one file each. `PROPOSERS` maps the name a person chooses to its class."""

from playground.proposers.adaptive import AdaptiveProposer
from playground.proposers.base import Proposal, Proposer
from playground.proposers.draft_model import DraftModelProposer
from playground.proposers.eagle import EagleProposer
from playground.proposers.early_exit import EarlyExitProposer
from playground.proposers.lookahead import LookaheadProposer
from playground.proposers.medusa import MedusaProposer
from playground.proposers.ngram import NgramProposer
from playground.proposers.oracle import NoisyOracleProposer, OracleProposer
from playground.proposers.random_guess import RandomProposer
from playground.proposers.suffix import SuffixProposer
from playground.proposers.translated import TranslatedProposer

PROPOSERS: dict[str, type[Proposer]] = {
    "none": Proposer,
    "ngram": NgramProposer,
    "suffix": SuffixProposer,
    "draft": DraftModelProposer,
    "quantized": DraftModelProposer,
    "early-exit": EarlyExitProposer,
    "medusa": MedusaProposer,
    "eagle": EagleProposer,
    "lookahead": LookaheadProposer,
    "self": DraftModelProposer,
    "oracle": OracleProposer,
    "noisy-oracle": NoisyOracleProposer,
    "random": RandomProposer,
}

__all__ = [
    "PROPOSERS",
    "AdaptiveProposer",
    "DraftModelProposer",
    "EagleProposer",
    "EarlyExitProposer",
    "LookaheadProposer",
    "MedusaProposer",
    "NgramProposer",
    "NoisyOracleProposer",
    "OracleProposer",
    "Proposal",
    "Proposer",
    "RandomProposer",
    "SuffixProposer",
    "TranslatedProposer",
]
