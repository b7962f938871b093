"""EAGLE head: unrolled over its own features, so that each step is trained as it is used.

Step 1 reads the target's features. Step j reads what step j-1 gave, looks at the keys and values
that true features left behind, and at its own of the steps before: exactly what a chain of drafted
tokens sees. Source: EAGLE-3's training-time test (Li et al. 2025, §3.2).
"""

import torch
from torch import nn

from playground.heads import EagleHead
from playground.training.batches import Batch
from playground.training.recipes.base import DEPTH_DECAY, Guess, Recipe, Samples

JUDGED_STEPS = 4  # of an evaluated chain; fewer are trained, the later ones are alike


class EagleRecipe(Recipe):
    """Options: num_steps, feature_layers."""

    name = "eagle"
    learning_rate = 6e-4
    batch_tokens = 3072

    @property
    def layers(self) -> tuple[int, ...]:
        count = self.target.num_layers
        return tuple(self.options.get("feature_layers") or (count // 3, 2 * count // 3, count))

    def make(self, draft_ids: torch.Tensor, samples: Samples) -> nn.Module:
        module = EagleHead.from_target(self.target.model, draft_ids, self.layers)
        module.start_from(samples.embeds, samples.hidden, samples.before_last, self.target.weights.final_norm)
        return module

    def guesses(self, module: nn.Module, batch: Batch) -> list[Guess]:
        features = module.fuse(batch.hidden)  # (B, T, hidden)
        keys: list[torch.Tensor] = []
        values: list[torch.Tensor] = []
        found = []
        steps = self.options.get("num_steps", 3)
        for step in range(1, (steps if module.training else max(steps, JUDGED_STEPS)) + 1):
            if batch.ids.shape[1] <= step:
                break
            embeds = self.embed(batch.ids[:, step:])  # row t: token t + step
            rows = embeds.shape[1]
            positions = torch.arange(rows, device=embeds.device) + step - 1
            x = module.mixed(embeds, features[:, :rows])
            q, k, v = module.heads(x, positions)
            keys, values = [part[:, :, :rows] for part in (*keys, k)], [part[:, :, :rows] for part in (*values, v)]
            features = module.finished(x, attend(q, keys, values))
            found.append(Guess(step, module.state(features), DEPTH_DECAY ** (step - 1)))
        return found


def attend(q: torch.Tensor, keys: list[torch.Tensor], values: list[torch.Tensor]) -> torch.Tensor:
    """Attention of one unrolled step: causal over the first keys, the own row only of the later ones.

    Args:
        q: (B, heads, n, d). keys, values: one (B, kv, n, d) per step so far, the first from true features.

    Returns:
        (B, heads, n, d).
    """
    batch, heads, count, head_dim = q.shape
    grouped = q.view(batch, keys[0].shape[1], -1, count, head_dim) * head_dim**-0.5  # (B, kv, G, n, d)
    causal = torch.ones(count, count, dtype=torch.bool, device=q.device).tril()
    scores = [(grouped @ keys[0][:, :, None].transpose(-1, -2)).masked_fill(~causal, float("-inf"))]
    scores += [(grouped * own[:, :, None]).sum(-1, keepdim=True) for own in keys[1:]]
    shares = torch.cat(scores, dim=-1).float().softmax(-1).to(q.dtype)
    mixed = shares[..., :count] @ values[0][:, :, None]
    for place, own in enumerate(values[1:]):
        mixed = mixed + shares[..., count + place, None] * own[:, :, None]
    return mixed.reshape(batch, heads, count, head_dim)
