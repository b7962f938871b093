"""The look of the page: Gradio's theme variables, and the style sheets of static/.

Fonts are those Gradio serves itself, so that nothing is fetched from elsewhere; regular and bold only,
as its semi-bold files lack most letters.
"""

import gradio as gr
from gradio.themes.utils.fonts import LocalFont

from playground.ui.text_proposers import TEACHING, TEACHING_TITLE
from playground.ui.view import STATIC

STYLE_SHEETS = ("page", "view", "labs")
VARIABLES = {
    "body_background_fill": "#f6f7f9",
    "body_background_fill_dark": "#0d1015",
    "body_text_color": "#1b2330",
    "body_text_color_dark": "#e6e9ef",
    "body_text_color_subdued": "#5a6577",
    "body_text_color_subdued_dark": "#9aa5b6",
    "background_fill_primary": "#ffffff",
    "background_fill_primary_dark": "#151920",
    "background_fill_secondary": "#f6f7f9",
    "background_fill_secondary_dark": "#1b2029",
    "block_background_fill": "#ffffff",
    "block_background_fill_dark": "#151920",
    "block_border_width": "0px",
    "block_border_color": "#e3e7ed",
    "block_border_color_dark": "#272d38",
    "border_color_primary": "#e3e7ed",
    "border_color_primary_dark": "#272d38",
    "block_shadow": "none",
    "block_label_text_size": "13px",
    "block_title_text_size": "13px",
    "block_title_text_weight": "600",
    "block_title_text_color": "#344054",
    "block_title_text_color_dark": "#cbd3df",
    "block_info_text_size": "12px",
    "block_info_text_color": "#5a6577",
    "block_info_text_color_dark": "#9aa5b6",
    "input_background_fill": "#ffffff",
    "input_background_fill_dark": "#0f1319",
    "input_border_color": "#d5dbe4",
    "input_border_color_dark": "#303846",
    "input_text_size": "14px",
    "button_primary_background_fill": "#1f5fd0",
    "button_primary_background_fill_dark": "#2f6fe4",
    "button_primary_background_fill_hover": "#184fb0",
    "button_primary_background_fill_hover_dark": "#2761cc",
    "slider_color": "#1f5fd0",
    "slider_color_dark": "#5b93f5",
}


def page_theme() -> gr.themes.Base:
    """Return the theme: calm slate, one blue accent, cards with a thin line."""
    return gr.themes.Default(
        primary_hue=gr.themes.colors.blue,
        secondary_hue=gr.themes.colors.blue,
        neutral_hue=gr.themes.colors.slate,
        font=(LocalFont("IBM Plex Sans", weights=(400, 700)), "ui-sans-serif", "system-ui", "sans-serif"),
        font_mono=(LocalFont("IBM Plex Mono", weights=(400, 700)), "ui-monospace", "monospace"),
    ).set(**VARIABLES)


def page_css() -> str:
    """Return the style sheets as one."""
    return "\n".join([*((STATIC / f"{name}.css").read_text("utf-8") for name in STYLE_SHEETS), teaching_css()])


def teaching_css() -> str:
    """Return what moves the teaching proposers behind a title of their own among the tiles."""
    values = ", ".join(f'[value="{name}"]' for name in TEACHING)
    return (
        f".tiles label:has(input:is({values})) {{ order: 2; }}\n"
        f'.tiles .wrap::after {{ order: 1; content: "{TEACHING_TITLE}"; }}\n'
    )
