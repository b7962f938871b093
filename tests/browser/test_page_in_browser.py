"""The page as a whole in a real browser: narrow screens, keyboard, dark mode, presets, settings, words."""

import pytest
from browser.conftest import PHONE, run

from playground.presets import PRESETS, preset, preset_settings

CONTRAST = """(selector) => {
    const shade = ([r, g, b]) => {
        const linear = [r, g, b].map((v) => (v > 10 ? ((v / 255 + 0.055) / 1.055) ** 2.4 : v / 3294.6));
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
    };
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const paint = (colors) => {
        canvas.clearRect(0, 0, 1, 1);
        for (const color of colors) {
            canvas.fillStyle = color;
            canvas.fillRect(0, 0, 1, 1);
        }
        return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    return [...document.querySelectorAll(selector)].map((element) => {
        const behind = [];
        for (let at = element; at; at = at.parentElement) behind.unshift(getComputedStyle(at).backgroundColor);
        const back = paint(behind);
        const front = paint([`rgb(${back})`, getComputedStyle(element).color]);
        const [dark, light] = [shade(front), shade(back)].sort((x, y) => x - y);
        return [element.className, (light + 0.05) / (dark + 0.05)];
    });
}"""


def overflow(page):
    return page.evaluate("document.documentElement.scrollWidth - window.innerWidth")


def test_on_a_phone_nothing_scrolls_sideways_and_settings_are_one_tap_away(visit):
    page = visit(viewport=PHONE, has_touch=True)
    assert overflow(page) <= 0
    assert page.is_hidden("#settings-column")
    page.click("#settings-toggle button")
    assert page.is_visible("#set-gamma")
    assert overflow(page) <= 0
    page.click("#settings-toggle button")
    run(page, f"#markup {'averyveryverylongword' * 12} and some more words to wrap")
    page.locator(".spec .charts").scroll_into_view_if_needed()
    page.wait_for_function("document.querySelectorAll('.spec .plot.js-plotly-plot').length > 0")
    assert overflow(page) <= 0
    page.locator(".strip .tok").first.tap()
    assert page.is_visible(".spec .pinned")
    assert overflow(page) <= 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_of_the_view_has_enough_contrast(visit, theme):
    page = visit(theme=theme)
    run(page, "a story", max_new_tokens=40)
    page.locator(".strip .tok.rejected").first.click()
    shown = ".legend .tok, .strip .tok, .figure > *, .status span, .place, .facts dt, .facts dd, figcaption *"
    ratios = page.evaluate(CONTRAST, shown)
    assert len(ratios) > 60
    assert {name: round(ratio, 2) for name, ratio in ratios if ratio < 4.5} == {}


def test_the_strip_can_be_read_by_keyboard_alone(visit):
    page = visit()
    run(page, "#markup alpha beta gamma delta epsilon zeta", gamma=2)
    strip = page.locator(".spec .strip")
    assert strip.get_attribute("role") == "group"
    strip.focus()
    page.keyboard.press("Home")
    assert page.is_visible(".spec .tip")
    assert "alpha" in page.inner_text(".spec [aria-live=polite]")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.is_visible(".spec .pinned")
    assert page.locator(".strip .pinned-token").count() == 1
    page.keyboard.press("Escape")
    assert page.is_hidden(".spec .pinned")
    page.keyboard.press("End")
    assert "zeta" in page.inner_text(".spec [aria-live=polite]")


def test_the_keyboard_skips_tokens_that_are_hidden(visit):
    page = visit()
    run(page, "a story", max_new_tokens=60)
    page.get_by_text("Hide rejected").click()
    page.locator(".spec .strip").focus()
    page.keyboard.press("Home")
    for _ in range(59):
        page.keyboard.press("ArrowRight")
    assert page.evaluate("document.querySelector('.strip .focused').classList.contains('out')")
    last = "[...document.querySelectorAll('.strip .out')].at(-1) === document.querySelector('.strip .focused')"
    assert page.evaluate(last)


def test_pointing_at_a_token_tells_its_numbers_and_clicking_keeps_them(visit):
    page = visit()
    run(page, "a story", max_new_tokens=60)
    rejected = page.locator(".strip .tok.rejected").first
    rejected.hover()
    tip = page.inner_text(".spec .tip")
    for word in ("rejected", "round", "position", "target p", "draft q", "drawn u", "overlap"):
        assert word in tip
    assert page.locator(".spec .tip .top li").count() == 5
    rejected.click()
    assert page.locator(".spec .pinned h4").all_inner_texts() == ["Target", "Draft", "Residual"]
    assert page.locator(".spec .pinned li").count() == 15
    page.get_by_label("Close details").click()
    assert page.is_hidden(".spec .pinned")


def test_every_figure_explains_itself_on_hover_and_focus(visit):
    page = visit()
    for card in page.locator(".spec .figure").all():
        meaning = card.locator(".definition")
        assert meaning.is_hidden()
        card.focus()
        assert meaning.is_visible()
        assert card.get_attribute("aria-describedby") == meaning.get_attribute("id")
        assert len(meaning.inner_text()) > 60


def test_presets_fill_in_prompt_settings_and_what_to_expect(visit):
    page = visit()
    for item in (preset("story"), preset("refactor"), preset("chat")):
        page.locator("#presets label", has_text=item.title).click()
        page.wait_for_function("(text) => document.querySelector('#prompt textarea').value === text", arg=item.prompt)
        wanted = preset_settings(item)
        page.wait_for_function(
            "(gamma) => document.querySelector('#set-gamma input[type=number]').value === String(gamma)",
            arg=wanted["gamma"],
        )
        assert float(page.input_value("#set-temperature input[type=number]")) == wanted["temperature"]
        assert page.locator(f"#set-proposer input[value={wanted['proposer']}]").is_checked()
        assert item.expect in page.inner_text("#expect")
    assert page.locator("#presets label").count() == len(PRESETS)


def test_what_cannot_run_here_is_listed_with_its_reason(visit):
    page = visit()
    page.click("#precisions button.label-wrap")
    page.wait_for_selector("#precision-note >> text=needs a CUDA device")
    assert "Apache 2.0" in page.inner_text("#target-note")
    page.locator("#set-target input").click()
    page.get_by_role("option", name="Qwen2.5-1.5B").click()
    page.wait_for_selector("#target-note >> text=out of reach")


def test_any_hub_id_or_folder_can_be_typed_as_target(visit, double):
    page = visit()
    field = page.locator("#set-target input")
    field.fill("someone/some-model")
    field.press("Enter")
    run(page, "#markup x")
    assert double.settings[-1].target == "someone/some-model"


def test_the_theme_button_switches_between_light_and_dark(visit):
    page = visit()
    surface = "getComputedStyle(document.querySelector('.spec .figure')).backgroundColor"
    light = page.evaluate(surface)
    page.click("#theme-toggle")
    assert page.evaluate(surface) != light
    page.click("#theme-toggle")
    assert page.evaluate(surface) == light
