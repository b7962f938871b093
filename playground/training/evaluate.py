"""How well a drafter guesses on prompts it never saw: overlap, agreement, acceptance length, by task.

The target answers the held-out prompts at temperature 0 and 1; then both models read its answers.
Overlap at depth j is Σ min(p, q) there, the exact chance that the j-th token of a chain is accepted
once the ones before were. The expected number of accepted tokens of a chain started at row t is
Σ_j Π_{i≤j} min(1, q_i(x)/p_i(x)) along the target's own text x, an unbiased estimate (at temperature 0:
the run of agreeing tokens); acceptance length adds the target's own token. Source: Leviathan 2023, §3.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from playground.lm import LeanLM
from playground.training.batches import Batch
from playground.training.held_out import HELD_OUT
from playground.training.recipes.base import Guess, Recipe, Target
from playground.training.seeds import Seed
from playground.training.trainer import label_of
from playground.training.writer import Conversation, Template, Writer

TEMPERATURES = (0.0, 1.0)
GAMMA = 4
MAX_ANSWER_TOKENS = 96
MAX_TOKENS = 256  # prompt and answer


@dataclass(slots=True)
class Depth:
    """One guess along one text: rows × (accepted chance along the text, overlap, agreement)."""

    ratio: torch.Tensor  # (n,) min(1, q/p) of the text's own token
    overlap: torch.Tensor  # (n,)
    top1: torch.Tensor  # (n,)


def answers(
    target: Target, temperature: float, prompts: dict[str, tuple[str, ...]] | None = None
) -> list[tuple[str, Conversation]]:
    """The target's answers to the held-out prompts: (task, Conversation), all written at once."""
    template, room = Template(target.tokenizer), MAX_TOKENS - GAMMA
    wanted = [(task, prompt) for task, group in (prompts or HELD_OUT).items() for prompt in group]
    wanted = [(t, p) for t, p in wanted if len(template.opening(p)) + len(template.after) < room]
    if not wanted:
        return []
    endless = _cycle([prompt for _, prompt in wanted])
    writer = Writer(
        target.weights,
        target.tokenizer,
        target.end_ids,
        seed=1,
        num_slots=len(wanted),
        max_tokens=MAX_TOKENS,
        draw=lambda _: Seed(next(endless), complete=True),
        temperatures=(temperature,),
    )
    found: dict[str, Conversation] = {}
    for text in writer.write():
        found.setdefault(text.user, _short(text))
        if len(found) == len({prompt for _, prompt in wanted}):
            break
    return [(task, found[prompt]) for task, prompt in wanted]


def _short(text: Conversation) -> Conversation:
    return Conversation(text.ids[: text.answer_start + MAX_ANSWER_TOKENS], text.answer_start, text.temperature)


def _cycle(prompts: list[str]) -> Iterator[str]:
    while True:
        yield from prompts


@torch.inference_mode()
def evaluate(recipe: Recipe, module: nn.Module, prompts: dict[str, tuple[str, ...]] | None = None) -> dict:
    """Measure a trained module.

    Returns:
        {temperature: {variant: {task or "all": {"overlap": by depth, "top1": by depth,
        "acceptance_length": γ = 4, "num_positions"}}}}; `variant` is "" or an exit depth such as "k=4".
    """
    module.eval()
    target, figures = recipe.target, {}
    lm = LeanLM(target.weights, target.num_ids, MAX_TOKENS)
    lm.taps = frozenset(recipe.layers)
    ids, rows = recipe.output(module)
    for temperature in TEMPERATURES:
        sums: dict[str, dict[str, _Sum]] = {}
        for task, text in answers(target, temperature, prompts):
            lm.reset()
            logits = lm.extend(text.ids)  # (n, vocab)
            batch = _batch(text, lm, recipe.layers)
            for variant, depths in _depths(recipe, module, batch, logits, ids, rows, temperature).items():
                groups = sums.setdefault(variant, {})
                for name in (task, "all"):
                    groups.setdefault(name, _Sum()).add(depths, recipe.chained, text.answer_start)
        figures[f"{temperature:g}"] = {v: {n: s.figures() for n, s in g.items()} for v, g in sums.items()}
    return figures


def _batch(text: Conversation, lm: LeanLM, layers: tuple[int, ...]) -> Batch:
    ids = torch.tensor([text.ids], device=lm.device)
    empty = ids.new_zeros(1, len(text.ids), 1)
    return Batch(ids, torch.ones_like(ids), empty, empty, {layer: lm.hidden[layer][None] for layer in layers})


def _depths(recipe: Recipe, module, batch: Batch, logits, ids, rows, temperature: float) -> dict[str, list[Depth]]:
    """Per variant, what each depth is worth along one text."""
    found: dict[str, list[Depth]] = {}
    following = batch.ids[0, 1:]  # row t is followed by following[t]
    for guess in recipe.guesses(module, batch):
        shift, count = guess.shift, len(following) - guess.shift
        if count < 1:
            continue
        q = torch.zeros(count, logits.shape[1], device=logits.device)
        q[:, ids] = _probs((guess.states[0, :count].float() @ rows.float().T), temperature)
        p = _probs(logits[shift : shift + count], temperature)
        token = following[shift:, None]
        ratio = (q.gather(1, token) / p.gather(1, token).clamp(min=1e-9)).clamp(max=1)[:, 0]
        same = (q.argmax(-1) == logits[shift : shift + count].argmax(-1)).float()
        found.setdefault(guess.label, []).append(Depth(ratio, torch.minimum(p, q).sum(-1), same))
    return found


def _probs(logits: torch.Tensor, temperature: float) -> torch.Tensor:
    """Probabilities (n, m); temperature 0 is one-hot."""
    if temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).float()
    return (logits.float() / temperature).softmax(-1)


class _Sum:
    """Adds up the depths of many texts, answer rows only."""

    def __init__(self):
        self._overlap = [0.0] * GAMMA
        self._top1 = [0.0] * GAMMA
        self._rows = [0] * GAMMA
        self._accepted, self._starts = 0.0, 0

    def add(self, depths: list[Depth], chained: bool, answer_start: int) -> None:
        first = max(0, answer_start - 1)
        if chained:  # one step that feeds itself: its depth j is the next row but j - 1
            only = depths[0]
            depths = [Depth(only.ratio[j:], only.overlap[j:], only.top1[j:]) for j in range(GAMMA)]
        for number, depth in enumerate(depths[:GAMMA]):
            self._overlap[number] += float(depth.overlap[first:].sum())
            self._top1[number] += float(depth.top1[first:].sum())
            self._rows[number] += max(0, len(depth.overlap) - first)
        starts = max(0, len(depths[0].ratio) - first - GAMMA + 1)  # rows with a whole chain ahead
        alive = torch.ones(starts, device=depths[0].ratio.device)
        for depth in depths[:GAMMA]:
            alive = alive * depth.ratio[first : first + starts]
            self._accepted += float(alive.sum())
        self._starts += starts

    def figures(self) -> dict:
        depths = [number for number, rows in enumerate(self._rows) if rows]
        return {
            "overlap": [round(self._overlap[n] / self._rows[n], 4) for n in depths],
            "top1": [round(self._top1[n] / self._rows[n], 4) for n in depths],
            "acceptance_length": round(1 + self._accepted / max(1, self._starts), 3),
            "num_positions": self._rows[0],
        }


@torch.inference_mode()
def rank_accuracy(recipe: Recipe, module: nn.Module, batches: list[Batch], num_ranks: int = 10) -> dict:
    """How often the target's likeliest token is the drafter's 1st, 2nd, … choice, by depth, on training text.

    For choosing a tree without looking at the held-out prompts.

    Returns:
        {label of the guess: [share of rank 1, rank 2, …]}.
    """
    module.eval()
    ids, rows = recipe.output(module)
    hits: dict[str, torch.Tensor] = {}
    counts: dict[str, int] = {}
    for batch in batches:
        for guess in recipe.guesses(module, batch):
            label, (chosen, right) = label_of(guess), _ranked(guess, batch, rows, num_ranks)
            hits[label] = hits.get(label, 0) + (ids[chosen] == right[:, None]).float().sum(0)
            counts[label] = counts.get(label, 0) + len(right)
    return {label: [round(float(hit) / counts[label], 4) for hit in total] for label, total in hits.items()}


def _ranked(guess: Guess, batch: Batch, rows: torch.Tensor, num_ranks: int) -> tuple[torch.Tensor, torch.Tensor]:
    weight = batch.weight[:, guess.shift :]
    counts = weight >= 1
    states = guess.states[:, : weight.shape[1]][counts]
    logits = states.to(rows.dtype) @ rows.T
    return logits.topk(min(num_ranks, logits.shape[1]), dim=-1).indices, batch.top_ids[:, guess.shift :][counts][:, 0]
