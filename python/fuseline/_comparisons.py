"""What compare() and judge() give: predictions beside what somebody measured."""
from ._table import Result, _html_table, _pandas


class ErrorRow(Result):
    """Errors of one quantity."""

    __slots__ = ()
    _fields = {
        "what": "Of what.",
        "quantity": "Its name.",
        "worst_case": "Whether the worst case is meant, instead of the mean.",
        "target": "The error that it should stay below; None when there is no target.",
        "errors": "By predictor: cases, mape, bias, worst.",
    }
    _headline = ("what", "target")


class ComparedCase(Result):
    """One measured block, kernel or GEMM beside its predictions."""

    __slots__ = ()
    _fields = {
        "case": "What was measured.",
        "quantity": "Which quantity of it.",
        "measured_us": "The measured time in microseconds, or None.",
        "predicted_us": "By predictor, or None.",
        "measured_bytes": "The measured bytes, or None.",
        "predicted_bytes": "By predictor, or None.",
    }
    _headline = ("case", "quantity")


class Comparison(Result):
    """Predictions beside measurements."""

    __slots__ = ()
    _fields = {
        "measurement": "The folder or file.",
        "device": "The device that was measured.",
        "predictors": "Names of the predictors.",
        "rows": "Errors by quantity.",
        "cases": "Every case.",
        "coverage": "How often the 90 % bands hold what was measured.",
        "not_judged": "What was left out, and why.",
    }
    _nested = {"rows": ErrorRow, "cases": ComparedCase}
    _headline = ("measurement", "device")

    def to_dataframe(self):
        """A row for each case, with a column for each predictor, as a pandas DataFrame."""
        pandas = _pandas("to_dataframe()")
        rows = []
        for case in self._all()["cases"]:
            unit = "us" if "measured_us" in case else "bytes"
            row = {"case": case["case"], "quantity": case["quantity"], "unit": unit,
                   "measured": case["measured_" + unit]}
            row.update(case["predicted_" + unit])
            rows.append(row)
        return pandas.DataFrame(rows)

    def _repr_html_(self):
        names = ["what", "target"] + self.predictors
        rows = [[r["what"], r["target"]] + [r["errors"].get(p, {}).get("mape")
                                            for p in self.predictors] for r in self._all()["rows"]]
        return _html_table("Mean errors", names, rows)


class JudgedFigure(Result):
    """A figure that somebody published, beside a prediction."""

    __slots__ = ()
    _fields = {
        "id": "The figure's name.",
        "source": "Who published it.",
        "citation": "Where.",
        "gpu": "The GPU.",
        "quality": "How good the source is.",
        "config": "What was run.",
        "metric": "Which quantity.",
        "unit": "Its unit.",
        "published": "The published value.",
        "predicted": "The predicted value; None where it is not predicted.",
        "error": "predicted / published - 1, or None.",
        "policy": "The policy, or None.",
        "cause": "What an error is of, or None.",
        "share": "Of a fusion: its share of the time, or None.",
        "verdict": "What is said of the fusion, or None.",
        "caveat": "What a reader should know.",
        "not_predicted": "Why it is not predicted, or None.",
    }
    _headline = ("id", "published", "predicted", "error")


class Judgement(Result):
    """Predictions beside figures that others published."""

    __slots__ = ()
    _fields = {"groups": "Errors by cause, GPU, phase and metric, as dictionaries.",
               "figures": "Every figure."}
    _nested = {"figures": JudgedFigure}
    _headline = ()

    def to_dataframe(self):
        """A row for each figure, as a pandas DataFrame."""
        return self.figures.to_dataframe()

    def _repr_html_(self):
        return self.figures._repr_html_()
