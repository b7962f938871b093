"""The picture of one round: its verdicts in a table, its distributions as bars, the cache before and after.

Strings only, all escaped; reads events, so it works on recordings. Knows no gradio and no torch.
"""

from html import escape

from playground.events import Position, Tested
from playground.ui.round_facts import RoundFacts
from playground.ui.text_inspector import (
    AFTER,
    BARS,
    CACHE,
    CACHE_TITLE,
    CACHE_WORDS,
    COLUMN_HINTS,
    COLUMNS,
    DRAFTED,
    ENDINGS,
    HEAD,
    KEPT,
    NO_ROUND,
    NOTHING_DRAFTED,
    POSITION_TITLES,
    REFUSED,
    REMAINING,
    TREE_WORDS,
    UNTESTED_WORD,
)

CONTEXT_CHARACTERS = 160
MAX_BLOCKS = 24  # drawn one by one in the picture of the cache


def round_html(facts: RoundFacts | None, count: int) -> str:
    """The whole picture of one of `count` rounds."""
    if facts is None:
        return f'<div class="spec inspector"><p class="note">{escape(NO_ROUND)}</p></div>'
    parts = (_head(facts, count), _table(facts), _cache(facts), _positions(facts))
    return f'<div class="spec inspector">{"".join(parts)}</div>'


def token(text: str, kind: str = "") -> str:
    """A token as in the strip, white space visible."""
    shown = text.replace("\r", "␍").replace("\n", "⏎").replace("\t", "→").replace(" ", "␣")
    return f'<span class="tok {kind}">{escape(shown)}</span>'


def chance(value: float) -> str:
    """A probability as people read it: no false zero and no false one."""
    if value in (0, 1):
        return f"{value:.0f}"
    if 0 < value < 0.0005:
        return f"{value:.0e}"
    return "> 0.999" if 0.9995 < value < 1 else f"{value:.3f}"


def _head(facts: RoundFacts, count: int) -> str:
    proposed, verified = facts.proposed, facts.verified
    accepted = sum(test.accepted for test in verified.tested)
    words = escape(DRAFTED.format(drafted=len(proposed.nodes), tested=len(verified.tested), accepted=accepted))
    if not proposed.nodes:
        words = escape(NOTHING_DRAFTED)
    final = verified.committed[-1] if verified.final_kind and verified.committed else None
    added = token(final.label, final.kind) if final else ""
    ending = escape(ENDINGS[verified.final_kind]).replace("{token}", added)
    tree = f" {escape(TREE_WORDS)}" if facts.is_tree else ""
    out = "".join(token(item.label, item.kind) for item in verified.committed)
    return (
        f'<div class="round-head"><h3>{escape(HEAD.format(number=proposed.round, count=count))}</h3>'
        f"<p>{words}{tree} {ending}</p>"
        f'<p class="round-text"><span>{escape(facts.text_before[-CONTEXT_CHARACTERS:])}</span>{out}</p></div>'
    )


def table_html(heads: tuple[str, ...], rows: list[list[str]], kinds: list[str]) -> str:
    """A table of verdicts; cells are HTML already."""
    hints = (f' title="{escape(COLUMN_HINTS[head])}"' if head in COLUMN_HINTS else "" for head in heads)
    head = "".join(f"<th{hint}>{escape(name)}</th>" for name, hint in zip(heads, hints, strict=True))
    body = "".join(
        f'<tr class="{kind}">{"".join(f"<td>{cell}</td>" for cell in row)}</tr>'
        for row, kind in zip(rows, kinds, strict=True)
    )
    return f'<div class="lab-table"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def drafted_cell(facts: RoundFacts, node: int, kind: str) -> tuple[str, str]:
    """Where a drafted token stands, and the token; in a tree with what it follows."""
    item = facts.proposed.nodes[node]
    after = ""
    if facts.is_tree and item.parent >= 0:
        after = f" <small>{escape(AFTER).replace('{parent}', token(facts.proposed.nodes[item.parent].text))}</small>"
    return str(facts.depths[node]), token(item.text, kind) + after


def _table(facts: RoundFacts) -> str:
    if not facts.proposed.nodes:
        return ""
    rows, kinds = [], []
    order = [*(test.node for test in facts.verified.tested)]
    order += [node for node in range(len(facts.proposed.nodes)) if node not in order]
    for node in order:
        test, kind = facts.tests.get(node), facts.kind_of(node)
        place, drafted = drafted_cell(facts, node, kind)
        if test is None:
            q = chance(facts.proposed.nodes[node].q)
            rows.append([place, drafted, q, "–", "–", "–", escape(UNTESTED_WORD)])
        else:
            rows.append([place, drafted, *_numbers(test), escape(KEPT if test.accepted else REFUSED)])
        kinds.append(kind)
    return table_html(COLUMNS, rows, kinds)


def _numbers(test: Tested) -> list[str]:
    limit = min(1.0, test.p / test.q) if test.q > 0 else 1.0
    meter = (
        f'<span class="meter" aria-hidden="true"><i style="width:{100 * limit:.1f}%"></i>'
        f'<b style="left:{100 * min(test.u, 1):.1f}%"></b></span>'
    )
    return [chance(test.q), chance(test.p), f"{chance(limit)}{meter}", chance(test.u)]


def _cache(facts: RoundFacts) -> str:
    proposed, verified = facts.proposed, facts.verified
    held = verified.context_length - 1
    fed = 1 + len(proposed.nodes) + proposed.num_scratch
    kept_drafts = max(0, len(verified.committed) - 1)  # the last committed token is never in the cache yet
    rolled = fed - 1 - kept_drafts
    blocks = [("held", 1), ("last", 1), ("kept", kept_drafts), ("rolled", rolled - proposed.num_scratch)]
    blocks.append(("scratch", proposed.num_scratch))
    cells = "".join(
        f'<i class="{name}{" many" if name == "held" else ""}">{held if name == "held" else ""}</i>'
        for name, count in blocks
        for _ in range(min(max(count, 0), MAX_BLOCKS))
    )
    counts = {"held": held, "kept": kept_drafts, "rolled": rolled - proposed.num_scratch}
    counts["scratch"] = proposed.num_scratch
    keys = "".join(
        f'<li><i class="{name}"></i>{escape(CACHE[name].format(count=counts.get(name, 1)))}</li>'
        for name, count in blocks
        if count > 0
    )
    after = held + 1 + kept_drafts
    words = CACHE_WORDS.format(before=held, fed=fed, full=held + fed, rolled=rolled, after=after)
    return (
        f'<section class="position"><h3>{escape(CACHE_TITLE)}</h3><div class="cache" aria-hidden="true">{cells}</div>'
        f'<ul class="keys">{keys}</ul><p>{escape(words)}</p></section>'
    )


def _positions(facts: RoundFacts) -> str:
    cards = []
    tested = facts.verified.tested
    for index, position in enumerate(facts.verified.positions):
        if index < len(tested):
            node = tested[index].node
            kind, text = facts.kind_of(node), facts.proposed.nodes[node].text
            place = facts.depths[node]
        else:
            final = facts.verified.committed[-1] if facts.verified.committed else None
            kind, text = facts.verified.final_kind or "plain", final.label if final else ""
            place = 1 + max((facts.depths[test.node] for test in tested if test.accepted), default=0)
        title = escape(POSITION_TITLES.get(kind, POSITION_TITLES["plain"]).replace("{position}", str(place)))
        cards.append(_card(title.replace("{token}", token(text, kind)), position))
    keys = "".join(f'<li><i class="{name}"></i>{escape(words)}</li>' for name, words in BARS.items())
    return f'<ul class="keys bars-key">{keys}</ul><div class="positions">{"".join(cards)}</div>'


def _card(title: str, position: Position) -> str:
    sides = {"target": position.target, "draft": position.draft, "left": position.residual}
    names: dict[int, str] = {}
    for side in sides.values():
        for item in side:
            names.setdefault(item.id, item.text)
    shares = {name: {item.id: item.prob for item in side} for name, side in sides.items() if side}
    rows = "".join(
        _bars(token(text), {name: row.get(id) for name, row in shares.items()}) for id, text in names.items()
    )
    rest = {name: max(0.0, 1 - sum(row.values())) for name, row in shares.items()}
    others = _bars(f"<em>{escape(REMAINING)}</em>", rest) if any(value > 5e-4 for value in rest.values()) else ""
    return f'<section class="position"><h3>{title}</h3><div class="bars">{rows}{others}</div></section>'


def _bars(name: str, shares: dict[str, float | None]) -> str:
    bars = "".join(
        f'<span class="{side}"><i style="width:{100 * (value or 0):.1f}%"></i>'
        f"<small>{'–' if value is None else chance(value)}</small></span>"
        for side, value in shares.items()
    )
    return f'<div class="bar-row"><code>{name}</code><div>{bars}</div></div>'
