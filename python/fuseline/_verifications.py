"""What verify() gives."""
from ._predictions import _CASE
from ._table import Result


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
