"""The benchmark's figures as text. Knows only the record that bench.py makes."""


def table(figures: dict) -> str:
    """The figures as lines of text."""
    lines = [f"{'measure':<30} {'median':>8} {'min':>8} {'max':>8}"]
    for name, value in figures.items():
        if isinstance(value, dict) and "median" in value:
            lines.append(f"{name:<30} {value['median']:>8.3f} {value['min']:>8.3f} {value['max']:>8.3f}")
    lines.append("")
    lines += _rows("tokens/s (median)", figures["tokens_per_second"])
    lines += _rows("ms per round (median)", figures["ms_per_round"])
    for name in ("long_context", "long_context_int4"):
        if name in figures:
            lines += _rows(name, {f"{record['tokens']}": record for record in figures[name]})
    loads = ", ".join(f"{precision} {seconds} s" for precision, seconds in figures["load_s"].items())
    lines.append(f"loading the bundled target: {loads}")
    where = figures["environment"]
    lines.append(f"on {where['device_name']}, {where['threads']} threads, torch {where['torch']}, {where['precision']}")
    return "\n".join(lines)


def _rows(title: str, rows: dict[str, dict]) -> list[str]:
    """A small table: one line per row, one column per key of the first."""
    names = list(next(iter(rows.values())))
    widths = [max(8, len(name)) for name in names]
    lines = [f"{title:<22} " + "  ".join(f"{name:>{width}}" for name, width in zip(names, widths, strict=True))]
    for label, row in rows.items():
        cells = (f"{row[name]:>{width}.1f}" for name, width in zip(names, widths, strict=True))
        lines.append(f"  {label:<20} " + "  ".join(cells))
    return [*lines, ""]
