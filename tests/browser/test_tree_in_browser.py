"""The tree of a round in a real browser: what was tried and kept, legible at its largest, by mouse and by keys."""

import pytest
from browser.conftest import PHONE, copied, output, run
from browser.double_trees import ROUNDS, nodes_of

BOXES = """[...document.querySelectorAll('.pinned .node')].map((node) => {
    const box = node.querySelector('.tok').getBoundingClientRect();
    const kind = node.querySelector('.tok').classList[1] || '';
    return { text: node.querySelector('.tok').textContent, kind, level: Number(node.ariaLevel), x: box.x, y: box.y,
             right: box.right, bottom: box.bottom, kept: node.classList.contains('kept') };
})"""
WIDEST = 4  # the round with 32 nodes, 16 deep


def open_round(page, number):
    """Run the rounds made by hand and open the details of the first token of one."""
    if page.locator(".strip .tok").count() == 0:
        run(page, "#trees")
    page.focus(".spec .strip")
    page.keyboard.press("Home")
    for _ in range(number - 1):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.inner_text(".pinned .tree figcaption b").startswith(f"Tree of round {number}:")
    return page.evaluate(BOXES)


def nodes(page):
    return page.locator(".pinned .node[role=treeitem]")


def focused(page):
    return page.evaluate("document.activeElement.querySelector('.tok')?.textContent")


def test_every_drafted_token_is_there_and_none_lies_upon_another(visit):
    page = visit()
    for number, made in enumerate(ROUNDS, 1):
        root, *boxes = open_round(page, number)
        assert len(boxes) == len(nodes_of(made)) + bool(made.final)
        for i, one in enumerate(boxes):
            for other in [root, *boxes[:i]]:
                apart = one["right"] <= other["x"] or other["right"] <= one["x"]
                assert apart or one["bottom"] <= other["y"] or other["bottom"] <= one["y"], (one, other)
        page.keyboard.press("Escape")


def test_the_path_kept_is_a_straight_line_refused_branches_above_untried_below(visit):
    page = visit()
    for number in range(1, len(ROUNDS) + 1):
        root, *boxes = open_round(page, number)
        assert {box["y"] for box in boxes if box["kept"]} <= {root["y"]}
        assert all(box["y"] < root["y"] for box in boxes if box["kind"] == "rejected")
        columns = [{box["x"] for box in boxes if box["level"] == level} for level in range(1, 17)]
        assert all(len(column) <= 1 for column in columns)
        drafted = [nodes_of(ROUNDS[number - 1])[node].text for node in ROUNDS[number - 1].kept]
        assert len([box for box in boxes if box["kept"]]) == len(drafted) + bool(ROUNDS[number - 1].final)
        page.keyboard.press("Escape")


def test_the_widest_tree_scrolls_inside_its_frame_on_a_phone(visit):
    page = visit(viewport=PHONE)
    open_round(page, WIDEST)
    frame = page.locator(".pinned .tree-frame")
    assert frame.evaluate("node => node.scrollWidth > 2 * node.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert frame.evaluate("node => node.clientHeight") <= 480


def test_a_token_far_to_the_right_is_in_sight_when_its_details_open(visit):
    page = visit(viewport=PHONE)
    run(page, "#trees")
    page.locator(".strip .residual", has_text="high").click()
    inside = """() => {
        const frame = document.querySelector('.pinned .tree-frame').getBoundingClientRect();
        const node = document.querySelector('.pinned .node[aria-selected=true] .tok').getBoundingClientRect();
        const across = node.left >= frame.left && node.right <= frame.right;
        return across && node.top >= frame.top && node.bottom <= frame.bottom;
    }"""
    assert page.evaluate(inside)
    assert page.inner_text(".pinned .node[aria-selected=true] .tok") == "␣high"


def test_texts_are_shown_as_characters_with_white_space_made_visible(visit):
    page = visit()
    boxes = open_round(page, 3)
    assert {"⏎⏎", "␣␣␣␣", "→", "⟨E2 80⟩", "<b>&amp;", "␍⏎"} <= {box["text"] for box in boxes}
    assert page.locator(".pinned .node b").count() == 0


def test_the_root_is_the_last_token_of_the_context(visit):
    page = visit()
    assert open_round(page, 1)[0]["text"] == "prompt"
    page.keyboard.press("Escape")
    assert open_round(page, 2)[0]["text"] == ","


def test_keys_walk_the_tree_and_choose_what_the_details_are_about(visit):
    page = visit()
    open_round(page, 2)
    page.locator(".pinned .node[aria-selected=true]").focus()
    page.keyboard.press("ArrowDown")
    assert focused(page) == "␣is"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    assert focused(page) == "␣there"
    page.keyboard.press("Enter")
    head = page.inner_text(".pinned .detail-head")
    assert "rejected" in head and "try 3 of 3" in head
    assert "p in the residual" in page.inner_text(".pinned .facts")
    assert page.inner_text(".strip .pinned-token").endswith("there")
    page.keyboard.press("Escape")
    assert page.locator(".pinned").is_hidden()
    assert page.evaluate("document.activeElement.className") == "strip"


def test_a_token_that_was_never_tested_can_be_looked_at_too(visit):
    page = visit()
    open_round(page, 1)
    nodes(page).filter(has_text="then").click()
    assert "untested" in page.inner_text(".pinned .detail-head")
    assert page.locator(".strip .pinned-token").count() == 0
    assert page.locator(".pinned .node[aria-selected=true]").count() == 1


def test_a_node_says_aloud_what_it_is(visit):
    page = visit()
    open_round(page, 2)
    label = nodes(page).filter(has_text="gone").get_attribute("aria-label")
    assert label.startswith("␣gone, rejected, round 2, position 2, try 1 of 3, target p 0.030")
    assert (
        page.get_by_role("tree").get_attribute("aria-label").startswith("Tree of round 2: 8 drafted, 5 tested, 1 kept")
    )


def test_its_legend_names_the_kinds_in_the_picture_only(visit):
    page = visit()
    open_round(page, 6)
    assert page.locator(".pinned .tree .legend li").all_inner_texts() == ["accepted", "untested"]


def test_refused_siblings_are_told_apart_in_the_strip_and_never_copied(visit):
    page = visit()
    run(page, "#trees")
    assert page.locator(".strip .again").all_inner_texts()  # second and later tries
    assert page.evaluate("getComputedStyle(document.querySelector('.strip .again'), '::before').content") == '"/"'
    assert output(page) == copied(page)
    assert "/" not in copied(page)


def test_alpha_counts_the_positions_of_a_tree(visit):
    page = visit()
    run(page, "#trees")
    assert page.inner_text(".figure.alpha .below") == "15 of 18 tested positions"
    run(page, "a chain of words")
    assert page.inner_text(".figure.alpha .below").endswith("tested tokens")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_faint_branches_can_be_read(visit, theme):
    page = visit(theme=theme)
    open_round(page, WIDEST)
    colors = """(() => {
        const rgb = (color) => color.match(/[\\d.]+/g).slice(0, 3).map(Number);
        const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        const weights = [0.2126, 0.7152, 0.0722];
        const light = (color) => rgb(color).reduce((sum, v, i) => sum + linear(v / 255) * weights[i], 0);
        const text = light(getComputedStyle(document.querySelector('.pinned .node .untested')).color);
        const ground = light(getComputedStyle(document.querySelector('.pinned .tree-frame')).backgroundColor);
        return (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05);
    })()"""
    assert page.evaluate(colors) >= 4.5


def test_a_chain_needs_no_picture(visit):
    page = visit()
    run(page, "a chain of words")
    page.locator(".strip .tok.accepted").first.click()
    assert page.locator(".pinned .detail-head").count() == 1
    assert page.locator(".pinned .tree").count() == 0
