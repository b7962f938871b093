"""A person's prompt as the target's token ids: chat template or plain text, exactly one start token."""

from jinja2 import TemplateError

from playground.config import RunSettings
from playground.registry.loading import LoadedModel


def encode(target: LoadedModel, settings: RunSettings) -> tuple[str, list[int]]:
    """Return the text the target sees and its token ids.

    With a chat template the template alone decides about special tokens; without one the tokenizer
    adds its usual start token, if it has one.

    Raises:
        ValueError: no token, or no room left for an answer.
    """
    tokenizer = target.tokenizer
    if settings.chat_template and getattr(tokenizer, "chat_template", None):
        messages = [{"role": "user", "content": settings.prompt}]
        if settings.system_prompt.strip():
            messages.insert(0, {"role": "system", "content": settings.system_prompt})
        try:
            text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        except TemplateError as error:
            raise ValueError(f"The chat template of {target.name} refuses this prompt: {error}.") from error
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    else:
        text = settings.prompt
        ids = tokenizer(text)["input_ids"]
    if not ids:
        raise ValueError("The prompt is empty: type something for the target to continue.")
    if len(ids) > target.context_limit:
        raise ValueError(
            f"The prompt has {len(ids)} tokens; {target.name} takes at most {target.context_limit}. Shorten it."
        )
    return text, ids
