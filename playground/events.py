"""What a run says, as frozen plain values: no tensors, no models, JSON both ways.

One run is a list of events, in this order:

    Started Progress* Prefilled Calibrated? Prefilled? (Proposed Verified)* Logits* Calibrated? Finished | Failed

A recorded run, the live page, charts, tests and exports all read this one stream. `Progress` may
come anywhere before the end; a second `Prefilled` reports what was left to read when rounds begin.
Times are milliseconds of wall clock unless the name ends in `_s`.
"""

import json
from dataclasses import asdict, dataclass, fields, is_dataclass
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

# Kinds of a committed token. "plain": the round drafted nothing, so the target simply took a step.
KINDS = ("accepted", "residual", "bonus", "plain")
REASONS = ("end_token", "stop_string", "length", "context_full", "stopped")


@dataclass(frozen=True, slots=True)
class Started:
    """A run begins. `settings` is RunSettings.to_dict() or the like; `environment` says on what it runs."""

    run_id: str
    settings: dict
    prompt_ids: tuple[int, ...]
    prompt_text: str
    proposer: str
    gamma: int
    environment: dict


@dataclass(frozen=True, slots=True)
class Progress:
    """Something that takes time before tokens come. `fraction` is 0..1, or None when unknown."""

    stage: str  # "downloading", "converting", "loading", "prefill", "calibrating"
    message: str
    fraction: float | None = None


@dataclass(frozen=True, slots=True)
class Prefilled:
    """The prompt is in the caches. `num_reused` of its tokens were already there from an earlier run."""

    num_tokens: int
    num_reused: int
    prefill_ms: float


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Plain decoding as measured by this engine on this prompt and precision, prefill apart.

    The one after the last round, where there is one, replaces the first: the mean of both moments.
    """

    tokens_per_second: float
    step_ms: float  # median of one plain round
    num_steps: int
    cached: bool  # True: measured moments ago for the same target, precision and context bucket


@dataclass(frozen=True, slots=True)
class Node:
    """One drafted token. `parent` is the index of the node it follows, -1 for the context's end.

    `q` is the probability it was drawn with (1.0 when the proposer is deterministic). `text` is for
    display: the token alone, bytes written as ⟨E2 80⟩ where it is not whole characters.
    """

    id: int
    text: str
    parent: int
    q: float


@dataclass(frozen=True, slots=True)
class Proposed:
    """The proposer's guess for one round (rounds count from 1). No nodes: it had none to make.

    A tree's nodes come parents first, siblings in the order in which they are tested.
    """

    round: int
    nodes: tuple[Node, ...]
    draft_ms: float
    num_scratch: int = 0  # extra tokens in the target's pass, never tested


@dataclass(frozen=True, slots=True)
class Tested:
    """The verdict on one drafted token: accepted when u·q < p. `overlap` is Σ min(p, q) there.

    In a tree, `p` of a token tried after a sibling's refusal is that of the residual this refusal left,
    and refused siblings stand before the accepted one. The accepted tokens are the winning path.
    """

    node: int  # index into Proposed.nodes
    id: int
    p: float
    q: float
    u: float
    accepted: bool
    overlap: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """One of the likeliest tokens at a position; `logit` is the target's own, before temperature."""

    id: int
    text: str
    prob: float
    logit: float | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """The top of the distributions at one checked position, cut from full-vocabulary probabilities.

    Position i is where the i-th tested token stands (siblings share one); one more follows a draft that
    was accepted to its end. `draft` and `residual` are empty where there is none.
    """

    target: tuple[Candidate, ...]
    draft: tuple[Candidate, ...]
    residual: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Committed:
    """A token of the output. `text` joined over a run is the output, character for character.

    `text` may be "" while a character is incomplete, and for special tokens; `label` is for display.
    `p` is the target's probability of the token.
    """

    id: int
    kind: str
    text: str
    label: str
    p: float


@dataclass(frozen=True, slots=True)
class Verified:
    """The end of a round: what the one target pass said and what became part of the output.

    len(tested) <= len(nodes): drafted tokens after the first rejection or past an end are untested, and
    in a tree those on branches not taken.
    `final_kind` is the kind of the target's own token, or "" when the run ended inside the draft.
    """

    round: int
    tested: tuple[Tested, ...]
    committed: tuple[Committed, ...]
    final_kind: str
    positions: tuple[Position, ...]
    verify_ms: float
    other_ms: float
    context_length: int  # tokens before this round's commit, prompt included
    sampling_ms: float = 0.0  # of other_ms: logits to probabilities, verdict, the target's own token
    rollback_ms: float = 0.0  # of other_ms: the cache cut back to the winning path


@dataclass(frozen=True, slots=True)
class LogitRow:
    """One row of logits in short: its likeliest tokens and the drafted one, and all others in groups of near ones.

    A group of `rest_counts[i]` tokens counts as that many of logit `rest_logits[i]` (the logarithm of their mean
    e^logit). In a draft's row the logits are ln q, q as drawn from; a certain token stands alone.
    """

    ids: tuple[int, ...]
    texts: tuple[str, ...]
    logits: tuple[float, ...]
    rest_logits: tuple[float, ...] = ()
    rest_counts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Logits:
    """What a round's distributions were made from, told after the last round so that no round pays for it.

    `target` has a row after the context and one after each drafted token; `draft` one per drafted token.
    """

    round: int
    target: tuple[LogitRow, ...]
    draft: tuple[LogitRow, ...]


@dataclass(frozen=True, slots=True)
class Finished:
    """The run is over, for this reason, with the whole output text and ids."""

    reason: str
    text: str
    token_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """The run could not go on: a sentence for a person, and what to do about it."""

    message: str
    hint: str = ""


Event = Started | Progress | Prefilled | Calibrated | Proposed | Verified | Logits | Finished | Failed
_TYPES = {cls.__name__: cls for cls in get_args(Event)}


def to_json(event: Event) -> str:
    """Write one event as one line of JSON."""
    return json.dumps({"event": type(event).__name__} | asdict(event), ensure_ascii=False, separators=(",", ":"))


def from_json(line: str) -> Event:
    """Read one line back. Raises ValueError when it is not an event this version knows."""
    record = json.loads(line)
    if not isinstance(record, dict) or record.get("event") not in _TYPES:
        raise ValueError("Not an event: expected an object with a known 'event' name.")
    return _build(_TYPES[record.pop("event")], record)


def _build(cls: type, record: dict) -> Any:
    hints = get_type_hints(cls)
    names = {item.name for item in fields(cls)}
    if not isinstance(record, dict) or not set(record) <= names:
        raise ValueError(f"{cls.__name__} has the fields {', '.join(sorted(names))}.")
    try:
        return cls(**{name: _value(hints[name], value) for name, value in record.items()})
    except TypeError as error:
        raise ValueError(f"{cls.__name__} is incomplete: {error}") from error


def _value(hint: Any, value: Any) -> Any:
    """Check `value` against a field's type: nested dataclasses, tuples, unions, scalars."""
    if is_dataclass(hint):
        return _build(hint, value)
    if get_origin(hint) is tuple:
        if not isinstance(value, list):
            raise ValueError(f"Expected a list, not {type(value).__name__}.")
        return tuple(_value(get_args(hint)[0], item) for item in value)
    if isinstance(hint, UnionType):
        if value is None and type(None) in get_args(hint):
            return None
        return _value(get_args(hint)[0], value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise ValueError(f"Expected {hint.__name__}, not {type(value).__name__}.")
    return value
