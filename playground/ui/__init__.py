"""The page. Gradio lives in this package only; `render`, `charts` and `text` do without it.

Knows nothing of models: it talks to one Playground object and shows the events that come back.
"""
