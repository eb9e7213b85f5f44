"""What MkDocs is told about docs/ (a hook of mkdocs.yml): where the first page comes from, what becomes
of links to files of the source tree, and how headings are named in addresses.
"""
import pathlib
import re
import shutil

ROOT = pathlib.Path(__file__).resolve().parents[1]
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")


def anchor(text, separator="-"):
    """As a forge names headings: docs/ is read there too."""
    return re.sub(r" ", separator, re.sub(r"[^\w\- ]", "", text.strip().lower()))


def on_files(files, config):
    """README.md of the source tree is the first page."""
    from mkdocs.structure.files import File
    made = ROOT / "build" / "site-pages"
    made.mkdir(parents=True, exist_ok=True)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"(\]\(|src=\")docs/", r"\1", text)
    (made / "index.md").write_text(text, encoding="utf-8")
    files.append(File("index.md", str(made), config["site_dir"], False))
    return files


def on_page_markdown(markdown, page, config, files):
    """A link out of docs/ leads to a copy of the file; one to a folder becomes its name."""
    here = (ROOT / "docs" / page.file.src_path).parent
    if page.file.src_path == "index.md":
        here = ROOT / "docs"
    up = "../" * page.file.src_path.count("/")

    def mend(link):
        target = link.group(2)
        if "://" in target or target.startswith("mailto:"):
            return link.group()
        base = ROOT if page.file.src_path == "index.md" and not (here / target).exists() else here
        file = (base / target).resolve()
        if file.is_relative_to(ROOT / "docs") or not file.is_relative_to(ROOT):
            return link.group()
        name = file.relative_to(ROOT)
        if file.is_dir():
            return f"{link.group(1)}{up}index.html{link.group(4)}"
        to = pathlib.Path(config["site_dir"]) / "files" / name
        to = to.with_name(to.name + ".txt")  # shown by a browser, whatever the ending
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, to)
        return f"{link.group(1)}{up}files/{name}.txt{link.group(4)}"

    lines, fenced = [], False
    for line in markdown.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        lines.append(line if fenced else LINK.sub(mend, line))
    return "\n".join(lines)


def on_post_build(config):
    """Links between the pages that were made, and from them: all of them lead somewhere."""
    site = pathlib.Path(config["site_dir"])
    dead = []
    ids = {}
    for page in sorted(site.rglob("*.html")):
        text = page.read_text(encoding="utf-8")
        ids[page.resolve()] = set(re.findall(r"\b(?:id|name)=\"([^\"]+)\"", text))
    for page in ids:
        for target in re.findall(r"\b(?:href|src)=\"([^\"]+)\"", page.read_text(encoding="utf-8")):
            path, _, name = target.partition("#")
            if re.match(r"[a-z]+:|//", target) or page.name in ("404.html", "search.html"):
                continue
            file = (page.parent / path.partition("?")[0]).resolve() if path else page
            if file.is_dir():
                file = file / "index.html"
            if not file.exists() or (name and file in ids and name not in ids[file]):
                dead.append(f"{page.relative_to(site.resolve())}: {target}")
    for line in dead[:40]:
        print(f"site: dead link: {line}")
    if dead:
        raise SystemExit(f"site: {len(dead)} dead links")
    print(f"site: {len(ids)} pages, no dead link")
