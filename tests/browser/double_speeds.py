"""The part of the double that measures tokens/s and remembers them: two figures, and one failure."""

import time
from collections.abc import Iterator

from playground.events import Progress
from playground.speeds import Speed, Step

FIGURES = {"float32": 19.62, "bfloat16": 44.13}
FAILURE = "Its kernel <b>fails</b> here."


class SpeedsDouble:
    """Pretends to measure, taking its turn among the runs of the double it is part of."""

    step_s = 0.3

    def __init__(self):
        self.known: dict[tuple[str, str], float] = {}  # model, precision → tokens/s remembered
        self.measuring = 0

    def speeds(self, model: str) -> dict[str, Speed]:
        """Return the figures remembered for a model."""
        day = "2026-11-29T12:00:00+00:00"
        found = {precision: figure for (name, precision), figure in self.known.items() if name == model}
        return {name: Speed(model, name, 2, "a CPU", "2.0", figure, day) for name, figure in found.items()}

    def measure(self, model: str, last: str = "", wait_s: float = 1 / 12) -> Iterator[list]:
        """Measure every precision in turn; int8 cannot be."""
        ticket = self._turns.join()
        self.measuring += 1
        try:
            while ahead := ticket.wait(wait_s):
                yield [Progress("waiting", f"Waiting: place {ahead} of {len(self._turns) - 1} in the queue")]
            for precision, figure in FIGURES.items():
                for stage, fraction in (("loading", None), ("calibrating", 0.5)):
                    yield [Step(precision, stage, "…", fraction)]
                    time.sleep(self.step_s)
                self.known[model, precision] = figure
                yield [Step(precision, "measured", tokens_per_second=figure)]
            yield [Step("int8", "failed", FAILURE)]
        finally:
            self.measuring -= 1
            ticket.leave()
