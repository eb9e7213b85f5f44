"""What explain() gives: kernels, tensors, and why operators share a kernel or do not."""
from ._table import Picture, Result


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
