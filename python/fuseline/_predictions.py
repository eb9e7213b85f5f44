"""What predict(), gemm() and sweep() give."""
import json

from ._table import Picture, Result, Table, _html_table, _write


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
    whole = json.loads(native.json())
    shared = {k: v for k, v in whole.items() if k not in ("schema", "predictions")}
    out = []
    for one in whole["predictions"]:
        facts = {"policy": one["policy"], **shared}
        facts.update(one)
        out.append(facts)
    return out


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
