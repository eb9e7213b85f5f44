#!/usr/bin/env python3
"""scripts/check_links.py: README.md and docs/ have no dead link, and dead ones would be found."""
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "check_links.py"


def run(*arguments):
    done = subprocess.run([sys.executable, str(SCRIPT), *map(str, arguments)], text=True,
                          capture_output=True)
    return done.returncode, done.stdout + done.stderr


def dead_links_of(text):
    """The targets that are called dead in a page of this text, beside a page with two headings."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "other.md").write_text(
            "# A *first* heading, with `code`\n\n## Twice\n\n## Twice\n\n```\n# No heading\n```\n")
        pathlib.Path(folder, "page.md").write_text(text)
        status, output = run(pathlib.Path(folder, "page.md"))
        lines = [line for line in output.splitlines() if ".md:" in line]
        assert status == (1 if lines else 0), output
        return [line.split(": ")[1] for line in lines]


def main():
    status, output = run()
    assert status == 0, output
    assert int(output.split()[-5]) > 80, output  # the pages that were read

    good = ("# Here\n[a](other.md) [b](other.md#a-first-heading-with-code) [c](#here) [d](.)\n"
            "[e](other.md#twice-1) [f](https://example.org/x) `[g](nowhere.md)` <a id=\"own\"></a> [h](#own)\n"
            "```\n[i](nowhere.md)\n```\n")
    assert dead_links_of(good) == [], dead_links_of(good)
    for bad in ("[a](nowhere.md)", "![a](nowhere.png)", "[a](other.md#third)", "[a](#there)",
                "[a](other.md#no-heading)", "[a](other.md#twice-2)", "[`a`](nowhere.md \"title\")",
                "[a]: nowhere.md", "<img src=\"nowhere.svg\">", "[a [b]](nowhere.md)"):
        assert len(dead_links_of("# Here\n" + bad + "\n")) == 1, bad
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "docs").mkdir()
        pathlib.Path(folder, "docs", "other.md").write_text("# Here\n")
        page = pathlib.Path(folder, "docs", "page.md")
        page.write_text("[a](../docs/other.md)\n")
        status, output = run(page)
        assert status == 1 and "write other.md" in output, output
    assert dead_links_of("```\n```\n[a](x.md)\n") == ["x.md"]
    assert run("nowhere.md")[0] == 2


main()
