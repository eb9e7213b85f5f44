"""What verdict() and search() give: what a fusion, a policy or a decision gains."""
from ._table import Result


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
    "energy_j": "Joules.",
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
