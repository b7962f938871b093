"""The picture of an exactness test: a verdict, then each position with its shares. Strings only, all escaped."""

from html import escape

from playground.ui.text_labs import (
    AGAINST,
    CAUGHT,
    EXACTNESS_EMPTY,
    NEVER_REFUSED,
    NOT_CAUGHT,
    PASSED,
    POSITION,
    RUNNING,
    SHARES,
    TEST_LINE,
    UNTESTED,
    VARIATION_LINE,
)


class ExactnessView:
    """Follows one test."""

    def __init__(self):
        self._done = self._total = 0
        self._result = None

    def __call__(self, values: list) -> str:
        """Take new values of the test and return the picture."""
        for value in values:
            if hasattr(value, "positions"):
                self._result = value
            else:
                self._done, self._total = value.num_done, value.total
        return self.html()

    def html(self) -> str:
        """The whole picture."""
        if self._result is not None:
            return _result(self._result)
        if not self._total:
            return f'<div class="spec exactness"><p class="race-head">{escape(EXACTNESS_EMPTY)}</p></div>'
        share = self._done / self._total
        words = escape(RUNNING.format(done=self._done, total=self._total))
        return (
            f'<div class="spec exactness"><p class="race-head" role="status">{words}</p>'
            f'<progress max="1" value="{share:.3f}" aria-label="{words}"></progress></div>'
        )


def _result(result) -> str:
    verdict, kind = (PASSED, "good") if result.passed else (CAUGHT, "bad")
    if result.passed and result.rule != "right":
        verdict, kind = NOT_CAUGHT, "soft"
    if result.alpha is None:
        verdict, kind = UNTESTED, "soft"
    extra = "" if result.alpha is None else f" · alpha {result.alpha:.3f}, {result.num_samples:,} texts of each kind"
    extra += f". {NEVER_REFUSED}" if result.alpha == 1 else ""
    blocks = "".join(_position(item) for item in result.positions)
    return (
        f'<div class="spec exactness"><p class="verdict {kind}" role="status"><b>{escape(verdict)}</b>{escape(extra)}'
        f'</p><div class="positions">{blocks}</div></div>'
    )


def _position(item) -> str:
    test = item.comparison
    p_value = "below 0.0001" if test.p_value < 1e-4 else f"{test.p_value:.4f}"
    words = TEST_LINE.format(chi2=test.chi2, freedom=test.freedom, p_value=p_value)
    more = VARIATION_LINE.format(variation=test.variation, mean=test.chance_mean, high=test.chance_high)
    top = max((max(row.share, row.wanted) for row in item.rows), default=1.0) or 1.0
    rows = "".join(_row(row, top) for row in item.rows)
    head = "".join(f"<th>{escape(name)}</th>" for name in SHARES)
    mark = "" if test.passed else " caught"
    return (
        f'<section class="position{mark}"><h3>{escape(POSITION.format(position=item.position))} '
        f"<small>{escape(AGAINST[item.exact])}</small></h3><p>{escape(words)}<br>{escape(more)}</p>"
        f'<div class="lab-table"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></section>'
    )


def _row(row, top: float) -> str:
    cells = "".join(
        f'<td class="share"><i class="{name}" style="width:{100 * value / top:.1f}%"></i><span>{value:.1%}</span></td>'
        for name, value in (("mine", row.share), ("wanted", row.wanted))
    )
    return f"<tr><td><code>{escape(row.text)}</code></td>{cells}</tr>"
