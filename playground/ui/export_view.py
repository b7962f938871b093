"""What the Export tab shows of a snippet and of a run's metrics. Strings only; HTML is escaped."""

import json
import re
from html import escape

from playground.acceptance import vllm_response
from playground.config import RunSettings
from playground.lab.export import Export
from playground.report import Recorder
from playground.ui.notes import note
from playground.ui.text_export import (
    CHECKED_IN,
    GAMMA_OF,
    GREEDY,
    NAMES_FROM,
    NO_GAMMA,
    NOT_THERE,
    SAMPLED,
    SETTING_LINE,
)
from playground.ui.text_proposers import PROPOSER_LABELS

NUMBERS = re.compile(r"\[[\d,\s]*\]")


def setting_line(settings: RunSettings) -> str:
    """Say in a line which settings are exported."""
    plain = settings.proposer == "none"
    line = SETTING_LINE.format(
        proposer=PROPOSER_LABELS[settings.proposer],
        gamma=NO_GAMMA if plain else GAMMA_OF.format(gamma=settings.gamma),
        target=settings.target,
        precision=settings.target_precision,
        sampling=SAMPLED.format(temperature=settings.temperature) if settings.temperature else GREEDY,
    )
    return note(line)


def export_notes(found: Export) -> str:
    """What is not carried over and where names were checked; the reason where there is no snippet."""
    if found.reason:
        return reason_note(NOT_THERE.format(reason=found.reason)) + note(CHECKED_IN.format(source=found.source))
    names = NAMES_FROM.format(source=found.source)
    listed = "".join(f"<li>{escape(words)}</li>" for words in (*found.notes, names))
    return f'<div class="note"><ul>{listed}</ul></div>'


def reason_note(words: str) -> str:
    """A sentence in place of a snippet."""
    return f'<div class="spec export"><p class="verdict" role="status">{escape(words)}</p></div>'


def metrics_json(events: list) -> str:
    """The metrics of a run as JSON, each list of numbers on a line of its own."""
    recorder = Recorder()
    for event in events:
        recorder(event)
    text = json.dumps(vllm_response(recorder.report()), indent=2)
    return NUMBERS.sub(lambda found: "".join(found[0].split()).replace(",", ", "), text)
