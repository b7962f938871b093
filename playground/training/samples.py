"""Some thousand tokens run through the target to start a module's norms from."""

from collections.abc import Sequence

import torch

from playground.lm import LeanLM
from playground.training.recipes.base import Samples, Target
from playground.training.writer import Conversation

NUM_TOKENS = 16_000


def take_samples(target: Target, texts: Sequence[Conversation], layers: Sequence[int]) -> Samples:
    """Hidden states of the first texts: `layers` of token t, embeddings and the last layer's input of token t+1."""
    lm = LeanLM(target.weights, target.num_ids, max(len(text.ids) for text in texts))
    last = target.num_layers - 1
    lm.taps = frozenset({*layers, last, target.num_layers})
    hidden: dict[int, list[torch.Tensor]] = {layer: [] for layer in lm.taps}
    following: list[torch.Tensor] = []
    ids: list[int] = []
    for text in texts:
        lm.reset()
        lm.extend(text.ids)
        for layer in lm.taps:
            hidden[layer].append(lm.hidden[layer][:-1].float())
        following.append(lm.hidden[last][1:].float())
        ids += text.ids[1:]
        if len(ids) >= NUM_TOKENS:
            break
    embeds = target.weights.embedding[torch.tensor(ids, device=target.weights.device)].float()
    return Samples({layer: torch.cat(parts) for layer, parts in hidden.items()}, embeds, torch.cat(following))
