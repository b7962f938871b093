"""One round of a run as the inspector needs it: drafted, judged, what stood before. From events; knows no pictures."""

from dataclasses import dataclass, field

from playground.config import SamplingConfig
from playground.events import Event, Logits, Proposed, Started, Tested, Verified


@dataclass(slots=True)
class RoundFacts:
    """A round and its surroundings.

    Attributes:
        text_before: the output before the round.
        depths: of each drafted token, from 1.
        tests: the verdict on each tested token, by node.
        logits: what it can be judged again from, if that was kept.
        sampling: what the run drew with.
    """

    proposed: Proposed
    verified: Verified
    text_before: str
    logits: Logits | None = None
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    depths: list[int] = field(default_factory=list)
    tests: dict[int, Tested] = field(default_factory=dict)

    def __post_init__(self):
        for node in self.proposed.nodes:
            self.depths.append(1 if node.parent < 0 else self.depths[node.parent] + 1)
        self.tests = {test.node: test for test in self.verified.tested}

    @property
    def is_tree(self) -> bool:
        """Whether the draft branches."""
        return any(node.parent != index - 1 for index, node in enumerate(self.proposed.nodes))

    @property
    def has_refusal(self) -> bool:
        """Whether a drafted token was refused."""
        return any(not test.accepted for test in self.verified.tested)

    def kind_of(self, node: int) -> str:
        """accepted, rejected or untested."""
        test = self.tests.get(node)
        return "untested" if test is None else "accepted" if test.accepted else "rejected"


def rounds_of(events: list[Event]) -> list[RoundFacts]:
    """The finished rounds of a run, in order."""
    rounds: list[RoundFacts] = []
    proposed, text, sampling = None, "", SamplingConfig()
    for event in events:
        if isinstance(event, Started):
            sampling = sampling_of(event.settings)
        elif isinstance(event, Proposed):
            proposed = event
        elif isinstance(event, Verified) and proposed is not None:
            rounds.append(RoundFacts(proposed, event, text, sampling=sampling))
            text += "".join(item.text for item in event.committed)
        elif isinstance(event, Logits) and 0 < event.round <= len(rounds):
            rounds[event.round - 1].logits = event
    return rounds


def sampling_of(settings: dict) -> SamplingConfig:
    """What a run drew with; greedy where its settings do not say."""
    names = ("temperature", "top_k", "top_p", "seed")
    try:
        return SamplingConfig(**{name: settings[name] for name in names if name in settings})
    except (ValueError, TypeError):
        return SamplingConfig()
