"""The card that chooses a proposer: its own options only, then gamma and the policy for it.

Which option matters to which proposer is said in `config`. Knows no run.
"""

import gradio as gr

from playground.config import PROPOSER_OPTIONS
from playground.ui.fields import PRECISION_CHOICES, checkbox, choice, number, slider, text_field
from playground.ui.notes import proposer_note
from playground.ui.text import AUTO_PRECISION, LABELS
from playground.ui.text_proposers import POLICY_HINTS, POLICY_LABELS, PROPOSER_LABELS

SLIDERS = (
    *("min_share", "exit_layers", "tree_nodes", "tree_top_k", "typical_epsilon"),
    *("window", "ngram_size", "num_guesses", "noise_alpha"),
)


class ProposerCard:
    """The components of the card. `inputs` maps a setting's name to its component."""

    def __init__(self, first: dict):
        self._first = first
        self.inputs: dict[str, gr.Component] = {}
        self.inputs["proposer"] = gr.Radio(
            [(label, name) for name, label in PROPOSER_LABELS.items()],
            value=first["proposer"],
            label=LABELS["proposer"],
            elem_id="set-proposer",
            elem_classes="tiles",
        )
        self.note = gr.HTML(proposer_note(first["proposer"]), elem_id="proposer-hint")
        self.options = self._options()
        self._gamma()

    def _options(self) -> dict[str, gr.Component]:
        first, own = self._first, PROPOSER_OPTIONS[self._first["proposer"]]
        made = {}
        with gr.Row(elem_classes="pair"):
            for size in ("ngram_min", "ngram_max"):
                made[size] = number(size, first[size], visible=size in own)
        for name in SLIDERS:
            made[name] = slider(name, first[name], visible=name in own)
        made["draft"] = choice("draft", [], visible="draft" in own)
        made["draft_precision"] = choice("draft_precision", PRECISION_CHOICES, visible="draft_precision" in own)
        copies = [(AUTO_PRECISION, "auto"), *PRECISION_CHOICES]
        made["quantized_precision"] = choice("quantized_precision", copies, visible="quantized_precision" in own)
        for name in ("greedy_draft", "adapter", "guess_tree"):
            made[name] = checkbox(name, first[name], visible=name in own)
        made["corpus"] = text_field("corpus", first["corpus"], visible="corpus" in own)
        self.inputs |= made
        return made

    def _gamma(self) -> None:
        first, policies = self._first, [(label, name) for name, label in POLICY_LABELS.items()]
        policy, threshold = first["gamma_policy"], first["confidence_threshold"]
        self.inputs["gamma"] = slider("gamma", first["gamma"], low=1)
        self.inputs["gamma_policy"] = choice(
            "gamma_policy", policies, custom=False, value=policy, info=POLICY_HINTS[policy], filterable=False
        )
        self.inputs["confidence_threshold"] = slider("confidence_threshold", threshold, visible=policy == "confidence")

    def show(self, proposer: str, policy: str, facts: str = "") -> list:
        """Return updates that show the options of the chosen proposer and policy only."""
        own, guesses = PROPOSER_OPTIONS.get(proposer, ()), proposer != "none"
        return [
            proposer_note(proposer, facts),
            gr.update(interactive=guesses),
            gr.update(visible=guesses, info=POLICY_HINTS.get(policy, "")),
            gr.update(visible=guesses and policy == "confidence"),
            *(gr.update(visible=name in own) for name in self.options),
        ]

    @property
    def shown(self) -> list:
        """The components that `show` updates."""
        around_gamma = [self.inputs[name] for name in ("gamma", "gamma_policy", "confidence_threshold")]
        return [self.note, *around_gamma, *self.options.values()]
