"""Lessons: settings that exist, answers that take a run's figures, and a workshop that fits an hour."""

from pathlib import Path

import pytest

from playground import trace
from playground.config import DEFAULTS, RunSettings
from playground.lab.why import explain
from playground.ui.lessons import LESSONS
from playground.ui.lessons_tab import answer_html, lesson_html, teachers_html
from playground.ui.recordings import FOLDER

EXAMPLE = Path(__file__).parents[1] / "traces" / "version-1.jsonl"


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.id)
def test_every_lesson_can_be_set_asked_and_answered(lesson):
    assert RunSettings(**DEFAULTS | lesson.settings).prompt
    assert lesson.question.split("?")[0][:20] in lesson_html(lesson)
    own = answer_html(lesson, explain(trace.load(EXAMPLE)))
    assert "{" not in own and "}" not in own
    assert lesson.without[:20] in answer_html(lesson, None)
    assert not lesson.recording or (FOLDER / lesson.recording).is_file()


def test_there_are_eight_and_they_fit_an_hour():
    assert len({lesson.id for lesson in LESSONS}) == 8
    assert 45 <= sum(lesson.minutes for lesson in LESSONS) <= 58
    assert all(lesson.exercise[:20] in teachers_html() for lesson in LESSONS)


def test_at_least_half_of_the_answers_use_the_learners_own_figures():
    assert sum("{" in lesson.answer for lesson in LESSONS) >= 6
