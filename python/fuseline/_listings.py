"""What listing() gives: everything of one kind that can be named."""
from ._table import Result, Table, _html_table


class Listed(Result):
    """One thing that can be named, with its facts as attributes; `to_dict()` has them all."""

    __slots__ = ()
    _fields = {"name": "What it is called."}
    _headline = ("name",)

    def __getattr__(self, name):
        if not name.startswith("_") and name in self._facts:
            return self._facts[name]
        raise AttributeError(f"there is no fact '{name}'; there are: {', '.join(self._facts)}")

    def __dir__(self):
        return sorted(set(super().__dir__()) | set(self._facts))


class Listing(Table):
    """Things that can be named."""

    __slots__ = ()

    def __init__(self, facts):
        super().__init__(facts, Listed)

    def _repr_html_(self):
        names = list(self[0]._facts) if len(self) else []
        return _html_table(f"{len(self)} found", names,
                           [[row._facts[n] for n in names] for row in self])
