"""The one exception a person is meant to read: what went wrong with a model, and what to do.

Raised by the registry and its parts. Knows nothing of models, devices or pages.
"""


class ModelError(Exception):
    """A model cannot be used. `message` is one plain sentence, `hint` says what to do about it."""

    def __init__(self, message: str, hint: str = ""):
        super().__init__(message)
        self.message = message
        self.hint = hint
