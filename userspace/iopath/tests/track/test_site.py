# SPDX-License-Identifier: GPL-2.0
"""iopath track: its site."""

import json
import re
from pathlib import Path

import pytest

from helpers.browser import Browser
from helpers.examples import a_record, a_result
from helpers.tracking import a_point, config, index_of, keep
from iopath.base.errors import NotMeasured
from iopath.results import result
from iopath.results.layers import Layers
from iopath.show import texts
from iopath.track import site as tracksite
from iopath.track import store
from iopath.track.report import SiteReport


def test_views_of_a_site(site: Path) -> None:
    """Its points as JSON, its steps, and the figures and stacks of the kernels of each watch."""
    shown = SiteReport(site, config(site), index_of(site))
    assert shown.json() == (site / tracksite.POINTS).read_text()
    assert "results/block" not in shown.html()
    rows = [line for line in shown.markdown().splitlines() if "| block 000000000005 |" in line]
    assert [" ".join(row.split(" | ")[2:]) for row in rows] == [
        "dio.pread read +5.00 (+0.83 %) vfs_read +5.00 |"
    ]
    path = {
        one.kernel: one.value
        for one in shown.figures()
        if (one.title, one.metric) == ("dio.pread read 4 KiB", "instructions")
    }
    assert len(path) == 11
    assert path["block 000000000005"] - path["block 000000000004"] == pytest.approx(5)
    assert {one.kernel for one in shown.stacks()} == {*path}
    newest = ["block 000000000006", "block 000000000007"]
    assert shown.requests()[0].names[:2] == newest
    drawn = [text.get_text() for text in shown.chart().axes[0].get_yticklabels()]
    assert {*newest} <= {*drawn} <= {*path}
    (first, *_) = shown.history().axes
    assert len(first.get_xticks()) == 11


def test_views_of_an_empty_site(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    with pytest.raises(NotMeasured, match="no kernel could be measured"):
        SiteReport(tmp_path, config(tmp_path), index_of(tmp_path)).chart()


# The site in a browser.

MANY = 1000


def show(browser: Browser, site: Path, address: str = "") -> None:
    browser.call("Page.navigate", url="about:blank")
    browser.wait("location.href === 'about:blank'")
    browser.call("Page.navigate", url=f"{(site / 'index.html').as_uri()}#{address}")
    browser.wait("document.readyState === 'complete' && location.protocol === 'file:'")
    browser.settle()


def text_of(browser: Browser, selector: str) -> str:
    return browser.run(f"document.querySelector({json.dumps(selector)}).innerText")


def test_site_shows_the_step(browser: Browser, site: Path) -> None:
    """The planted step is marked in the chart, listed, and leads to its functions."""
    show(browser, site)
    assert "block: 8 kernels from 000000000000 to 000000000007" in text_of(browser, "#about")
    assert browser.run("document.querySelectorAll('#plot .step').length") == 1
    label = browser.run("document.querySelector('#plot .step').ariaLabel")
    assert label == "000000000005: +5.00 (+0.83 %)"
    written = browser.run("document.querySelector('#plot .label').textContent")
    assert written == "00000000 +5.00 vfs_read"
    step = " ".join(text_of(browser, "#steps li").split())
    assert "000000000004 to 000000000005" in step
    assert "dio.pread read: +5.00 (+0.83 %): vfs_read +5.00" in step
    assert text_of(browser, "#answer") == (
        "000000000007 (2026-11-01) against 000000000006: mean same; no step."
    )
    assert text_of(browser, "#extremes") == (
        "Largest increase: dio.pread read +5.00 (+0.83 %) in 000000000005: vfs_read +5.00."
    )
    rows = browser.run(
        "[...document.querySelectorAll('#matrix tbody tr')].map((row) => row.innerText)"
    )
    assert [" ".join(row.split()) for row in rows] == [
        "syscall 43.43 43.43 43.43 43.43 43.43",
        "dio.pread read 601.93 601.93 606.93 +0.8 % 606.93 606.93",
        "dio.pread write 601.93 601.93 601.93 601.93 601.93",
    ]
    mean = " ".join(text_of(browser, "#matrix tfoot").split())  # the root of the product
    assert mean.startswith("mean of 2 rungs 601.93 same 601.93 same 604.42 +0.4 % 604.42 same")
    assert not browser.run("document.getElementById('unknown').checkVisibility()")
    assert "does not boot" in browser.run("document.querySelector('#failed').textContent")
    for link in ("#steps a", "#plot .step", "#matrix td a", "#extremes a"):
        show(browser, site)
        browser.run(
            f"document.querySelector({json.dumps(link)})"
            ".dispatchEvent(new MouseEvent('click', {bubbles: true}))"
        )
        browser.wait("location.pathname.endsWith('000000000004..000000000005.html')")
        browser.wait("document.readyState === 'complete'")
        assert "+5.00" in text_of(browser, "#about")


def test_every_link_of_the_site_leads_to_a_file(browser: Browser, site: Path) -> None:
    for watch in ("block", "debian"):
        show(browser, site, f"watch={watch}")
        links = browser.run(
            "[...document.querySelectorAll('a')].map((one) => one.getAttribute('href'))"
            ".filter((one) => !one.startsWith('#'))"
        )
        assert len(links) > 4
        for link in links:
            name = re.sub(r"%([0-9A-F]{2})", lambda hit: chr(int(hit[1], 16)), link.split("#")[0])
            assert (site / name).is_file(), link
    assert not re.search(r"https?:(?!//www\.w3\.org/2000/svg)", (site / "index.html").read_text())


def test_keys(browser: Browser, site: Path) -> None:
    show(browser, site, "rung=dio.pread/read/4096")
    browser.run("document.getElementById('plot').focus()")
    browser.press("n")
    told = text_of(browser, "#told")
    assert "000000000005: " in told
    assert "vfs_read +5.00" in told
    browser.press("ArrowRight")
    assert "000000000006: " in text_of(browser, "#told")
    browser.press("p")
    browser.press("+")
    words = browser.run("location.hash")
    assert "from=" in words
    assert browser.run("document.querySelectorAll('#plot circle:not(.ring)').length") == 4
    browser.press("0")
    assert browser.run("document.querySelectorAll('#plot circle:not(.ring)').length") == 8
    assert "from=" not in browser.run("location.hash")
    browser.press("Enter")
    browser.wait("location.pathname.endsWith('000000000004..000000000005.html')")


def test_lines_and_pairs(browser: Browser, site: Path) -> None:
    """Lines can be hidden; two kernels are side by side; steps are filtered."""
    show(browser, site, "watch=debian&rung=dio.pread/read/4096")
    assert browser.run("document.querySelectorAll('#plot circle:not(.ring)').length") == 3
    browser.run("document.querySelector('#lines input').click()")
    assert browser.run("document.querySelectorAll('#plot circle:not(.ring)').length") == 1
    assert browser.run("location.hash").endswith("hide=bookworm")
    rows = browser.run(
        "[...document.querySelectorAll('#beside tbody tr')].map((row) => row.innerText)"
    )
    assert [row.split("\t")[-1] for row in rows] == ["same", "+5.00 (+0.83 %)", "same"]
    assert "iopath compare results/debian/6.1.190-1.json" in text_of(browser, "#command")
    show(browser, site, "watch=debian&one=6.1.192-2")
    assert browser.run("document.querySelector('#command a').getAttribute('href')").startswith(
        "steps/debian/6.1.192-2..6.12.117-1.html"
    )
    show(browser, site, "find=no_such_function")
    assert text_of(browser, "#more-steps") == "No step matches."


def test_gap(browser: Browser, tmp_path: Path) -> None:
    """The line is dashed where QEMU changed, and the command there takes the result of both. Counts
    of two versions are not subtracted."""
    points = [a_point(number) for number in range(3)]
    keep(tmp_path, points[:2])
    made = a_result([a_record(name, "dio.pread", "read", 4096) for name in ("k", "l")])
    made["qemu"]["version"] = "8.0"
    both = result.make(made)
    store.write(tmp_path, points[2], result.alone(both, "l"))
    pair = store.pair(points[1], points[2])
    store.write_pair(tmp_path, pair, both)
    tracksite.write(tmp_path, config(tmp_path), index_of(tmp_path))
    show(browser, tmp_path, f"rung=dio.pread/read/4096&one={points[1].title}")
    paths = [
        re.sub(
            "[^A-Z]", "", browser.run(f"document.querySelector('#plot {way}').getAttribute('d')")
        )
        for way in (".l0 path", "path.broken")
    ]
    assert paths == ["MHVM", "MHV"]
    assert f"iopath compare {pair.path} --html" in text_of(browser, "#command")
    assert (tmp_path / pair.path).is_file()
    assert "QEMU 7.2 to 8.0" in text_of(browser, "#notes")
    show(browser, tmp_path, f"one={points[0].title}")
    assert "the two cannot be compared" in text_of(browser, "#command")
    assert text_of(browser, "#beside tbody td.change") == "-"


def test_the_newest_kernel_is_first(browser: Browser, tmp_path: Path) -> None:
    """The answer is what the newest kernel changed. A question mark is explained."""
    keep(tmp_path, [a_point(number) for number in range(3)], planted=2)
    for path in store.points(tmp_path):
        data = json.loads(path.read_text())
        for record in data["results"]:
            record["boots"], record["rounds"] = record["boots"][:1], 9
        path.write_text(json.dumps(data))
    tracksite.write(tmp_path, config(tmp_path), index_of(tmp_path))
    show(browser, tmp_path)
    assert " ".join(text_of(browser, "#answer").split()) == (
        "000000000002 (2026-11-01) against 000000000001: mean +0.4 %; the largest steps:"
        " dio.pread read +5.00 (+0.83 %)?: vfs_read +5.00."
    )
    assert "+0.8\u00a0%?" in text_of(browser, "#matrix tbody")
    assert text_of(browser, "#unknown") == texts.UNKNOWN


def test_points_are_enough_for_the_page(browser: Browser, site: Path) -> None:
    """It has all figures, and no link to what does not lie beside it."""
    browser.open(tracksite.alone(json.loads((site / tracksite.POINTS).read_text())))
    browser.settle()
    alone = text_of(browser, "#matrix")
    links = "[...document.querySelectorAll('a')].map((one) => one.getAttribute('href') ?? '')"
    assert all(link.startswith("#") for link in browser.run(links))
    show(browser, site)
    assert text_of(browser, "#matrix") == alone
    assert not all(link.startswith("#") for link in browser.run(links))


def test_a_chart_is_drawn_again_in_another_window(browser: Browser, site: Path) -> None:
    """Its text keeps its size."""
    show(browser, site)
    browser.window(390)
    browser.wait("document.querySelector('#plot svg').viewBox.baseVal.width < 390")


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_anyone_can_use_it(browser: Browser, site: Path, width: int, scheme: str) -> None:
    """It fits the width, and axe finds nothing wrong, contrast included."""
    browser.window(width)
    browser.media(scheme=scheme)
    for watch in ("block", "debian"):
        show(browser, site, f"watch={watch}")
        assert browser.run("document.documentElement.scrollWidth") <= width
        browser.open_details()
        assert browser.inaccessible() == []


def test_many_points(browser: Browser, tmp_path: Path) -> None:
    keep(tmp_path, [a_point(number) for number in range(MANY)], MANY // 2, stacks=None)
    index = index_of(tmp_path)
    tracksite.write(tmp_path, config(tmp_path), index)
    index.refresh()
    index.compare(Layers(), lambda text: None)
    tracksite.write(tmp_path, config(tmp_path), index)
    show(browser, tmp_path, "rung=dio.pread/read/4096")
    assert f"{MANY} kernels" in text_of(browser, "#about")
    assert browser.run("document.querySelectorAll('#plot .step').length") == 1
    assert browser.run("document.querySelectorAll('#matrix thead th').length") == 6
    browser.run("document.querySelector('#more-rows button').click()")
    assert browser.run("document.querySelectorAll('#matrix thead th').length") == MANY + 1
    for _ in range(5):
        browser.run("zoom(0.5)")
    browser.run("document.querySelector('#choice [name=out]').click()")
    assert "from=" in browser.run("location.hash")
