"""What the tabs of labs share: one job of the models at a time per browser session, stoppable, errors as a note.

Knows no particular lab.
"""

from collections.abc import Callable, Iterator
from html import escape
from typing import Any

import gradio as gr

from playground.events import Failed, Progress
from playground.ui.notes import note

BATCH_S = 0.25


def quiet_events() -> dict:
    """What every event of a lab is wired with: a state stands for the progress that gradio would renew by itself."""
    return {"show_progress": "hidden", "show_progress_on": gr.State(), "api_visibility": "private"}


def follow(
    playground: Any, job: Callable, show: Callable[[list], str], told: Callable[[Progress], str] | None = None
) -> Iterator[tuple[str, str]]:
    """Run a job and yield (status, picture) as HTML each time there is something new.

    Args:
        job: what Playground.lab takes.
        show: takes the new values of the job and returns the whole picture.
        told: turns progress into the status; None = `progress_note`.
    """
    told = told or progress_note
    picture, status = show([]), told(Progress("waiting", "Preparing", None))
    batches = playground.lab(job, BATCH_S)
    try:
        yield status, picture
        for batch in batches:
            values = [item for item in batch if not isinstance(item, Progress | Failed)]
            for item in batch:
                if isinstance(item, Failed):
                    yield failed_note(item), show(values)
                    return
                status = told(item) if isinstance(item, Progress) else ""
            if values:
                picture = show(values)
            if batch:
                yield status, picture
        yield "", picture
    finally:
        batches.close()


def download_script(name: str) -> str:
    """JavaScript that turns a text into a file the browser saves under this name; nothing where it is empty."""
    return """(text) => {
  if (!text) return;
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'text/plain' }));
  link.download = 'NAME';
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}""".replace("NAME", name)


def progress_note(news: Progress) -> str:
    """What is being waited for, with its share where it is known."""
    share = "" if news.fraction is None else f" · {news.fraction:.0%}"
    return note(f"{news.message}{share}")


def failed_note(news: Failed) -> str:
    """Why it did not work and what to do."""
    return f'<p class="note failed" role="alert"><b>{escape(news.message)}</b> {escape(news.hint)}</p>'
