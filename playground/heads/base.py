"""What every head has: a draft vocabulary and, once bound, the target's output rows for it."""

import torch
from torch import nn


class Head(nn.Module):
    """Base of the heads.

    Attributes:
        kind: the word in config.json.
        config: the arguments that make this module again, plain values.
        draft_ids: (D,) token id of each draft index; kept in the file.
    """

    kind = ""

    def __init__(self, hidden_size: int, num_draft_ids: int, **config):
        super().__init__()
        self.config = {"hidden_size": hidden_size, "num_draft_ids": num_draft_ids} | config
        self.register_buffer("draft_ids", torch.arange(num_draft_ids))
        self.output = nn.Identity()

    def bind(self, rows: torch.Tensor) -> None:
        """Take the target's output rows (D, hidden) of the draft vocabulary; they are not saved."""
        output = nn.Linear(rows.shape[1], rows.shape[0], bias=False, device="meta")
        output.weight = nn.Parameter(rows, requires_grad=False)
        self.output = output

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """Normed states (…, hidden) → draft logits (…, D), float32."""
        return self.output(states).float()

    def state_dict(self, *args, **kwargs):
        """Everything but the target's output rows."""
        return {k: v for k, v in super().state_dict(*args, **kwargs).items() if not k.startswith("output.")}

    def load_state_dict(self, state_dict, strict: bool = True, assign: bool = False):
        """Load what `state_dict` gives; the bound rows stay as they are."""
        own = {k: v for k, v in super().state_dict().items() if k.startswith("output.")}
        return super().load_state_dict({**own, **state_dict}, strict=strict, assign=assign)
