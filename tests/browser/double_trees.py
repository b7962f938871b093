"""Rounds whose draft is a tree, made by hand: what a proposer with branches and its target may say.

Each is written as the branches of its draft, best first, with the words that were tested and kept.
"#trees" plays them all, one round each; they end in the middle of nowhere, as a run at its limit does.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from playground.events import Candidate, Committed, Event, Node, Position, Proposed, Tested, Verified

DEEP = " the river moves under a low bridge and nobody hears it before rain comes down"


@dataclass(frozen=True, slots=True)
class TreeRound:
    """One round: `branches` share what they begin with; `tested` are indices of nodes, `kept` those accepted."""

    branches: tuple[tuple[str, ...], ...]
    tested: tuple[int, ...]
    kept: tuple[int, ...]
    final: str  # the target's own token, "" where the run ended inside the draft
    certain: bool = False  # a proposer without probabilities


def words(line: str) -> tuple[str, ...]:
    """Cut a line into words with the space before them."""
    return tuple(" " + word for word in line.split())


def wide_and_deep() -> TreeRound:
    """32 nodes, 16 deep: the widest and the deepest that can be asked for at once."""
    spine = words(DEEP)
    assert len(spine) == 15
    branches = [(*spine, " again"), (" a", " stream", " runs"), (" The", " river", " is")]
    branches += [(*spine[:1], " stream", " moves"), (*spine[:2], " flows"), (*spine[:3], " below", " the")]
    branches += [(*spine[:5], " stone", " arch"), (*spine[:9], " sees", " it"), (*spine[:2], " runs")]
    return TreeRound(tuple(branches), (0, 1, 2, 3, 4, 5, 27), (0, 1, 2, 3, 4), " high")


ROUNDS = (
    # lookahead: guesses without probabilities; the second of three is kept whole
    TreeRound(
        (words("of the old town"), words("in the old house"), words("and then")),
        (0, 4, 5, 6, 7),
        (4, 5, 6, 7),
        ",",
        certain=True,
    ),
    # refused siblings at two depths, then none is left: residual
    TreeRound(
        (words("was here yesterday"), words("is gone"), words("is here now"), words("is there")),
        (0, 3, 4, 5, 7),
        (3,),
        " rather",
    ),
    # texts that are hard to show: white space, bytes, markup, a very long word
    TreeRound(
        (
            ("\n\n", "    ", "return"),
            ("\t", "⟨E2 80⟩", "<b>&amp;"),
            ("\t", " Donaudampfschifffahrtsgesellschaft", "\r\n"),
            (" ", " "),
        ),
        (0, 3, 4, 6, 7),
        (3, 6, 7),
        "}",
    ),
    wide_and_deep(),
    # nothing kept
    TreeRound((words("No one"), words("Nobody"), words("They")), (0, 2, 3), (), " We"),
    # an end inside the draft: no token of the target's own
    TreeRound((words("The end"), words("An end"), ("<|im_end|>",)), (0, 1), (0, 1), ""),
)


def nodes_of(made: TreeRound) -> tuple[Node, ...]:
    """The draft's nodes: a branch adds what no branch before it had."""
    nodes: list[Node] = []
    known: dict[tuple[str, ...], int] = {(): -1}
    for rank, branch in enumerate(made.branches):
        for end in range(1, len(branch) + 1):
            if branch[:end] not in known:
                known[branch[:end]] = len(nodes)
                q = 1.0 if made.certain else round(0.72 / (1 + rank) + 0.01 * (end % 5), 3)
                nodes.append(Node(len(nodes) + 300, branch[end - 1], known[branch[: end - 1]], q))
    return tuple(nodes)


def round_of(number: int, made: TreeRound) -> tuple[Proposed, Verified]:
    """One round as its two events."""
    nodes = nodes_of(made)
    tested = tuple(
        Tested(i, nodes[i].id, 0.91 if i in made.kept else 0.03, nodes[i].q, 0.5, i in made.kept, 0.4)
        for i in made.tested
    )
    committed = [Committed(nodes[i].id, "accepted", nodes[i].text, nodes[i].text, 0.8) for i in made.kept]
    refused = bool(tested) and not tested[-1].accepted
    kind = ("residual" if refused else "bonus") if made.final else ""
    if made.final:
        committed.append(Committed(99, kind, made.final, made.final, 0.6))
    top = (Candidate(1, " the", 0.5, 2.0), Candidate(2, " a", 0.25, 1.0))
    position = Position(top, () if made.certain else top, ())
    positions = (position,) * (len(tested) + (kind == "bonus"))
    verdict = Verified(number, tested, tuple(committed), kind, positions, 25.0, 0.4, 30 + number)
    return Proposed(number, nodes, 1.0 + 0.1 * len(nodes)), verdict


def tree_rounds() -> Iterator[Event]:
    """The events of all rounds in turn."""
    for number, made in enumerate(ROUNDS, 1):
        yield from round_of(number, made)
