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


_ESTIMATE = {
    "time_us": "Predicted time in microseconds.",
    "time_us_low": "The lower end of the band that holds the truth in 90 of 100 cases.",
    "time_us_high": "The upper end of that band.",
    "flops": "Floating-point operations.",
    "hbm_read_bytes": "Bytes read from HBM.",
    "hbm_write_bytes": "Bytes written to HBM.",
    "hbm_bytes_low": "The lower end of the 90 % band of HBM bytes, read and written together.",
    "hbm_bytes_high": "The upper end of that band.",
    "l2_bytes": "Bytes through L2.",
    "hbm_compulsory_bytes": "Each distinct operand once.",
    "energy_j": "Joules.",
    "energy_j_low": "The lower end of the band of the energy.",
    "energy_j_high": "The upper end of that band.",
}


class Kernel(Result):
    """What one launch is predicted to take."""

    __slots__ = ()
    _fields = {
        "name": "Unique within the plan.",
        "kind": "gemm, attention, norm, pointwise, reduction, block, scan, conv, route or collective.",
        "operators": "Names of the operators that it executes.",
        **_ESTIMATE,
        "bound": "What sets its time: tensor, hbm, l2, smem, launch or sync.",
        "tile": "Tile of a GEMM: rows, columns, contraction; empty where there is none.",
        "split_k": "Into how many parts the contraction is split.",
    }
    _headline = ("name", "kind", "time_us", "bound")


class Limits(Result):
    """What no implementation of the block can beat."""

    __slots__ = ()
    _fields = {
        "time_us": "Time for the FLOPs at the boost clock, or for the least traffic.",
        "compulsory_bytes": "Inputs, weights and caches once, outputs once.",
        "own_bytes": "Of them what belongs to the block alone: weights, caches, their gradients.",
        "least_bytes": "What HBM moves at least in a row of equal blocks.",
        "capacity_bound_bytes": "The best traffic for the capacity on chip.",
    }
    _headline = ("time_us", "least_bytes")


class Total(Result):
    """Several blocks in a row, or the whole model."""

    __slots__ = ()
    _fields = {
        "time_us": "Predicted time in microseconds.",
        "time_us_low": "The lower end of the 90 % band.",
        "time_us_high": "The upper end of it.",
        "layers": "Blocks in a row.",
        "whole_model": "Whether what stands before and behind the blocks is counted.",
        "tokens_per_s": "Tokens a second.",
        "tokens_per_s_low": "The lower end of the 90 % band.",
        "tokens_per_s_high": "The upper end of it.",
        "flops": "Floating-point operations.",
        "hbm_read_bytes": "Bytes read from HBM.",
        "hbm_write_bytes": "Bytes written to HBM.",
        "l2_bytes": "Bytes through L2.",
        "launches": "Kernels that are started.",
        "energy_j": "Joules.",
    }
    _headline = ("layers", "time_us", "tokens_per_s")


_CASE = {
    "model": "The model's name.",
    "gpu": "The GPU's name.",
    "gpu_standing": "fitted, checked or uncalibrated.",
    "phase": "forward, decode or train.",
    "batch": "Sequences.",
    "seq": "Tokens per sequence; in decode, new tokens.",
    "context": "Decode: tokens in the cache, the new ones included.",
    "dtype": "Storage type.",
    "weights": "Number format of the weights.",
    "activations": "Number format of what is multiplied by the weights.",
    "kv": "Number format of the cache.",
}


class Prediction(Result):
    """One block of a model under one policy: time, traffic and kernels."""

    __slots__ = ("_native", "_place")
    _fields = {
        "policy": "The policy's name.",
        **_CASE,
        "fidelity": "roofline or hierarchy.",
        **_ESTIMATE,
        "hbm_least_bytes": "What HBM moves at least in a row of equal blocks.",
        "launches": "Kernels that are started.",
        "launch": "graph or stream.",
        "launch_wait_us": "Of the time, what the GPU waits for the CPU that launches.",
        "clock_factor": "Sustained over boost clock.",
        "gain_over": "The policy that gains are over.",
        "gain": "That policy's time over this one's.",
        "gain_low": "The lower end of the 90 % band of the gain.",
        "gain_high": "The upper end of it.",
        "verdict": "faster, slower, too close to call, or the same.",
        "limits": "What no implementation can beat.",
        "kernels": "The kernels in the order of their launches.",
        "total": "Several blocks or the whole model, when `layers` asked for them; else None.",
        "memory": "What the whole model needs in memory, when `layers` is 'all'; else None.",
        "image": "A whole image, when `image` asked for one; else None.",
        "cost": "Money per million tokens, when a price was given; else None.",
        "measured": "What was measured of the same case, when the scenario names measurements.",
    }
    _nested = {"kernels": Kernel, "limits": Limits, "total": Total}
    _headline = ("policy", "model", "gpu", "time_us", "hbm_read_bytes", "hbm_write_bytes")

    def __init__(self, native, place, facts=None):
        super().__init__(facts)
        self._native = native
        self._place = place

    def _all(self):
        if self._facts is None:
            self._facts = _prediction_facts(self._native)[self._place]
        return self._facts

    # What most callers read comes straight from the estimate.
    @property
    def policy(self):
        """The policy's name."""
        return self._native.policy(self._place)

    @property
    def time_us(self):
        """Predicted time in microseconds."""
        return self._native.time_us(self._place)

    @property
    def time_us_low(self):
        """The lower end of the band that holds the truth in 90 of 100 cases."""
        return self._native.time_us_low(self._place)

    @property
    def time_us_high(self):
        """The upper end of that band."""
        return self._native.time_us_high(self._place)

    @property
    def flops(self):
        """Floating-point operations."""
        return self._native.flops(self._place)

    @property
    def hbm_read_bytes(self):
        """Bytes read from HBM."""
        return self._native.hbm_read_bytes(self._place)

    @property
    def hbm_write_bytes(self):
        """Bytes written to HBM."""
        return self._native.hbm_write_bytes(self._place)

    @property
    def l2_bytes(self):
        """Bytes through L2."""
        return self._native.l2_bytes(self._place)

    @property
    def launches(self):
        """Kernels that are started."""
        return self._native.launches(self._place)

    def to_dataframe(self):
        """The kernels as a pandas DataFrame."""
        return self.kernels.to_dataframe()

    def _repr_html_(self):
        return Predictions(self._native)._repr_html_() if len(self._native) == 1 else (
            super()._repr_html_())

    def plot_times(self):
        """Drawing: the time with its band, and the limit."""
        return Picture(self._native.times_svg())

    def plot_traffic(self):
        """Drawing: HBM bytes read and written."""
        return Picture(self._native.traffic_svg())

    def plot_kernels(self):
        """Drawing: the kernels along the time."""
        return Picture(self._native.timelines_svg())

    def save_trace(self, path):
        """Writes a trace for Perfetto (ui.perfetto.dev) to the file `path`."""
        _write(path, self._native.trace())


def _prediction_facts(native):
    import json
    whole = json.loads(native.json())
    shared = {k: v for k, v in whole.items() if k not in ("schema", "predictions")}
    out = []
    for one in whole["predictions"]:
        facts = {"policy": one["policy"], **shared}
        facts.update(one)
        out.append(facts)
    return out


def _write(path, text):
    with open(os.fspath(path), "w", encoding="utf-8") as out:
        out.write(text)


class Predictions(Table):
    """The predictions of several policies; `predictions["coda"]` is one of them."""

    __slots__ = ("_native",)

    def __init__(self, native):
        super().__init__([Prediction(native, i) for i in range(len(native))], Prediction)
        self._native = native

    def _repr_html_(self):
        names = ["policy", "time_us", "time_us_low", "time_us_high", "gain", "verdict",
                 "hbm_read_bytes", "hbm_write_bytes", "launches"]
        rows = [[row._all().get(n) for n in names] for row in self]
        first = self[0]
        caption = f"{first.model} on {first.gpu} ({first.gpu_standing}), {first.phase}"
        return _html_table(caption, names, rows) + self._native.times_svg()

    def plot_times(self):
        """Drawing: times with their bands, measured ones where there are some, and the limit."""
        return Picture(self._native.times_svg())

    def plot_traffic(self):
        """Drawing: HBM bytes read and written under each policy."""
        return Picture(self._native.traffic_svg())

    def plot_kernels(self):
        """Drawing: each policy's kernels along the time."""
        return Picture(self._native.timelines_svg())

    def save_trace(self, path):
        """Writes a trace of predicted and measured runs for Perfetto to the file `path`."""
        _write(path, self._native.trace())


class ExplainedKernel(Result):
    """A kernel of a plan with its programs."""

    __slots__ = ()
    _fields = {
        "name": "Unique within the plan.",
        "kind": "As in a prediction.",
        "implementation": "How its code is made.",
        "operators": "Names of the operators that it executes.",
        "programs": "The text of its programs, one for each phase.",
        "beside": "Further launches of a framework, by name.",
        "time_us": "Predicted time in microseconds.",
        "time_us_low": "The lower end of the 90 % band.",
        "time_us_high": "The upper end of it.",
        "hbm_bytes": "Bytes that HBM moves.",
        "hbm_bytes_low": "The lower end of the 90 % band.",
        "hbm_bytes_high": "The upper end of it.",
    }
    _headline = ("name", "kind", "operators")


class Tensor(Result):
    """A tensor of a plan and where it lives."""

    __slots__ = ()
    _fields = {
        "name": "The tensor's name.",
        "shape": "Rows, columns and type.",
        "role": "input, weight, activation, ...",
        "home": "HBM, L2, or on chip.",
        "producer": "The kernel that stores it; empty for inputs.",
        "consumers": "The kernels that load it.",
        "bytes": "What is stored, or the whole tensor.",
    }
    _headline = ("name", "shape", "home")


class Edge(Result):
    """Two neighbouring operators, and why they share a kernel or do not."""

    __slots__ = ()
    _fields = {
        "tensor": "The tensor between them.",
        "from_": "The operator that makes it.",
        "to": "The operator that reads it.",
        "fused": "Whether one kernel executes both.",
        "reason": "Why, in words.",
    }
    _headline = ("tensor", "fused", "reason")


class Explanation(Result):
    """A policy's plan: kernels, tensors, and why neighbours share a kernel or do not."""

    __slots__ = ("_native", "_place")
    _fields = {
        "policy": "The policy's name.",
        "rewrites": "Names of the rewrites that were applied.",
        "preparation": "What is done once to inputs and weights.",
        "kernels": "The kernels in order.",
        "tensors": "The tensors and where they live.",
        "edges": "Neighbouring operators.",
    }
    _nested = {"kernels": ExplainedKernel, "tensors": Tensor, "edges": Edge}
    _headline = ("policy",)

    def __init__(self, native, place, facts):
        super().__init__(facts)
        self._native = native
        self._place = place

    @property
    def text(self):
        """The explanation as the command line prints it."""
        return self._native.text(self._place)

    def plot(self):
        """Drawing: the kernels in order and the tensors between them."""
        return Picture(self._native.svg(self._place))

    def _repr_html_(self):
        return self._native.svg(self._place) + self.kernels._repr_html_()

    def to_dataframe(self):
        """The neighbouring operators as a pandas DataFrame."""
        return self.edges.to_dataframe()


class VerifiedTensor(Result):
    """A tensor that a plan stored, beside the same one computed in fp64."""

    __slots__ = ()
    _fields = {
        "name": "The tensor's name.",
        "kernel": "The kernel that stored it.",
        "output": "Whether it is an output of the block.",
        "relative_l2": "Error of the whole tensor.",
        "max_error": "The largest error of one element.",
        "worst_tile": "Error of the worst tile of 128 x 128.",
        "unfused": "The same errors of the unfused plan.",
        "ratio": "How many times the unfused plan's error, the larger of the two that are judged.",
        "passed": "Whether it agrees.",
        "problem": "Why not; None when it agrees.",
    }
    _headline = ("name", "relative_l2", "ratio", "passed")


class VerifiedPolicy(Result):
    """One policy's plan, executed on the CPU."""

    __slots__ = ()
    _fields = {
        "policy": "The policy's name.",
        "passed": "Whether all of it agrees.",
        "loaded_bytes": "Bytes that the executor loaded.",
        "stored_bytes": "Bytes that it stored.",
        "predicted_loaded_bytes": "Bytes that the simulator says are loaded.",
        "predicted_stored_bytes": "Bytes that it says are stored.",
        "bytes_equal": "Whether these are equal for every tensor of every kernel.",
        "launches": "Kernels that were executed.",
        "launches_predicted": "Kernels that the simulator counts.",
        "first_not_finite": "The first NaN or infinity; None when there is none.",
        "tensors": "The compared tensors.",
    }
    _nested = {"tensors": VerifiedTensor}
    _headline = ("policy", "passed", "bytes_equal")


class Verification(Result):
    """Plans executed on the CPU: errors against fp64, bytes against the prediction."""

    __slots__ = ()
    _fields = {
        "passed": "Whether all policies passed.",
        **_CASE,
        "seed": "Of the random inputs.",
        "worst_ratio": "A plan fails at so many times the unfused plan's error.",
        "policies": "One result for each policy.",
    }
    del _fields["gpu_standing"]
    _nested = {"policies": VerifiedPolicy}
    _headline = ("passed", "model", "phase")

    def to_dataframe(self):
        """A row for each policy, as a pandas DataFrame."""
        return self.policies.to_dataframe()

    def _repr_html_(self):
        return self.policies._repr_html_()


_GAIN = {
    "verdict": "faster, slower, too close to call, the same, or cannot.",
    "time_us_without": "Time without it, in microseconds.",
    "time_us_with": "Time with it.",
    "gain": "Time without over time with.",
    "gain_low": "The lower end of the 90 % band of the gain.",
    "gain_high": "The upper end of it.",
    "limited_by": "What limits it, in one word.",
    "why": "The same in a sentence.",
    "turnings": "The sizes at which the gain turns.",
}


class EdgeVerdict(Result):
    """Whether one tensor is worth keeping on chip."""

    __slots__ = ()
    _fields = {
        "tensor": "The tensor between the two operators.",
        "from_": "The operator that makes it.",
        "to": "The operator that reads it.",
        "kept": "Whether the policy below keeps it on chip already.",
        "rewrite": "The rewrite that makes it possible.",
        **_GAIN,
        "apart_us": "Time of the operators' kernels without the fusion.",
        "together_us": "Time of their kernel with it.",
        "hbm_bytes_difference": "HBM bytes with it less without it.",
    }
    _headline = ("tensor", "verdict", "gain")


class PolicyVerdict(Result):
    """Whether a whole policy is worth it."""

    __slots__ = ()
    _fields = {"policy": "The policy's name.", "launches": "Kernels that are started.", **_GAIN}
    _headline = ("policy", "verdict", "gain")


class Verdict(Result):
    """Fuse or not: for each edge of a block and for whole policies."""

    __slots__ = ()
    _fields = {
        "on": "The policy on top of which edges are judged.",
        "model": "The model's name.",
        "gpu": "The GPU's name.",
        "phase": "forward, decode or train.",
        "batch": "Sequences.",
        "seq": "Tokens per sequence.",
        "context": "Decode: tokens in the cache.",
        "time_us": "Time of that policy in microseconds.",
        "custom_time_us": "Time of its edges alone.",
        "edges": "One verdict for each edge.",
        "policies": "One verdict for each policy.",
    }
    _nested = {"edges": EdgeVerdict, "policies": PolicyVerdict}
    _headline = ("on", "model", "gpu", "time_us")

    def to_dataframe(self):
        """A row for each edge, as a pandas DataFrame."""
        return self.edges.to_dataframe()

    def _repr_html_(self):
        return self.policies._repr_html_() + self.edges._repr_html_()


_PLAN_VALUES = {
    "time_us": "Predicted time in microseconds.",
    "hbm_bytes": "Bytes that HBM moves.",
    "launches": "Kernels that are started.",
    "memory_bytes": "The most bytes of activations that are needed at the same time.",
    "energy_mj": "Energy in millijoules.",
}


class SearchedPolicy(Result):
    """A policy beside the plan that was found."""

    __slots__ = ()
    _fields = {
        "policy": "The policy's name.",
        **_PLAN_VALUES,
        "gain": "Its value over that of the found plan.",
        "gain_low": "The lower end of the 90 % band of the gain.",
        "gain_high": "The upper end of it.",
        "verdict": "Whether the found plan is faster, slower or too close to call.",
        "in_space": "Whether the search could have found this policy's plan.",
        "outside": "Why it could not.",
    }
    _headline = ("policy", "time_us", "gain")


class Decision(Result):
    """What one decision of the found plan gains: a rewrite, or operators that share a kernel."""

    __slots__ = ()
    _fields = {
        "kind": "rewrite or kernel.",
        "what": "The rewrite, or the operators.",
        "time_us_without": "Time of the plan without it, in microseconds.",
        "value_without": "Value of the objective without it.",
        "gain": "Value without over value with.",
        "gain_low": "The lower end of the 90 % band of the gain.",
        "gain_high": "The upper end of it.",
        "verdict": "faster, slower or too close to call.",
    }
    _headline = ("what", "gain", "verdict")


class FoundPlan(Result):
    """A plan that no other tried plan beats in both objectives."""

    __slots__ = ()
    _fields = {**_PLAN_VALUES, "plan": "Its text, which `fuseline predict --plan` reads."}
    _headline = ("time_us", "hbm_bytes")


class Search(Result):
    """The best plan that was found, and how far it may be from the best there is."""

    __slots__ = ()
    _fields = {
        "model": "The model's name.",
        "gpu": "The GPU's name.",
        "phase": "forward, decode or train.",
        "batch": "Sequences.",
        "seq": "Tokens per sequence.",
        "context": "Decode: tokens in the cache.",
        "objective": "What was searched for.",
        **_PLAN_VALUES,
        "time_us_low": "The lower end of the 90 % band.",
        "time_us_high": "The upper end of it.",
        "bound": "The value of the objective below which no plan lies.",
        "bound_us": "The same where the objective is the time, else None.",
        "optimal": "Whether every other plan was shown to be no better.",
        "gap": "Value over bound, less one.",
        "stopped": "Whether the search ended before it was complete.",
        "evaluated": "Plans that were simulated.",
        "seconds": "How long the search took.",
        "plan_of_policy": "The policy whose plan this is; None when it is no policy's.",
        "policies": "The policies beside it.",
        "decisions": "What its decisions gain.",
        "front": "With pareto: the plans that no other tried plan beats in both.",
        "plan": "Its text, which predict(plan=FILE) reads from a file.",
    }
    _nested = {"policies": SearchedPolicy, "decisions": Decision, "front": FoundPlan}
    _headline = ("objective", "model", "gpu", "time_us")

    def to_dataframe(self):
        """A row for each decision, as a pandas DataFrame."""
        return self.decisions.to_dataframe()

    def _repr_html_(self):
        return self.policies._repr_html_() + self.decisions._repr_html_()


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


class Gemm(Kernel):
    """One GEMM of the vendor's library."""

    __slots__ = ()


class SweptPrediction(Result):
    """One policy's prediction in a sweep, without its kernels."""

    __slots__ = ()
    _fields = {k: v for k, v in Prediction._fields.items() if k != "kernels"}
    _nested = {"limits": Limits, "total": Total}
    _headline = ("policy", "model", "gpu", "batch", "seq", "time_us")


class Sweep(Table):
    """A grid of predictions."""

    __slots__ = ("_native",)

    def __init__(self, native):
        import json
        rows = []
        for case in json.loads(native.json())["cases"]:
            shared = {k: v for k, v in case.items() if k not in ("schema", "predictions")}
            for one in case["predictions"]:
                rows.append({"policy": one["policy"], **shared, **one})
        super().__init__(rows, SweptPrediction)
        self._native = native

    def plot(self):
        """Drawing: time over the size that varies, a line for each combination of the rest."""
        return Picture(self._native.svg())


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
