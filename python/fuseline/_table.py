"""Results as objects: fields with their units in their names, tables, drawings."""
import copy
import html
import os
from collections.abc import Sequence

from ._errors import MissingError


def _pandas(what):
    try:
        import pandas
    except ImportError:
        raise MissingError(f"{what} needs pandas, which is not installed (Debian: python3-pandas); "
                           "to_dict() and to_dicts() work without it") from None
    return pandas


def _is_flat(value):
    return not isinstance(value, (dict, list, tuple))


def _cell(value):
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.1f}"
    if isinstance(value, bool) or value is None:
        return "" if value is None else str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, (list, tuple)):
        return ", ".join(str(v) for v in value)
    return str(value)


def _html_table(caption, names, rows):
    """One table; numbers are aligned to the right. Notebooks bring their own colours."""
    numeric = [all(isinstance(r[i], (int, float)) or r[i] is None for r in rows)
               for i in range(len(names))]

    def style(i):
        return ' style="text-align:right"' if numeric[i] else ' style="text-align:left"'

    head = "".join(f'<th scope="col"{style(i)}>{html.escape(n)}</th>' for i, n in enumerate(names))
    body = "".join("<tr>" + "".join(f"<td{style(i)}>{html.escape(_cell(v))}</td>"
                                    for i, v in enumerate(r)) + "</tr>" for r in rows)
    return (f"<table><caption>{html.escape(caption)}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>")


class Picture:
    """A drawing as SVG. A notebook shows it; `save` writes it into a file."""

    __slots__ = ("svg",)

    def __init__(self, svg):
        self.svg = svg

    def _repr_svg_(self):
        return self.svg

    def __repr__(self):
        return f"<Picture: {len(self.svg)} characters of SVG>"

    def save(self, path):
        """Writes the drawing to the file `path`."""
        with open(path, "w", encoding="utf-8") as out:
            out.write(self.svg)


class Result:
    """A result with fields. It never changes, so threads may share it.

    `to_dict()` gives all of it as plain Python values, the same as the command line's JSON.
    """

    __slots__ = ("_facts",)
    _fields = {}  # name -> what it is
    _nested = {}  # name -> class of the object, or of the table's rows
    _headline = ()  # the fields of the short text form

    def __init__(self, facts):
        self._facts = facts

    def __init_subclass__(cls, **arguments):
        super().__init_subclass__(**arguments)
        for name, about in cls._fields.items():
            if name not in cls.__dict__:
                setattr(cls, name, property(_getter(name, cls._nested.get(name)), doc=about))

    def _all(self):
        return self._facts

    def to_dict(self):
        """All of it as dictionaries, lists, numbers and texts."""
        return copy.deepcopy(self._all())

    def to_dataframe(self):
        """The fields that are single values, as a pandas DataFrame of one row."""
        pandas = _pandas("to_dataframe()")
        return pandas.DataFrame([{k: v for k, v in self._all().items() if _is_flat(v)}])

    def __eq__(self, other):
        return type(self) is type(other) and self._all() == other._all()

    def __hash__(self):
        return hash(repr(self._all()))

    def __repr__(self):
        facts = ", ".join(f"{n}={_cell(getattr(self, n))!s}" for n in self._headline)
        return f"<{type(self).__name__}: {facts}>"

    def _repr_html_(self):
        rows = [(k, v) for k, v in self._all().items() if _is_flat(v)]
        return _html_table(type(self).__name__, ["field", "value"], [list(r) for r in rows])


def _getter(name, nested):
    key = name.rstrip("_")  # `from` is a word of Python itself, so the attribute is `from_`

    def get(self):
        value = self._all().get(key)
        if nested is None or value is None:
            return value
        return Table(value, nested) if isinstance(value, list) else nested(value)
    return get


class Table(Sequence):
    """Results of one kind. A row is found by its place, or by its name: `prediction.kernels["down"]`."""

    __slots__ = ("_rows", "_key", "_row_class")

    def __init__(self, facts, row_class):
        self._row_class = row_class
        self._rows = tuple(row if isinstance(row, row_class) else row_class(row) for row in facts)
        self._key = next(iter(row_class._fields))

    def __len__(self):
        return len(self._rows)

    def __getitem__(self, key):
        if isinstance(key, slice):
            return Table(self._rows[key], self._row_class)
        if isinstance(key, str):
            for row in self._rows:
                if getattr(row, self._key) == key:
                    return row
            raise KeyError(f"there is no '{key}'; there are: {', '.join(map(str, self.names()))}")
        return self._rows[key]

    def names(self):
        """What the rows are found by."""
        return [getattr(row, self._key) for row in self._rows]

    def to_dicts(self):
        """A dictionary for each row."""
        return [row.to_dict() for row in self._rows]

    def to_dataframe(self):
        """A pandas DataFrame with a row for each result; nested values are left out."""
        pandas = _pandas("to_dataframe()")
        return pandas.DataFrame([{k: v for k, v in row._all().items() if _is_flat(v)}
                                 for row in self._rows])

    def __eq__(self, other):
        return isinstance(other, Table) and self._rows == other._rows

    def __hash__(self):
        return hash(self._rows)

    def __repr__(self):
        inner = "\n".join(f"  {row!r}" for row in self._rows)
        return f"<Table of {len(self)} {self._row_class.__name__}\n{inner}>"

    def _repr_html_(self):
        names = [n.rstrip("_") for n in self._row_class._fields]
        names = [n for n in names
                 if any(_is_flat(r._all().get(n)) and r._all().get(n) is not None
                        for r in self._rows)]
        rows = [[row._all().get(n) for n in names] for row in self._rows]
        return _html_table(f"{len(self)} of {self._row_class.__name__}", names, rows)


def _write(path, text):
    with open(os.fspath(path), "w", encoding="utf-8") as out:
        out.write(text)
