"""Wording of the Lessons tab. Plain strings only, as in `text`."""

LESSONS_NAME = "Lessons"
LESSONS_INTRO = (
    "Eight steps of a few minutes. Each sets the controls of the Generate tab, says where to look and asks a "
    "question; the "
    "answer uses the figures of your own run."
)
STEP = "Step"
SET_UP = "Set the controls for this step"
REPLAY = "Use the recording instead"
REVEAL = "Reveal the answer"
LOOK, QUESTION, ANSWER = "Where to look", "Question", "Answer"
READY = "The controls are set. Go to the Generate tab and press Generate."
REPLAYED = "The recording is on the Generate tab. Look at it there, then reveal the answer."
NO_RECORDING = "There is no recording for this step: it needs a run of your own."
TEACHERS = "For instructors: a workshop of 60 minutes"
TEACHERS_INTRO = (
    "Steps 1 to 8 take {minutes} minutes with their questions; leave the rest for exercises in pairs. Without a GPU "
    "and "
    "without a network everything runs on the bundled target; where no model runs at all, recordings and the Theory "
    "tab do."
)
TEACHERS_COLUMNS = ("Step", "Minutes", "Exercise")
