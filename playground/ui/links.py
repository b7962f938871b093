"""Settings as the query of an address, and back: what differs from the defaults, checked like everything else."""

import json
from collections.abc import Mapping
from urllib.parse import urlencode

from playground.config import DEFAULTS, RunSettings

MAX_LENGTH = 1500  # characters of one value; a longer text is left out, and that is said
NUMBERS = (int, float)


def query_of(settings: RunSettings) -> tuple[str, list[str]]:
    """The query that sets these settings, and the names of those that are too long for one."""
    chosen, left_out = {}, []
    for name, value in settings.to_dict().items():
        plain = list(DEFAULTS[name]) if isinstance(DEFAULTS.get(name), tuple) else DEFAULTS.get(name)
        if value == plain:
            continue
        text = value if isinstance(value, str) else json.dumps(value)
        if len(text) > MAX_LENGTH:
            left_out.append(name)
        else:
            chosen[name] = text
    return urlencode(chosen), left_out


def settings_of_query(query: Mapping[str, str]) -> tuple[dict, list[str]]:
    """The settings a query names, and the names it has that are none.

    Raises:
        ValueError: a value that is not allowed; the sentence says what is.
    """
    found, unknown = {}, []
    for name, text in query.items():
        if name.startswith("__"):  # the page's own, such as the theme
            continue
        if name != "prompt" and name not in DEFAULTS:
            unknown.append(name[:40])
        elif name == "prompt" or isinstance(DEFAULTS[name], str):
            found[name] = text[:MAX_LENGTH]
        else:
            found[name] = _value(name, text)
    if found:
        checked = RunSettings(**{"prompt": "x"} | found).to_dict()
        found = {name: checked[name] for name in found}
    return found, unknown


def _value(name: str, text: str) -> object:
    try:
        value = json.loads(text[:MAX_LENGTH])
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} cannot be {text[:40]!r}.") from error
    kind = type(DEFAULTS[name])
    if kind in NUMBERS and isinstance(value, NUMBERS) and not isinstance(value, bool):
        return value
    if kind is tuple and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    if type(value) is not kind:
        raise ValueError(f"{name} cannot be {text[:40]!r}.")
    return value
