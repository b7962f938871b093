"""The picture of a sweep: what to choose, a table, a heat map of speedups by task. Strings only, all escaped."""

from html import escape

from playground.ui.text_compare import ADVICE, COLUMNS, DONE, EMPTY, LEFT_OUT, SPEEDUP_BY_TASK

FIGURES = ("speedup", "predicted", "alpha", "acceptance_length", "c", "width_cost")


class CompareView:
    """Collects the results of a sweep and draws them."""

    def __init__(self, total: int):
        self.results: list = []
        self._total, self._left_out = total, []

    def __call__(self, values: list) -> str:
        """Take new results and return the picture."""
        for value in values:
            if hasattr(value, "reason"):
                self._left_out.append(LEFT_OUT.format(name=value.arm.name, reason=value.reason))
            else:
                self.results.append(value)
        return self.html()

    def html(self) -> str:
        """The whole picture."""
        notes = "".join(f'<p class="note">{escape(words)}</p>' for words in self._left_out)
        if not self.results:
            return f'<div class="spec compare"><p class="race-head">{escape(EMPTY)}</p>{notes}</div>'
        from playground.lab.compare_table import recommendation, summaries

        found = summaries(self.results)
        done = DONE.format(done=len(self.results), total=self._total)
        advice = "<br>".join(escape(line) for line in recommendation(found).splitlines())
        return (
            f'<div class="spec compare"><p class="race-head" role="status">{escape(done)}</p>'
            f'<p class="verdict"><b>{escape(ADVICE)}</b> {advice}</p>{_table(found)}'
            f'<h3 class="map-title">{escape(SPEEDUP_BY_TASK)}</h3>{_map(found)}{notes}</div>'
        )


def _table(found: list) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in COLUMNS)
    rows = []
    for item in found:
        cells = [item.arm, *("—" if item.figures[name] is None else str(item.figures[name]) for name in FIGURES)]
        cells.append("" if item.same is None else f"{item.same:.0%}")
        rows.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<div class="lab-table"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _map(found: list) -> str:
    tasks = list(dict.fromkeys(task for item in found for task in item.by_task))
    head = "".join(f"<th>{escape(name)}</th>" for name in ("", *tasks))
    body = "".join(
        f"<tr><td>{escape(item.arm)}</td>{''.join(_cell(item.by_task.get(task)) for task in tasks)}</tr>"
        for item in found
    )
    return f'<div class="lab-table map"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(task: dict | None) -> str:
    """A cell whose colour says how far above or below 1 the speedup is; the number says it too."""
    if task is None:
        return "<td></td>"
    value = task["speedup"]
    strength = min(1.0, abs(value - 1)) * 70
    color = "--accepted" if value >= 1 else "--rejected"
    style = f"background: color-mix(in srgb, var({color}) {strength:.0f}%, transparent) !important"
    return f'<td style="{style}">{value:.2f}×</td>'
