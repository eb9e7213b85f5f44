"""Executes a notebook's cells, without Jupyter, and compares what they print with what it holds.

  run_notebook.py NOTEBOOK.ipynb            fails where a cell fails or prints something else
  run_notebook.py NOTEBOOK.ipynb --update   writes the outputs into the notebook

A code cell is executed as Jupyter does it: the value of its last expression is its output, as text and
as HTML or SVG where the value has these forms. What is printed and texts are compared. HTML and SVG are
made, and compared by their kinds only. A cell with the tag "varies" is executed and not compared.
"""
import ast
import contextlib
import io
import json
import pathlib
import sys
import traceback


def execute(source, names):
    """What the cell prints, and its outputs by their kinds."""
    tree = ast.parse(source)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
        last = ast.Expression(tree.body.pop().value)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        value = eval(compile(last, "<cell>", "eval"), names) if last is not None else None
    shown = {}
    if value is not None:
        for kind, method in (("text/html", "_repr_html_"), ("image/svg+xml", "_repr_svg_")):
            if hasattr(value, method):
                shown[kind] = getattr(value, method)()
        shown["text/plain"] = repr(value)
    return printed.getvalue(), shown


def as_lines(text):
    return text.splitlines(keepends=True)


def outputs_of(printed, shown, count):
    out = []
    if printed:
        out.append({"name": "stdout", "output_type": "stream", "text": as_lines(printed)})
    if shown:
        out.append({"data": {kind: as_lines(text) for kind, text in sorted(shown.items())},
                    "execution_count": count, "metadata": {}, "output_type": "execute_result"})
    return out


def held(cell):
    printed, shown = "", {}
    for output in cell["outputs"]:
        if output["output_type"] == "stream":
            printed += "".join(output["text"])
        else:
            shown.update({kind: "".join(text) for kind, text in output["data"].items()})
    return printed, shown


def differences(cell, printed, shown):
    want_printed, want_shown = held(cell)
    if "varies" in cell["metadata"].get("tags", []):
        return []
    out = []
    if printed != want_printed:
        out.append(f"prints\n{printed}\nand the notebook holds\n{want_printed}")
    if sorted(shown) != sorted(want_shown):
        out.append(f"shows {sorted(shown)}, and the notebook holds {sorted(want_shown)}")
    elif shown.get("text/plain") != want_shown.get("text/plain"):
        out.append(f"gives\n{shown['text/plain']}\nand the notebook holds\n"
                   f"{want_shown['text/plain']}")
    return out


def main():
    path = pathlib.Path(sys.argv[1])
    update = sys.argv[2:] == ["--update"]
    notebook = json.loads(path.read_text())
    names = {"__name__": "__main__"}
    wrong, count = 0, 0
    for place, cell in enumerate(notebook["cells"], 1):
        if cell["cell_type"] != "code":
            continue
        count += 1
        try:
            printed, shown = execute("".join(cell["source"]), names)
        except Exception:
            print(f"{path.name}, cell {place}:\n{traceback.format_exc()}")
            return 1
        if update:
            cell["execution_count"] = count
            cell["outputs"] = outputs_of(printed, shown, count)
            continue
        for difference in differences(cell, printed, shown):
            wrong += 1
            print(f"{path.name}, cell {place} {difference}")
    if update:
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
    if count == 0:
        print(f"{path.name} has no code cell")
        return 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
