"""The token strip in a real browser: exact text, nothing executed, nothing half shown."""

import re

from browser.conftest import copied, output, run
from browser.double import CODE

MARKUP = (
    "List<int> x; if a < b > c; <think>hm</think>; <script>window.hurt = 1</script> "
    '<img src="http://nowhere.invalid/x.png" onerror="window.hurt = 1"> <style>body{display:none}</style> '
    "${window.hurt = 1} `{{prompt}}` \\n &amp; <|im_end|>"
)


def test_markup_is_shown_as_characters_and_never_run(visit):
    page = visit()
    before = page.evaluate("getComputedStyle(document.body).display")
    run(page, f"#markup {MARKUP}")
    assert output(page) == MARKUP
    assert copied(page) == MARKUP
    assert page.evaluate("window.hurt") is None
    assert page.evaluate("getComputedStyle(document.body).display") == before != "none"
    assert page.input_value("#prompt textarea") == f"#markup {MARKUP}"
    assert page.locator(".spec .strip img, .spec .strip script, .spec .strip style").count() == 0


def test_markup_in_the_detail_of_a_token_is_characters_too(visit):
    page = visit()
    run(page, "#markup <b>x</b> <i>y</i>", gamma=1)
    page.locator(".strip .tok.out").first.click()
    assert page.inner_text(".pinned .detail-head .tok") == "<"


def test_copied_code_keeps_every_space_tab_and_line_break(visit):
    page = visit()
    run(page, "#code", temperature=0)
    assert copied(page) == CODE
    assert page.locator(".strip .rejected").count() + page.locator(".strip .untested").count() > 0


def test_neighbouring_accepted_tokens_stay_apart(visit):
    page = visit()
    run(page, "#markup one two three four five six seven eight nine ten")
    accepted = page.locator(".strip .tok.accepted")
    assert accepted.count() >= 3
    assert page.evaluate("getComputedStyle(document.querySelector('.strip .tok.accepted')).borderRightWidth") != "0px"


def test_part_of_the_output_can_be_copied_exactly(visit):
    page = visit()
    run(page, "#markup alpha beta gamma delta", gamma=2)
    text = page.evaluate("""() => {
        const [first, second] = document.querySelectorAll('.strip .out');
        const walk = (node) => (node.lastChild ? walk(node.lastChild) : node);
        const range = document.createRange();
        range.setStart(walk(first), 2);
        range.setEnd(walk(second), 2);
        document.getSelection().removeAllRanges();
        document.getSelection().addRange(range);
        const data = new DataTransfer();
        const copy = new ClipboardEvent('copy', { clipboardData: data, cancelable: true });
        document.querySelector('.strip').dispatchEvent(copy);
        return data.getData('text/plain');
    }""")
    assert text == "pha be"


def test_the_copy_button_copies_the_output_only(visit):
    page = visit(permissions=["clipboard-read", "clipboard-write"])
    run(page, "#code")
    page.click(".spec .copy")
    page.wait_for_function("document.querySelector('.spec .copy').textContent === 'Copied'")
    assert page.evaluate("navigator.clipboard.readText()") == CODE


def test_half_characters_are_never_shown_and_emoji_come_out_whole(visit):
    page = visit()
    page.evaluate("""() => {
        window.bad = 0;
        new MutationObserver(() => {
            if (document.querySelector('.spec').innerText.includes('\\ufffd')) window.bad++;
        }).observe(document.querySelector('.spec'), { childList: true, subtree: true, characterData: true });
    }""")
    run(page, "#emoji", gamma=2)
    assert output(page) == "👩\u200d🚀 漢字 e\u0301" * 3 == copied(page)
    assert page.evaluate("window.bad") == 0
    assert page.locator(".strip .chip").count() > 0
    assert all(re.fullmatch(r"⟨.*⟩", text) for text in page.locator(".strip .chip").all_inner_texts())


def test_spaces_between_words_are_kept(visit):
    page = visit()
    run(page, "a story of words", max_new_tokens=100)
    text = output(page)
    assert len(text.split()) == 100
    assert text == copied(page)


def test_white_space_is_shown_on_demand_and_never_copied(visit):
    page = visit()
    run(page, "#code")
    page.get_by_text("Spaces and newlines").click()
    shown = "getComputedStyle(document.querySelector('.strip .out .nl'), '::before').content"
    assert page.evaluate(shown) == '"⏎"'
    assert copied(page) == CODE


def test_rejected_tokens_can_be_hidden(visit):
    page = visit()
    run(page, "a story to hide from", max_new_tokens=60)
    assert page.locator(".strip .rejected:visible").count() > 0
    page.get_by_text("Hide rejected").click()
    assert page.locator(".strip .rejected:visible, .strip .untested:visible").count() == 0
    assert page.locator(".strip .out:visible").count() == 60


def test_each_kind_of_token_has_a_mark_besides_its_colour(visit):
    page = visit()
    marks = page.evaluate("""() => Object.fromEntries([...document.querySelectorAll('.legend .tok')].map((token) => {
        const style = getComputedStyle(token);
        const mark = [style.borderBottomStyle, style.borderBottomWidth, style.fontWeight, style.textDecorationLine];
        return [token.textContent, mark.join(' ')];
    }))""")
    assert set(marks) == {"accepted", "rejected", "untested", "residual", "bonus", "plain"}
    assert len(set(marks.values())) == 6
    assert "line-through" in marks["rejected"]
