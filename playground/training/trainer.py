"""The training loop: AdamW, warm-up and cosine, checkpoints, resume, progress.

Runs until a time or a number of steps is used up, whichever comes first; time spent before a resume
counts. A run that is stopped and resumed sees the same batches in the same order as one that was
not. Knows no recipe in particular.
"""

import math
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import torch
from torch import nn

from playground.training.batches import Batch, Batches
from playground.training.losses import Score, SoftCrossEntropy
from playground.training.pace import Limits, Pace, Progress
from playground.training.recipes.base import Guess, Recipe

WARM_UP = 0.02  # of the run
FLOOR = 0.05  # of the learning rate, at the end
CLIP = 1.0
BETAS, WEIGHT_DECAY = (0.9, 0.98), 0.01


class Trainer:
    """Trains one module with one recipe.

    Attributes:
        step, epoch: where it stands. elapsed_s: time spent, resumed runs included.
        num_tokens: tokens seen, repeats included.
    """

    def __init__(
        self,
        recipe: Recipe,
        module: nn.Module,
        batches: Batches,
        limits: Limits,
        checkpoint: Path,
        precision: str = "bfloat16",
        learning_rate: float | None = None,
        greedy_share: float = 0.0,
        seed: int = 0,
    ):
        self.recipe, self.module, self._batches, self._limits = recipe, module, batches, limits
        self._checkpoint, self._precision, self._seed = Path(checkpoint), precision, seed
        self._rate = learning_rate or recipe.learning_rate
        self._device = recipe.target.weights.device
        self.step = self.epoch = self._place = self.num_tokens = 0
        self.elapsed_s = 0.0
        trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
        matrices, vectors = [p for p in trained if p.dim() > 1], [p for p in trained if p.dim() < 2]
        groups = [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": vectors, "weight_decay": 0.0}]
        self._optimiser = torch.optim.AdamW(groups, lr=self._rate, betas=BETAS)
        ids, rows = recipe.output(module)
        full, draft_ids = rows, module.draft_ids
        if len(ids) > len(draft_ids):
            rows = full[draft_ids]
        self._score = SoftCrossEntropy(draft_ids, rows, recipe.target.num_ids, greedy_share)
        self._rest, self._full = None, full
        if recipe.samples_rest and len(ids) > len(draft_ids):
            left = torch.ones(len(ids), dtype=torch.bool, device=ids.device)
            left[draft_ids] = False
            self._rest = left.nonzero()[:, 0]

    def resume(self) -> bool:
        """Go on from the checkpoint; False when there is none."""
        if not self._checkpoint.is_file():
            return False
        saved = torch.load(self._checkpoint, map_location=self._device, weights_only=True)
        self.module.load_state_dict(saved["module"])
        self._optimiser.load_state_dict(saved["optimiser"])
        self.step, self.epoch, self._place = saved["step"], saved["epoch"], saved["place"]
        self.elapsed_s, self.num_tokens = saved["elapsed_s"], saved["num_tokens"]
        return True

    def save(self) -> None:
        """Write the checkpoint, whole or not at all."""
        self._checkpoint.parent.mkdir(parents=True, exist_ok=True)
        partial = self._checkpoint.with_suffix(".partial")
        state = {"module": self.module.state_dict(), "optimiser": self._optimiser.state_dict()}
        state |= {"step": self.step, "epoch": self.epoch, "place": self._place}
        torch.save(state | {"elapsed_s": self.elapsed_s, "num_tokens": self.num_tokens}, partial)
        partial.replace(self._checkpoint)

    def run(self, report: Callable[[Progress], None]) -> None:
        """Train to the end. An exception (Ctrl-C) leaves a checkpoint behind."""
        pace = Pace(self._limits, self.elapsed_s, self.step)
        saved = self.elapsed_s
        self.module.train()
        try:
            while self._limits.fraction(self.elapsed_s, self.step) < 1:
                start = perf_counter()
                batch = self._next()
                scores = self._learn(batch)
                self.elapsed_s += perf_counter() - start
                self.num_tokens += batch.num_tokens
                pace.note(scores, batch.num_tokens)
                news = pace.news(self.elapsed_s, self.step)
                if news:
                    report(news)
                if self.elapsed_s - saved > 60 * self._limits.checkpoint_minutes:
                    self.save()
                    saved = self.elapsed_s
        finally:
            self.save()

    def _next(self) -> Batch:
        order = self._batches.epoch(self.epoch)
        if self._place >= len(order):
            self.epoch, self._place = self.epoch + 1, 0
            order = self._batches.epoch(self.epoch)
        return self._batches.load(order[self._place])

    def _learn(self, batch: Batch) -> dict[str, Score]:
        for group in self._optimiser.param_groups:
            group["lr"] = self._rate * schedule(self._limits.fraction(self.elapsed_s, self.step))
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._precision == "bfloat16"):
            scores, loss = self._scores(batch)
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.module.parameters(), CLIP)
        self._optimiser.step()
        self.step, self._place = self.step + 1, self._place + 1
        return scores

    def _scores(self, batch: Batch) -> tuple[dict[str, Score], torch.Tensor]:
        """Score every guess at the positions that count; the loss is their weighted mean."""
        extra = self._extra()
        scores, total, weights = {}, torch.zeros((), device=self._device), 0.0
        for guess in self.recipe.guesses(self.module, batch):
            scores[label_of(guess)] = score = score_guess(self._score, guess, batch, extra)
            total, weights = total + guess.weight * score.loss, weights + guess.weight
        return scores, total / weights

    def _extra(self) -> tuple[torch.Tensor, float] | None:
        if self._rest is None or not len(self._rest):
            return None
        count = min(self.recipe.samples_rest, len(self._rest))
        drawn = torch.randperm(len(self._rest), generator=torch.Generator().manual_seed(self._seed + self.step))[:count]
        return self._full[self._rest[drawn.to(self._rest.device)]], len(self._rest) / count


def score_guess(measure: SoftCrossEntropy, guess: Guess, batch: Batch, extra=None) -> Score:
    """Compare a guess with the target's rows it is meant for, padding left out."""
    shift = guess.shift
    weight = batch.weight[:, shift:]
    counts = weight > 0
    states = guess.states[:, : weight.shape[1]]
    return measure(
        states[counts], batch.top_ids[:, shift:][counts], batch.top_probs[:, shift:][counts], weight[counts], extra
    )


def label_of(guess: Guess) -> str:
    """What a guess is called in figures."""
    return guess.label or f"depth {max(1, guess.shift)}"


def schedule(fraction: float) -> float:
    """Share of the learning rate at `fraction` of the run: linear warm-up, then half a cosine."""
    if fraction < WARM_UP:
        return max(0.01, fraction / WARM_UP)
    along = (fraction - WARM_UP) / (1 - WARM_UP)
    return FLOOR + (1 - FLOOR) * (1 + math.cos(math.pi * along)) / 2
