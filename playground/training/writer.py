"""The target writes conversations: a user's turn grown from a seed, then its answer, many at once.

Each slot of a BatchedLM holds one conversation. Tokens that are given (template, seed) are fed one
per pass like the others, so a finished slot starts the next conversation at once and nothing is
ever padded. Knows nothing of files.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from playground.lm import LeanWeights
from playground.lm.batched import BatchedLM
from playground.training.seeds import Seed, draw_seed

TOP_K = 64  # drawing looks at this many likeliest tokens
USER_TEMPERATURE, ANSWER_TEMPERATURES = 0.8, (0.0, 0.8)
MAX_USER_TOKENS = 110
MARK = "\u2042mark\u2042"


@dataclass(slots=True)
class Conversation:
    """A text and where its answer starts.

    Attributes:
        ids: token ids.
        answer_start: index of the answer's first token, 0 = the whole text counts.
        temperature: of the answer.
        user: the user's turn as text, for the check against held-out prompts.
    """

    ids: list[int]
    answer_start: int = 0
    temperature: float = 0.0
    user: str = ""


@dataclass(slots=True)
class _Slot:
    seed: Seed
    temperature: float
    forced: list[int]
    ids: list[int] = field(default_factory=list)
    user_start: int = 0
    answer_start: int = 0


class Template:
    """The chat template cut around the user's turn.

    Attributes:
        before, after: token ids before and after the user's words; `after` ends where the answer starts.
    """

    def __init__(self, tokenizer: Any):
        """Raises ValueError when the tokenizer has no usable chat template."""
        if not getattr(tokenizer, "chat_template", None):
            raise ValueError("This target has no chat template, so it cannot write conversations: give --text.")
        turn = [{"role": "user", "content": MARK}]
        text = tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)
        start, found, end = text.partition(MARK)
        if not found:
            raise ValueError("The chat template of this target does not show the user's words.")
        self._tokenizer, self._start = tokenizer, start
        self.before = self._encode(start)
        self.after = self._encode(end)

    def _encode(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def opening(self, text: str) -> list[int]:
        """The ids of everything up to and including the given start of the user's turn."""
        return self._encode(self._start + text)

    def answer_start(self, ids: list[int]) -> int:
        """Where the last answer of a text begins, 0 when there is none."""
        size = len(self.after)
        for start in range(len(ids) - size, -1, -1):
            if ids[start : start + size] == self.after:
                return start + size
        return 0


class Writer:
    """Writes conversations without end; `write` yields each as it is finished."""

    def __init__(
        self,
        weights: LeanWeights,
        tokenizer: Any,
        end_ids: tuple[int, ...],
        seed: int,
        num_slots: int = 128,
        max_tokens: int = 320,
        draw: Callable[[random.Random], Seed] = draw_seed,
        temperatures: tuple[float, ...] = ANSWER_TEMPERATURES,
    ):
        self._template, self._tokenizer = Template(tokenizer), tokenizer
        self._end_ids, self._draw, self._temperatures = frozenset(end_ids), draw, temperatures
        self._rng = random.Random(seed)
        self._noise = torch.Generator(device=weights.device).manual_seed(seed)
        self._vocab = min(len(tokenizer), weights.vocab_size)
        self._max_tokens = max_tokens
        self._lm = BatchedLM(weights, num_slots, max_tokens)

    def write(self) -> Iterator[Conversation]:
        """Yield conversations as they end, for as long as the caller asks."""
        slots = [self._new() for _ in range(self._lm.num_slots)]
        while True:
            logits = self._lm.step(torch.tensor([slot.ids[-1] for slot in slots], device=self._lm.lengths.device))
            heat = torch.tensor([self._heat(slot) for slot in slots], device=logits.device)
            drawn = self._drawn(logits[:, : self._vocab], heat)
            for number, (slot, token) in enumerate(zip(slots, drawn, strict=True)):
                if self._goes_on(slot, token):
                    continue
                if slot.answer_start and len(slot.ids) > slot.answer_start:
                    yield Conversation(slot.ids, slot.answer_start, slot.temperature, self._user(slot))
                slots[number] = self._new()
                self._lm.clear(number)

    def _new(self) -> _Slot:
        seed = self._draw(self._rng)
        forced = self._template.opening(seed.text)
        slot = _Slot(seed, self._rng.choice(self._temperatures), forced, user_start=len(self._template.before))
        if seed.complete:
            forced.extend(self._template.after)
            slot.answer_start = len(forced)
        slot.ids.append(forced.pop(0))
        return slot

    def _user(self, slot: _Slot) -> str:
        if slot.seed.complete:
            return slot.seed.text
        return self._tokenizer.decode(slot.ids[slot.user_start : slot.answer_start - len(self._template.after)])

    def _heat(self, slot: _Slot) -> float:
        return slot.temperature if slot.answer_start else USER_TEMPERATURE

    def _drawn(self, logits: torch.Tensor, heat: torch.Tensor) -> list[int]:
        """One token per slot: Gumbel noise of the slot's temperature over its likeliest tokens."""
        top = logits.topk(min(TOP_K, logits.shape[1]), dim=-1)
        uniform = torch.rand(top.values.shape, generator=self._noise, device=logits.device).clamp_(1e-9, 1 - 1e-7)
        scores = top.values.float() - heat[:, None] * torch.log(-torch.log(uniform))
        return top.indices.gather(1, scores.argmax(-1, keepdim=True))[:, 0].tolist()

    def _goes_on(self, slot: _Slot, token: int) -> bool:
        """Put the next token into the slot; False when its conversation is over."""
        if len(slot.ids) >= self._max_tokens:
            return False
        if slot.forced:
            slot.ids.append(slot.forced.pop(0))
            return True
        if slot.answer_start:
            slot.ids.append(token)
            return token not in self._end_ids
        after = self._template.after
        ended = token in self._end_ids or token == after[0]
        if not ended and len(slot.ids) - slot.user_start < MAX_USER_TOKENS:
            slot.ids.append(token)
            return True
        slot.forced = list(after)
        slot.answer_start = len(slot.ids) + len(after)
        slot.ids.append(slot.forced.pop(0))
        return True
