"""fuseline predicts what fusing a neural-network block is worth on a GPU.

    import fuseline
    p = fuseline.predict(model="llama2-7b", gpu="h200", phase="forward", batch=1, seq=2048, policy="coda")
    p.time_us, p.hbm_read_bytes

The keywords are the words of the command line's options, and so are their values and defaults. What is
wrong with them is an InputError with the keyword, the value and what is allowed. Results never change
after they were made, so threads may share them; Python's lock is released while fuseline works.
"""
import json as _json

from . import _native
from ._errors import FuselineError, InputError, InternalError, MissingError
from ._comparisons import ComparedCase, Comparison, ErrorRow, JudgedFigure, Judgement
from ._explanations import Edge, ExplainedKernel, Explanation, Tensor
from ._listings import Listed, Listing
from ._predictions import (Gemm, Kernel, Limits, Prediction, Predictions, Sweep, SweptPrediction,
                           Total)
from ._programs import (CheckedTensor, CountedKernel, Diagnosis, ExplainedFunction, ExplainedProgram,
                        Program, ProgramExplanation, ProgramKernel, ProgramLimits, ProgramLine,
                        ProgramPrediction, ProgramVerification, UnfusedPrograms)
from ._table import Picture, Result, Table
from ._verdicts import (Decision, EdgeVerdict, FoundPlan, PolicyVerdict, Search, SearchedPolicy,
                        Verdict)
from ._verifications import Verification, VerifiedPolicy, VerifiedTensor

__version__ = _native.version

__all__ = [
    "predict", "explain", "verify", "verdict", "search", "compare", "judge", "gemm", "sweep", "report",
    "models", "blocks", "gpus", "policies", "listing",
    "FuselineError", "InputError", "MissingError", "InternalError",
    "Prediction", "Predictions", "Kernel", "Limits", "Total", "Explanation", "ExplainedKernel",
    "Tensor", "Edge", "Verification", "VerifiedPolicy", "VerifiedTensor", "Verdict", "EdgeVerdict",
    "PolicyVerdict", "Search", "SearchedPolicy", "Decision", "FoundPlan", "Comparison",
    "ComparedCase", "ErrorRow", "Judgement", "JudgedFigure", "Gemm", "Sweep", "SweptPrediction",
    "Program", "Diagnosis", "ProgramPrediction", "ProgramKernel", "ProgramLimits",
    "UnfusedPrograms", "ProgramVerification", "CheckedTensor", "CountedKernel",
    "ProgramExplanation", "ExplainedProgram", "ProgramLine", "ExplainedFunction", "Listing", "Listed", "Result", "Table", "Picture", "__version__",
]


def predict(scenario=None, *, model=None, block=None, gpu=None, phase=None, batch=None, seq=None,
            context=None, dtype=None, weights=None, activations=None, kv=None, routing=None,
            policy=None, plan=None, fidelity=None, layers=None, launch=None, image=None, steps=None,
            guidance=None, price_per_hour=None):
    """Time and traffic of one block.

    One policy, such as policy="coda", gives a Prediction. Several, as a list, as "eager,coda" or
    "all", and also no policy at all, which means all of them, give Predictions.

    Args:
        scenario: a scenario's TOML file; the keywords override what it says.
        model: a shipped model (fuseline.models()), a TOML file, or a config.json.
        block: a block in the place of the model's.
        gpu: a shipped GPU (fuseline.gpus()) or a TOML file.
        phase: "forward", "decode" or "train".
        batch: sequences.
        seq: tokens per sequence; in decode, new tokens.
        context: decode: tokens in the cache, the new ones included.
        dtype: "bf16", "fp16" or "fp32".
        weights, activations, kv: number formats, such as "int4:64" or "fp8".
        routing: rows of each expert: "expected", "uniform" or a CSV file.
        policy: one policy or several.
        plan: a file of programs, a whole plan as text, in the place of a policy's.
        fidelity: "hierarchy" or "roofline".
        layers: blocks in a row, or "all" for the whole model.
        launch: "graph" or "stream".
        image, steps, guidance: a whole image of a diffusion model.
        price_per_hour: of the GPU; with layers="all" it gives the cost of a million tokens.

    Raises:
        InputError: an unknown name, a number out of range, words that do not go together.
    """
    native = _native.predict({
        "scenario": scenario, "model": model, "block": block, "gpu": gpu, "phase": phase,
        "batch": batch, "seq": seq, "context": context, "dtype": dtype, "weights": weights,
        "activations": activations, "kv": kv, "routing": routing, "policy": policy, "plan": plan,
        "fidelity": fidelity, "layers": layers, "launch": launch, "image": image, "steps": steps,
        "guidance": guidance, "price_per_hour": price_per_hour})
    one = plan is not None or _names_one(policy)
    return Prediction(native, 0) if one else Predictions(native)


def _names_one(policy):
    return isinstance(policy, str) and policy != "all" and "," not in policy


def explain(scenario=None, *, model=None, block=None, gpu=None, phase=None, batch=None, seq=None,
            context=None, dtype=None, weights=None, activations=None, kv=None, routing=None,
            policy=None, plan=None):
    """A policy's kernels, their programs, and why operators share a kernel or do not.

    One policy gives an Explanation; several give a Table of them. The keywords are those of
    predict().
    """
    native = _native.explain({
        "scenario": scenario, "model": model, "block": block, "gpu": gpu, "phase": phase,
        "batch": batch, "seq": seq, "context": context, "dtype": dtype, "weights": weights,
        "activations": activations, "kv": kv, "routing": routing, "policy": policy, "plan": plan})
    plans = _json.loads(native.json())["plans"]
    all_plans = [Explanation(native, i, facts) for i, facts in enumerate(plans)]
    return all_plans[0] if _names_one(policy) else Table(all_plans, Explanation)


def verify(scenario=None, *, model=None, block=None, gpu=None, phase=None, batch=None, seq=None,
           context=None, dtype=None, weights=None, activations=None, kv=None, routing=None,
           policy=None, plan=None, threads=None, seed=None, outliers=None, input_scale=None, input_shift=None,
           gradient_scale=None, memory_limit=None, fault=None):
    """Executes plans on the CPU: errors against fp64, bytes against the prediction.

    A Verification that failed is no exception: look at its `passed`. Without a scenario and without
    sizes it executes 128 tokens. Ctrl-C stops it.

    Args:
        threads: of the executor; results do not depend on them.
        seed: of the random inputs.
        outliers: one column in twenty of x and dy is so many times larger.
        input_scale, input_shift, gradient_scale: the distribution of the inputs.
        memory_limit: bytes that it may use, such as "6G".
        fault: a fault to put into the plans, which must then fail; the command line's --break.
        scenario and the others: as in predict().
    """
    return Verification(_json.loads(_native.verify({
        "scenario": scenario, "model": model, "block": block, "gpu": gpu, "phase": phase,
        "batch": batch, "seq": seq, "context": context, "dtype": dtype, "weights": weights,
        "activations": activations, "kv": kv, "routing": routing, "policy": policy, "plan": plan,
        "threads": threads, "seed": seed, "outliers": outliers, "input_scale": input_scale,
        "input_shift": input_shift, "gradient_scale": gradient_scale,
        "memory_limit": memory_limit, "fault": fault})))


def verdict(scenario=None, *, model=None, block=None, gpu=None, phase=None, batch=None, seq=None,
            context=None, dtype=None, weights=None, activations=None, kv=None, routing=None,
            policy=None, on=None, quick=False):
    """Fuse or not: for each edge of a block and for whole policies the gain, and how sure it is.

    Args:
        on: the policy on top of which edges are judged ("per-operator").
        quick: without the sizes at which gains turn, which take longest.
        scenario and the others: as in predict().
    """
    return Verdict(_json.loads(_native.verdict({
        "scenario": scenario, "model": model, "block": block, "gpu": gpu, "phase": phase,
        "batch": batch, "seq": seq, "context": context, "dtype": dtype, "weights": weights,
        "activations": activations, "kv": kv, "routing": routing, "policy": policy, "on": on,
        "quick": quick})))


def search(scenario=None, *, model=None, block=None, gpu=None, phase=None, batch=None, seq=None,
           context=None, dtype=None, weights=None, activations=None, kv=None, routing=None,
           policy=None, objective=None, pareto=None, budget=None, keep_together=None,
           keep_apart=None, kernels=None):
    """The best plan of a block for an objective, and how far it may be from the best there is.

    Args:
        policy: the policies to compare with.
        objective: "time", "hbm", "launches", "memory" or "energy".
        pareto: a second objective; the plans that no other tried plan beats in both.
        budget: seconds after which the search gives the best plan so far (20).
        keep_together, keep_apart: operators that must, or must not, share a kernel: "a,b".
        kernels: "own", or "any" for plans that no kernel of ours runs as well.
        scenario and the others: as in predict().
    """
    return Search(_json.loads(_native.search({
        "scenario": scenario, "model": model, "block": block, "gpu": gpu, "phase": phase,
        "batch": batch, "seq": seq, "context": context, "dtype": dtype, "weights": weights,
        "activations": activations, "kv": kv, "routing": routing, "policy": policy,
        "objective": objective, "pareto": pareto, "budget": budget,
        "keep_together": keep_together, "keep_apart": keep_apart, "kernels": kernels})))


def compare(measurement, prediction=None, *, model=None, gpu=None, phase=None, batch=None, seq=None,
            context=None, dtype=None, policy=None):
    """Predictions beside measurements: errors, bias, and how often the bands hold.

    Args:
        measurement: a folder of measurements, or one of its CSV files.
        prediction: a file that `fuseline predict --format json` wrote, instead of new predictions.
        model and the others: leave only the measured cases that agree.
    """
    files = [str(f) for f in (prediction, measurement) if f is not None]
    return Comparison(_json.loads(_native.compare(files, {
        "model": model, "gpu": gpu, "phase": phase, "batch": batch, "seq": seq, "context": context,
        "dtype": dtype, "policy": policy})))


def judge(figures=None, *, gpu=None):
    """Predictions beside figures that others published; none was fitted to them.

    Args:
        figures: a CSV file in the place of the shipped figures.
        gpu: figures of this GPU alone.
    """
    return Judgement(_json.loads(_native.judge(None if figures is None else str(figures), gpu)))


def gemm(*, m, n, k, gpu, dtype=None, weights=None, activations=None, bias=False, operands=None,
         run=None, fidelity=None):
    """One GEMM y[m,n] = x[m,k] w[n,k]^T as the vendor's library runs it.

    Args:
        m, n, k: rows, columns, contraction.
        gpu: a shipped GPU or a TOML file.
        dtype: "bf16", "fp16" or "fp32".
        weights, activations: number formats of w and x.
        bias: adds a bias in the epilogue.
        operands: what L2 holds before: "cold", "rotating" or "hot".
        run: how long: "benchmark", "burst" or "sustained".
        fidelity: "hierarchy" or "roofline".
    """
    return Gemm(_json.loads(_native.gemm({
        "m": m, "n": n, "k": k, "gpu": gpu, "dtype": dtype, "weights": weights,
        "activations": activations, "bias": bias, "operands": operands, "run": run,
        "fidelity": fidelity})))


def sweep(scenario=None, *, model=None, block=None, gpu=None, phase=None, batch=None, seq=None,
          context=None, dtype=None, weights=None, activations=None, kv=None, routing=None,
          policy=None, fidelity=None, layers=None, launch=None, price_per_hour=None):
    """A grid of predictions, in parallel: every combination of the lists.

    model, gpu, phase, batch, seq, context, dtype and policy may be lists: seq=[512, 1024, 2048].
    Sizes also take the command line's ranges: "512:8192:x2". Ctrl-C stops it.
    """
    return Sweep(_native.sweep({
        "scenario": scenario, "model": model, "block": block, "gpu": gpu, "phase": phase,
        "batch": batch, "seq": seq, "context": context, "dtype": dtype, "weights": weights,
        "activations": activations, "kv": kv, "routing": routing, "policy": policy,
        "fidelity": fidelity, "layers": layers, "launch": launch,
        "price_per_hour": price_per_hour}))


def report(scenario=None, *, model=None, block=None, gpu=None, phase=None, batch=None, seq=None,
           context=None, dtype=None, weights=None, activations=None, kv=None, routing=None,
           policy=None, fidelity=None, layers=None, launch=None, measurements=None):
    """One case as the text of a self-contained HTML page; write it into a file to pass it on.

    Args:
        measurements: measured runs, in the place of the scenario's.
        scenario and the others: as in predict().
    """
    return _native.report({
        "scenario": scenario, "model": model, "block": block, "gpu": gpu, "phase": phase,
        "batch": batch, "seq": seq, "context": context, "dtype": dtype, "weights": weights,
        "activations": activations, "kv": kv, "routing": routing, "policy": policy,
        "fidelity": fidelity, "layers": layers, "launch": launch},
        None if measurements is None else str(measurements))


def listing(topic):
    """Everything of one kind that can be named, with its facts.

    Args:
        topic: "models", "blocks", "gpus", "architectures", "memory", "policies", "scenarios",
            "operators", "formats", "cache-formats" or "activation-formats".
    """
    return Listing(_json.loads(_native.listing(topic))[topic])


def models():
    """The shipped models with their sizes."""
    return listing("models")


def blocks():
    """The shipped blocks with their parameters."""
    return listing("blocks")


def gpus():
    """The shipped GPUs with their main numbers and their standing."""
    return listing("gpus")


def policies():
    """The policies, what each imitates and what it fuses."""
    return listing("policies")
