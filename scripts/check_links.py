#!/usr/bin/env python3
"""Looks for links that lead nowhere: every relative link of a Markdown page names a file that is there,
and every #anchor a heading of that page. Addresses of the web are not looked at.

usage: scripts/check_links.py [FILE_OR_FOLDER ...]     (README.md and docs of the source tree)

Exit status 0: all links lead somewhere; 1: some do not, a line for each; 2: no such file.
"""
import os
import pathlib
import re
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[1]
LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^\s{0,3}\[[^\]]+\]:\s+<?(\S+?)>?\s*$", re.M)
HTML = re.compile(r"<(?:a|img)\b[^>]*\b(?:href|src)=\"([^\"]+)\"")
EXPLICIT = re.compile(r"<a\s+(?:id|name)=\"([^\"]+)\"|\{#([\w-]+)\}")


def without_code(text):
    """The page with its code blanked out, so that lines keep their numbers."""
    lines, fence = [], None
    for line in text.split("\n"):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and fence is None:
            fence = mark.group(1)[:3]
            lines.append("")
        elif mark and mark.group(1).startswith(fence):
            fence = None
            lines.append("")
        else:
            lines.append("" if fence else line)
    return re.sub(r"`[^`\n]*`", lambda code: " " * len(code.group()), "\n".join(lines))


def slug(heading):
    """The anchor of a heading, as a forge and MkDocs both make it."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    text = re.sub(r"[^\w\- ]", "", text.strip().lower())
    return re.sub(r" ", "-", text)


def anchors(page):
    found, seen = set(), {}
    text, fence = page.read_text(encoding="utf-8"), None
    for line in text.split("\n"):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark:
            fence = None if fence and mark.group(1).startswith(fence) else fence or mark.group(1)[:3]
        heading = None if fence else re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if heading:
            name = slug(heading.group(1))
            count = seen.get(name, 0)
            seen[name] = count + 1
            found.add(name if count == 0 else f"{name}-{count}")
    found.update(a or b for a, b in EXPLICIT.findall(text))
    return found


def problems(page):
    text = without_code(page.read_text(encoding="utf-8"))
    for pattern in (LINK, REFERENCE, HTML):
        for match in pattern.finditer(text):
            target = match.group(1)
            if re.match(r"[a-z][a-z0-9+.-]*:", target) or target.startswith("//"):
                continue
            line = text.count("\n", 0, match.start()) + 1
            path, _, anchor = target.partition("#")
            file = (page.parent / urllib.parse.unquote(path)).resolve() if path else page
            if not file.exists():
                yield line, target, "there is no such file"
            elif path.count("../") > (short := os.path.relpath(file, page.parent)).count("../"):
                # On the site the folders above a page have other names.
                yield line, target, f"leaves a folder and comes back; write {short}"
            elif anchor and file.suffix == ".md" and anchor not in anchors(file):
                near = ", ".join(sorted(a for a in anchors(file) if a[:4] == anchor[:4]))
                yield line, target, "the page has no such heading" + (f"; near: {near}" if near else "")


def pages(arguments):
    for argument in arguments or [ROOT / "README.md", ROOT / "docs"]:
        path = pathlib.Path(argument)
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*.md"))
        elif path.is_file():
            yield path
        else:
            sys.stderr.write(f"check_links: {path}: no such file\n")
            sys.exit(2)


def main():
    if any(a in ("-h", "--help") for a in sys.argv[1:]):
        print(__doc__)
        return 0
    count = dead = 0
    for page in pages(sys.argv[1:]):
        count += 1
        for line, target, why in problems(page.resolve()):
            dead += 1
            print(f"{page}:{line}: {target}: {why}")
    print(f"{count} pages, {dead} dead links")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
