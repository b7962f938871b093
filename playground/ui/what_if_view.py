"""The same round under other sampling, as a table beside what the run did. Strings only, all escaped."""

from html import escape

from playground.config import SamplingConfig
from playground.lab.what_if import Outcome, judge_again
from playground.ui.inspector_view import chance, drafted_cell, table_html, token
from playground.ui.notes import note
from playground.ui.round_facts import RoundFacts
from playground.ui.text_inspector import (
    CHANGED,
    FRESH_NUMBERS,
    KEPT,
    NO_LOGITS,
    OTHER_TOKEN,
    OUTCOME,
    REFUSED,
    SAME_SETTINGS,
    UNCHANGED,
    UNTESTED_WORD,
    WHAT_IF_COLUMNS,
)


def what_if_html(facts: RoundFacts | None, sampling: SamplingConfig) -> str:
    """The round judged again, or why it cannot be."""
    if facts is None:
        return ""
    if facts.logits is None:
        return note(NO_LOGITS)
    if sampling == facts.sampling:
        return note(SAME_SETTINGS)
    outcome = judge_again(facts.proposed, facts.verified, facts.logits, facts.sampling, sampling)
    fresh = f" {FRESH_NUMBERS}" if sampling.seed != facts.sampling.seed else ""
    return f'<div class="spec inspector">{_words(facts, outcome, fresh)}{_table(facts, outcome)}</div>'


def _words(facts: RoundFacts, outcome: Outcome, fresh: str) -> str:
    accepted = sum(trial.accepted for trial in outcome.trials)
    names = {i: text for row in facts.logits.target for i, text in zip(row.ids, row.texts, strict=True)}
    known = outcome.final_id in names
    added = token(names[outcome.final_id], outcome.final_kind) if known else escape(OTHER_TOKEN)
    words = escape(OUTCOME.format(accepted=accepted, drafted=len(facts.logits.draft), token="{token}", kind="{kind}"))
    words = words.replace("{token}", added).replace("{kind}", escape(outcome.final_kind))
    changed = accepted != sum(test.accepted for test in facts.verified.tested)
    ending = escape(f"{CHANGED if changed else UNCHANGED}{fresh}")
    return f'<p class="verdict{"" if changed else " soft"}">{words} {ending}</p>'


def _table(facts: RoundFacts, outcome: Outcome) -> str:
    trials = {trial.node: trial for trial in outcome.trials}
    order = [*trials, *(node for node in range(len(facts.logits.draft)) if node not in trials)]
    rows, kinds = [], []
    for node in order:
        trial = trials.get(node)
        kind = "untested" if trial is None else "accepted" if trial.accepted else "rejected"
        place, drafted = drafted_cell(facts, node, kind)
        numbers = ["–"] * 4
        verdict = UNTESTED_WORD
        if trial is not None:
            numbers = [chance(value) for value in (trial.q, trial.p, trial.limit, trial.u)]
            verdict = KEPT if trial.accepted else REFUSED
        rows.append([place, drafted, *numbers, escape(verdict), escape(facts.kind_of(node))])
        kinds.append(kind)
    return table_html(WHAT_IF_COLUMNS, rows, kinds) if rows else ""
