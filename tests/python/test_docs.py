"""docs/python.md is executed and its output compared; docs/reference/python.md is made from docstrings.

FUSELINE_UPDATE_DOCS=1 in the environment writes both again.
"""
import contextlib
import inspect
import io
import os
import pathlib
import re
import tempfile
import unittest

import fuseline

ROOT = pathlib.Path(__file__).resolve().parents[2]
UPDATE = os.environ.get("FUSELINE_UPDATE_DOCS") == "1"
BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)


def printed(source, names):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(source, "docs/python.md", "exec"), names)
    return out.getvalue()


class Handbook(unittest.TestCase):
    def test_its_examples_print_what_it_shows(self):
        path = ROOT / "docs" / "python.md"
        text = path.read_text()
        names = {"__name__": "__main__"}
        blocks = 0
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "scenarios").symlink_to(ROOT / "scenarios")
            os.chdir(folder)
            try:
                def check(match):
                    nonlocal blocks
                    blocks += 1
                    got = printed(match.group(1), names)
                    shown = match.group(2)
                    if shown is None:
                        return match.group(0)
                    if not UPDATE:
                        self.assertEqual(got, shown, match.group(1))
                    return f"```python\n{match.group(1)}```\n\n```text\n{got}```\n"

                again = BLOCK.sub(check, text)
            finally:
                os.chdir(before)
        self.assertGreater(blocks, 5)
        if UPDATE:
            path.write_text(again)


def signature(function):
    text = f"{function.__name__}{inspect.signature(function)}"
    lines, line = [], ""
    for part in re.split(r"(?<=, )", text):
        if len(line) + len(part) > 96:
            lines.append(line.rstrip())
            line = "    "
        line += part
    return "\n".join(lines + [line])


def fields_table(cls):
    rows = ["| field | what it is |", "|---|---|"]
    rows += [f"| `{name}` | {about} |" for name, about in cls._fields.items()]
    return "\n".join(rows)


def methods_of(cls):
    for name, member in sorted(vars(cls).items()):
        is_field = issubclass(cls, fuseline.Result) and name in cls._fields
        if name.startswith("_") or is_field:
            continue
        about = inspect.getdoc(member if not isinstance(member, property) else member.fget)
        if about is None:
            continue
        call = "" if isinstance(member, property) else "()"
        yield f"* `{name}{call}`: {' '.join(about.split())}"


def reference():
    out = ["# Python: reference\n",
           "Made from the docstrings by `FUSELINE_UPDATE_DOCS=1 ctest -R Python.test_docs`; a test "
           "compares it. [python.md](../python.md) shows how the module is used.\n",
           "## Functions\n"]
    for name in fuseline.__all__:
        member = getattr(fuseline, name)
        if inspect.isfunction(member):
            out.append(f"### {name}\n\n```python\n{signature(member)}\n```\n\n"
                       f"{documentation(member)}\n")
    out.append("## Errors\n")
    for name in fuseline.__all__:
        member = getattr(fuseline, name)
        if inspect.isclass(member) and issubclass(member, Exception):
            out.append(f"### {name}\n\n{documentation(member)}\n")
    out.append("## Results\n")
    for name in fuseline.__all__:
        member = getattr(fuseline, name)
        if not inspect.isclass(member) or issubclass(member, Exception):
            continue
        out.append(f"### {name}\n\n{documentation(member)}\n")
        if issubclass(member, fuseline.Result) and member._fields:
            out.append(fields_table(member) + "\n")
        methods = list(methods_of(member))
        if methods:
            out.append("\n".join(methods) + "\n")
    return "\n".join(out).rstrip() + "\n"


def documentation(member):
    """A docstring as Markdown: indented lists of arguments become lists."""
    lines = []
    for line in inspect.getdoc(member).splitlines():
        entry = re.match(r"    (\w[\w, ]*): (.*)", line)
        if entry:
            names = ", ".join(f"`{n.strip()}`" for n in entry.group(1).split(","))
            lines.append(f"* {names}: {entry.group(2)}")
        elif line.startswith("        "):
            lines.append("  " + line.strip())
        elif line in ("Args:", "Attributes:", "Raises:"):
            lines.append(line + "\n")
        else:
            lines.append(line)
    return "\n".join(lines)


class Reference(unittest.TestCase):
    def test_it_says_what_the_docstrings_say(self):
        path = ROOT / "docs" / "reference" / "python.md"
        if UPDATE:
            path.write_text(reference())
        self.assertEqual(path.read_text(), reference())


if __name__ == "__main__":
    unittest.main()
