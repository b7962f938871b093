"""What a recipe needs of the target, computed once per text and kept on disk as memory-mapped shards.

Per token: the hidden states of some layers (bfloat16) and the target's likeliest next tokens with
their probabilities. A shard is a folder of .npy files over SHARD_TEXTS texts; each file appears
whole or not at all, so an interrupted pass goes on where it stopped, and a recipe that needs one
more layer computes that layer only. About 260 bytes a token and 1,150 per layer 576 wide.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from playground.lm import LeanLM, LeanWeights
from playground.training.writer import Conversation

SHARD_TEXTS = 32
NUM_TOP = 64  # likeliest next tokens kept

Report = Callable[[int], None]


class FeatureStore:
    """Shards over a list of texts.

    Attributes:
        texts: the texts covered, in order.
        layers: layers whose hidden states are there.
    """

    def __init__(self, folder: Path, texts: Sequence[Conversation], layers: Sequence[int]):
        self._folder, self.texts, self.layers = Path(folder), list(texts), tuple(sorted(layers))
        self._open: dict[int, dict[str, np.ndarray]] = {}

    @property
    def num_shards(self) -> int:
        return -(-len(self.texts) // SHARD_TEXTS)

    def build(self, weights: LeanWeights, num_ids: int, report: Report) -> None:
        """Compute what is missing. `report` gets the number of tokens done so far, those found included.

        Args:
            weights: the target. num_ids: tokens its tokenizer knows.
        """
        lm, done = LeanLM(weights, num_ids, max(len(text.ids) for text in self.texts)), 0
        for number in range(self.num_shards):
            texts = self._texts(number)
            wanted = self._missing(number, texts)
            if wanted:
                self._write(number, texts, wanted, lm, lambda part, done=done: report(done + part))
            done += sum(len(text.ids) for text in texts)

    def _texts(self, number: int) -> list[Conversation]:
        return self.texts[number * SHARD_TEXTS : (number + 1) * SHARD_TEXTS]

    def _path(self, number: int, name: str) -> Path:
        return self._folder / f"shard-{number:05d}" / f"{name}.npy"

    def _missing(self, number: int, texts: list[Conversation]) -> set[str]:
        names = {"top_ids", "top_probs", *(f"hidden-{layer}" for layer in self.layers)}
        ids = self._path(number, "ids")
        if not ids.exists() or not np.array_equal(np.load(ids), _joined(texts)):
            return names | {"ids"}
        return {name for name in names if not self._path(number, name).exists()}

    def _write(self, number: int, texts: list[Conversation], names: set[str], lm: LeanLM, report: Report) -> None:
        self._path(number, "ids").parent.mkdir(parents=True, exist_ok=True)
        if "ids" in names:  # other texts than before: nothing of the shard is valid
            for old in self._path(number, "ids").parent.glob("*.npy"):
                old.unlink()
        lm.taps = frozenset(self.layers)
        columns: dict[str, list[np.ndarray]] = {name: [] for name in names - {"ids"}}
        done = 0
        for text in texts:
            for name, values in _features(lm, text.ids, names).items():
                columns[name].append(values)
            done += len(text.ids)
            report(done)
        arrays = {name: np.concatenate(parts) for name, parts in columns.items()}
        if "ids" in names:
            arrays["ids"] = _joined(texts)
        for name in sorted(arrays, key="ids".__eq__):  # ids last: they say that the rest is there
            partial = self._path(number, f"{name}.partial")
            np.save(partial, arrays[name])
            partial.replace(self._path(number, name))

    def read(self, index: int) -> dict[str, torch.Tensor]:
        """The features of text `index`: top_ids (n, K) int64, top_probs (n, K) float32, hidden-l (n, hidden) bf16."""
        number, offset = divmod(index, SHARD_TEXTS)
        if number not in self._open:
            names = ("top_ids", "top_probs", *(f"hidden-{layer}" for layer in self.layers))
            self._open[number] = {name: np.load(self._path(number, name), mmap_mode="r") for name in names}
        start = sum(len(text.ids) for text in self.texts[number * SHARD_TEXTS : number * SHARD_TEXTS + offset])
        rows = slice(start, start + len(self.texts[index].ids))
        found = {name: torch.from_numpy(np.array(array[rows])) for name, array in self._open[number].items()}
        found["top_ids"], found["top_probs"] = found["top_ids"].long(), found["top_probs"].float()
        return {k: v.view(torch.bfloat16) if k.startswith("hidden") else v for k, v in found.items()}


def _joined(texts: list[Conversation]) -> np.ndarray:
    return np.concatenate([np.asarray(text.ids, dtype=np.int32) for text in texts])


def _features(lm: LeanLM, ids: list[int], names: set[str]) -> dict[str, np.ndarray]:
    """One pass over one text: the arrays of `names`, a row per token. It ends at the last layer that is wanted."""
    lm.reset()
    wants_top = "top_ids" in names or "top_probs" in names
    deepest = max((layer for layer in lm.taps if f"hidden-{layer}" in names), default=0)
    if wants_top or not 0 < deepest < lm.num_layers:
        logits = lm.extend(ids, logits=wants_top)  # (n, vocab)
    else:
        lm.hidden[deepest] = lm.extend_partly(ids, deepest)
    found = {}
    if wants_top:
        top = logits.topk(min(NUM_TOP, logits.shape[1]), dim=-1)
        found["top_ids"] = top.indices.to(torch.int32).cpu().numpy()
        found["top_probs"] = (top.values - logits.logsumexp(-1, keepdim=True)).exp().half().cpu().numpy()
    for layer in lm.taps:
        if f"hidden-{layer}" in names:
            found[f"hidden-{layer}"] = lm.hidden[layer].to(torch.bfloat16).contiguous().view(torch.int16).cpu().numpy()
    return {name: values for name, values in found.items() if name in names}
