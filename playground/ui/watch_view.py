"""The picture of a watched server: figures, its answer, counters before and after. Strings only, all escaped."""

from html import escape

from playground.lab.export import LABELS
from playground.ui.text_export import (
    ALONE,
    ALPHA,
    ANSWER,
    AT_POSITION,
    COLUMNS,
    COUNTER_NAMES,
    COUNTERS,
    FIGURES,
    FOUND,
    NO_ALPHA,
    NO_ANSWER,
    NO_ENGINE,
    NONE,
    SPEED_OF,
    WATCH_EMPTY,
)

FROM_SERVER = ("acceptance_length", "draft_efficiency")


def watch_html(report: dict, over: bool) -> str:
    """Draw the record of a watch, as far as it has come."""
    server, request = report["server"] or {}, report["request"] or {}
    if not report["model"] and not server and not over:
        return f'<div class="spec watch"><p class="race-head">{escape(WATCH_EMPTY)}</p></div>'
    asked = bool(report["question"]["prompt"])
    engine = (report["counters"][0] or {}).get("engine")
    head = FOUND.format(engine=LABELS.get(engine, NO_ENGINE), url=report["question"]["url"])
    head += f" · {report['model']}" if report["model"] else ""
    cards = "".join(_figure(*figure, report, server, request) for figure in FIGURES)
    text = report["text"] or (NO_ANSWER if over else "")
    answer = f'<h3>{escape(ANSWER)}</h3><div class="watch-text" tabindex="0">{escape(text)}</div>' if asked else ""
    notice = f'<p class="verdict" role="status">{escape(report["notice"])}</p>' if report["notice"] else ""
    return (
        f'<div class="spec watch"><p class="race-head">{escape(head)}</p>{notice}<div class="figures">{cards}</div>'
        f"{answer}</div>"
    )


def counters_html(report: dict) -> str:
    """Draw the table of the counters before and after, and alpha where they tell it."""
    before, after = report["counters"]
    if before is None or after is None:
        return ""
    server = report["server"] or {}
    return f'<div class="spec watch">{_counters(before, after)}{_alpha(server)}</div>'


def _figure(name: str, label: str, form: str, below: str, report: dict, server: dict, request: dict) -> str:
    """One big number. What the server counts comes first, what it says of this request below it."""
    if name in FROM_SERVER:
        value, alone = server.get(name), request.get(name)
        if value is None:
            value, alone = alone, None
        below = ALONE.format(value=format(alone, form)) if alone is not None else below
    else:
        value = report[name]
    if name == "tokens_per_second":
        below = SPEED_OF[bool(report["question"]["prompt"])]
    shown = NONE if value is None else format(value, form)
    return (
        f'<div class="figure still"><span class="label">{escape(label)}</span><strong>{escape(shown)}</strong>'
        f'<span class="below">{escape(below)}</span></div>'
    )


def _counters(before: dict, after: dict) -> str:
    rows = [(words, before[name], after[name]) for name, words in COUNTER_NAMES.items()]
    old, new = before["accepted_by_position"], after["accepted_by_position"]
    for place, value in enumerate(new):
        rows.append((AT_POSITION.format(position=place + 1), old[place] if place < len(old) else 0.0, value))
    head = "".join(f"<th>{escape(name)}</th>" for name in COLUMNS)
    body = "".join(_row(*row) for row in rows if row[2] is not None)
    return (
        f"<h3>{escape(COUNTERS)}</h3>"
        f'<div class="lab-table"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _row(words: str, before: float | None, after: float) -> str:
    cells = (before or 0, after, after - (before or 0))
    return f"<tr><td>{escape(words)}</td>{''.join(f'<td>{value:,.0f}</td>' for value in cells)}</tr>"


def _alpha(server: dict) -> str:
    if not server.get("num_rounds"):
        return ""
    words = NO_ALPHA if server["alpha"] is None else ALPHA.format(value=server["alpha"])
    return f'<p class="note">{escape(words)}</p>'
