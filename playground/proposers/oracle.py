"""The oracle replays an answer known beforehand: how fast a run would be if every guess were right.

The noisy oracle replaces each drafted token by another one with chance 1 − alpha, so a wished alpha can be
tried on the real engine. What is drafted is certain once it is chosen, so q is one-hot and the output is
the target's, whatever the answer says. Both are ceilings for teaching, not ways to be faster. vLLM's
"synthetic" acceptance has the same aim but changes the output; this does not.
"""

import random
from collections.abc import Callable, Iterator, Sequence

import torch

from playground.config import SamplingConfig
from playground.proposers.base import Proposal, Proposer

MIN_AGREED = 2  # tokens in a row that tell a place
Answer = Sequence[int] | Callable[[list[int]], Sequence[int]]


class OracleProposer(Proposer):
    """Drafts what the answer says at the same place, as long as the output follows it.

    After a token that the answer does not have (a near tie in half precision may fall the other way in a
    wide pass) it drafts nothing until it finds its place again: where the answer has the output's last
    tokens, two at least, as many as possible, as near as possible.

    With the answer 1 2 3 4 5 6 and the output 1 2 9 3 4 it goes on with 5 6.
    """

    name = "oracle"

    def __init__(self, answer: Answer):
        """Args:
        answer: the target's own continuation of the prompt, or what finds it given the prompt's ids.
        """
        self._find = answer if callable(answer) else lambda prompt: answer
        self.reset()

    def reset(self) -> None:
        """Forget the last prompt."""
        self._answer: list[int] | None = None
        self._start = 0  # tokens of the prompt
        self._shift = 0  # place in the answer less length of the output

    def prefill(self, context: list[int]) -> Iterator[int]:
        """Look up the answer to this prompt."""
        self._answer, self._start = list(self._find(context)), len(context)
        return iter(())

    def propose(self, context: list[int], gamma: int, sampling: SamplingConfig, rng: torch.Generator) -> Proposal:
        """Replay up to `gamma` tokens of the answer."""
        if self._answer is None:
            self.prefill(context)
        place = self._place(context[self._start :])
        return Proposal([] if place is None else self._answer[place : place + gamma])

    def _place(self, output: list[int]) -> int | None:
        """Where in the answer the output has arrived, or None when it is not to be found there."""
        expected = len(output) + self._shift
        if not output or self._answer[max(0, expected - 1) : expected] == output[-1:]:
            return expected
        places = [index + 1 for index, token in enumerate(self._answer) if token == output[-1]]
        place = max(places, key=lambda end: (self._agreed(output, end), -abs(end - expected)), default=None)
        if place is None or self._agreed(output, place) < MIN_AGREED:
            return None
        self._shift = place - len(output)
        return place

    def _agreed(self, output: list[int], end: int) -> int:
        """How many of the output's last tokens, at most 8, the answer has before `end`."""
        count = 0
        while count < min(8, end, len(output)) and output[-1 - count] == self._answer[end - 1 - count]:
            count += 1
        return count


class NoisyOracleProposer(OracleProposer):
    """An oracle that is wrong on purpose, token by token, with chance 1 − alpha."""

    name = "noisy-oracle"

    def __init__(self, answer: Answer, alpha: float, num_tokens: int):
        """Args:
        answer: as in OracleProposer.
        alpha: chance that a drafted token is the answer's, 0..1.
        num_tokens: ids the target knows; a wrong token is one of the others, all equally likely.
        """
        if num_tokens < 2:
            raise ValueError("A wrong token needs a vocabulary of at least two.")
        super().__init__(answer)
        self._alpha, self._num_tokens = alpha, num_tokens

    def reset(self) -> None:
        """Forget the last prompt and begin the noise anew."""
        super().reset()
        self._noise: random.Random | None = None

    def propose(self, context: list[int], gamma: int, sampling: SamplingConfig, rng: torch.Generator) -> Proposal:
        """Replay up to `gamma` tokens, each replaced with chance 1 − alpha."""
        if self._noise is None:  # a stream of its own: that of the run decides what is accepted
            self._noise = random.Random(f"noise {sampling.seed}")
        ids = super().propose(context, gamma, sampling, rng).ids
        return Proposal([token if self._noise.random() < self._alpha else self._other(token) for token in ids])

    def _other(self, token: int) -> int:
        wrong = self._noise.randrange(self._num_tokens - 1)
        return wrong + 1 if wrong >= token else wrong
