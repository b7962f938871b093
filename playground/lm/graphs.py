"""Passes of fixed shape, replayed as CUDA graphs: one per width, so a small model's step is not all launches.

A decode pass has few widths (1 … gamma + 1). For each, the inputs live in buffers that are filled
anew, attention runs over the whole cache buffer under a mask, and the kernels are recorded once and
replayed. Without a GPU the same fixed-shape pass runs eagerly (`capture=False`), which is how its
results are tested; capturing itself was written without a GPU at hand. Knows nothing of layers.
"""

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass

import torch

log = logging.getLogger(__name__)
WARM_UP_PASSES = 3  # before a capture, as CUDA graphs require


@dataclass(slots=True)
class StaticInputs:
    """Buffers of one width n at one cache capacity.

    Attributes:
        ids: (n,) token ids.
        positions: (n,) rows of the rotary tables.
        rows: (n,) cache rows to write.
        mask: (n, capacity) additive; -inf where a token must not look.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    rows: torch.Tensor
    mask: torch.Tensor

    @classmethod
    def empty(cls, width: int, capacity: int, dtype: torch.dtype, device: torch.device) -> "StaticInputs":
        """Buffers that make a harmless pass: all tokens 0 in the last rows, each seeing itself."""
        rows = torch.arange(capacity - width, capacity, device=device)
        mask = torch.full((width, capacity), float("-inf"), dtype=dtype, device=device)
        mask[torch.arange(width, device=device), rows] = 0
        zeros = torch.zeros(width, dtype=torch.long, device=device)
        return cls(zeros, zeros.clone(), rows, mask)

    def fill(self, ids: list[int], depths: list[int], visible: torch.Tensor, start: int) -> None:
        """Set the inputs of the next pass: tokens after the first `start` cached ones."""
        device = self.ids.device
        self.ids.copy_(torch.tensor(ids, device=device))
        self.positions.copy_(torch.tensor(depths, device=device) + start)
        self.rows.copy_(torch.arange(start, start + len(ids), device=device))
        self.mask.fill_(float("-inf"))
        self.mask[:, :start] = 0
        self.mask[:, start : start + len(ids)].masked_fill_(visible.to(device), 0)


Pass = Callable[[StaticInputs], torch.Tensor]


class StaticPasses:
    """One recorded (or eager) pass per width and capacity.

    `reason` says why passes are not captured, or is "". The tensor a run returns is overwritten by the
    next run of the same width.
    """

    def __init__(self, forward: Pass, dtype: torch.dtype, device: torch.device, capture: bool):
        self._forward, self._dtype, self._device = forward, dtype, device
        self.reason = why_not_captured(device) if capture else "capturing is off"
        self._passes: dict[tuple, tuple[StaticInputs, Callable[[], torch.Tensor]]] = {}

    def run(
        self, ids: list[int], depths: list[int], visible: torch.Tensor, start: int, capacity: int, tag: object = None
    ) -> torch.Tensor:
        """Run one pass. `tag` tells apart passes whose side outputs differ."""
        key = (len(ids), capacity, tag)
        if key not in self._passes:
            self._passes = {known: item for known, item in self._passes.items() if known[1] == capacity}
            self._passes[key] = self._make(len(ids), capacity)
        inputs, replay = self._passes[key]
        inputs.fill(ids, depths, visible, start)
        return replay()

    def _make(self, width: int, capacity: int) -> tuple[StaticInputs, Callable[[], torch.Tensor]]:
        inputs = StaticInputs.empty(width, capacity, self._dtype, self._device)
        if not self.reason:
            try:
                return inputs, self._captured(inputs)
            except RuntimeError as error:
                self.reason = f"capturing failed ({str(error).splitlines()[0][:100]})"
                log.warning("CUDA graphs are off: %s", self.reason)
        return inputs, lambda: self._forward(inputs)

    def _captured(self, inputs: StaticInputs) -> Callable[[], torch.Tensor]:
        """Warm up on a side stream, record, and return what replays the recording."""
        stream = torch.cuda.Stream(self._device)
        stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP_PASSES):
                self._forward(inputs)
        torch.cuda.current_stream(self._device).wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = self._forward(inputs)

        def replay() -> torch.Tensor:
            graph.replay()
            return out

        return replay


def why_not_captured(device: torch.device) -> str:
    """Why CUDA graphs cannot be used here, or ""."""
    if device.type != "cuda":
        return f"the device is {device.type}"
    if os.environ.get("SPACES_ZERO_GPU"):
        return "ZeroGPU gives each call a process of its own"
    return ""
