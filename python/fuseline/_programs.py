"""Programs of one's own: a *.fuse text, checked for a GPU, predicted, verified and explained."""
import html
import json

from . import _native
from ._table import Result, Table, _write


class Diagnosis(Result):
    """One mistake in a text of programs."""

    __slots__ = ()
    _fields = {
        "rule": "The rule that the line breaks; docs/reference/program-mistakes.md lists all.",
        "why": "Why there is this rule.",
        "line": "The line, from 1.",
        "column": "The column, from 1.",
        "text": "The line itself.",
        "value": "What is wrong in it.",
        "message": "What is wrong with it.",
        "allowed": "What may stand there.",
        "nearest": "The nearest valid spelling; empty when none is near.",
        "mend": "What to write instead; empty where that is not known.",
    }
    _headline = ("line", "rule", "message")


class ProgramKernel(Result):
    """What one program is predicted to take."""

    __slots__ = ()
    _fields = {
        "name": "The program's name.",
        "time_us": "Predicted time in microseconds.",
        "time_us_low": "The lower end of the 90 % band.",
        "time_us_high": "The upper end of it.",
        "bound": "What sets its time: tensor, hbm, l2, smem, launch or sync.",
        "hbm_read_bytes": "Bytes read from HBM.",
        "hbm_write_bytes": "Bytes written to HBM.",
        "l2_bytes": "Bytes through L2.",
        "compulsory_bytes": "Each distinct operand once.",
        "tile": "Tile of a GEMM: rows, columns, contraction; empty where there is none.",
    }
    _headline = ("name", "time_us", "bound")


class ProgramLimits(Result):
    """What no implementation of the programs can beat."""

    __slots__ = ()
    _fields = {
        "time_us": "Time for the FLOPs at the boost clock, or for the least traffic.",
        "compulsory_bytes": "Inputs and weights once, outputs once.",
        "capacity_bound_bytes": "The best traffic for the capacity on chip.",
    }
    _headline = ("time_us",)


class UnfusedPrograms(Result):
    """The same maths without fusion: every product and every line is a kernel of its own."""

    __slots__ = ()
    _fields = {
        "kernels": "How many kernels that is.",
        "time_us": "Their predicted time in microseconds.",
        "hbm_bytes": "Bytes that HBM moves.",
        "gain": "Their time over that of the programs.",
    }
    _headline = ("kernels", "time_us", "gain")


class ProgramPrediction(Result):
    """Time and traffic of a file's programs."""

    __slots__ = ()
    _fields = {
        "time_us": "Predicted time in microseconds.",
        "time_us_low": "The lower end of the band that holds the truth in 90 of 100 cases.",
        "time_us_high": "The upper end of that band.",
        "hbm_bytes": "Bytes that HBM moves.",
        "limits": "What no implementation can beat.",
        "kernels": "The programs in order.",
        "unfused": "The same maths without fusion; None where nothing can be taken apart.",
    }
    _nested = {"limits": ProgramLimits, "kernels": ProgramKernel, "unfused": UnfusedPrograms}
    _headline = ("time_us", "hbm_bytes")

    def to_dataframe(self):
        """The programs as a pandas DataFrame."""
        return self.kernels.to_dataframe()

    def _repr_html_(self):
        return super()._repr_html_() + self.kernels._repr_html_()


class CheckedTensor(Result):
    """A tensor that a program stored, beside the fp64 meaning of the text."""

    __slots__ = ()
    _fields = {
        "name": "The tensor's name.",
        "program": "The program that stored it.",
        "relative_l2": "Error of the whole tensor.",
        "allowed": "What roundings can add to it.",
        "agrees": "Whether the error is within that.",
    }
    _headline = ("name", "relative_l2", "allowed", "agrees")


class CountedKernel(Result):
    """The bytes that the executor counted for one program."""

    __slots__ = ()
    _fields = {
        "name": "The program's name.",
        "loaded_bytes": "Bytes that it loaded.",
        "stored_bytes": "Bytes that it stored.",
        "differing": "Tensors whose bytes are not the predicted ones; empty when all are.",
    }
    _headline = ("name", "loaded_bytes", "stored_bytes")


class ProgramVerification(Result):
    """Programs executed on the CPU: errors against fp64, bytes against the prediction."""

    __slots__ = ()
    _fields = {
        "passed": "Whether all tensors agree and all bytes are as predicted.",
        "tensors": "The stored tensors.",
        "kernels": "The counted bytes of each program.",
    }
    _nested = {"tensors": CheckedTensor, "kernels": CountedKernel}
    _headline = ("passed",)

    def to_dataframe(self):
        """A row for each stored tensor, as a pandas DataFrame."""
        return self.tensors.to_dataframe()

    def _repr_html_(self):
        return self.tensors._repr_html_() + self.kernels._repr_html_()


class ProgramLine(Result):
    """What one line of a program moves."""

    __slots__ = ()
    _fields = {
        "line": "The line of the text, from 1.",
        "text": "The line itself.",
        "loaded_bytes": "What it loads, all tiles together, each element once.",
        "stored_bytes": "What it stores.",
        "numbers_per_thread": "What its results take in a thread's registers; 0: none.",
    }
    _headline = ("line", "text")


class ExplainedProgram(Result):
    """One program line by line, and the tile that it gets."""

    __slots__ = ()
    _fields = {
        "name": "The program's name.",
        "lines": "Its lines, the mainloop first.",
        "tile": "Of a GEMM: rows, columns, contraction; None of other programs, as all below.",
        "stages": "Tiles of the mainloop that are in flight.",
        "accumulator_registers": "Registers of a thread for its sums, 4 bytes each.",
        "value_registers": "The most that the epilogue's values take at a time.",
        "stage_bytes": "Shared memory of the stages.",
        "epilogue_bytes": "Shared memory of the tiles that the epilogue loads at a time.",
        "shared_bytes_per_block": "Shared memory that the GPU has for a thread block.",
    }
    _nested = {"lines": ProgramLine}
    _headline = ("name", "tile")

    def _repr_html_(self):
        return self.lines._repr_html_()


class ExplainedFunction(Result):
    """A function that the text defines, with its derivatives."""

    __slots__ = ()
    _fields = {
        "call": "Its name and parameters, such as swish(x).",
        "formula": "What it computes.",
        "derivatives": "By parameter: the derivative.",
    }
    _headline = ("call", "formula")


class ProgramExplanation(Result):
    """What every line of the programs moves, which tiles they get, and the derivatives."""

    __slots__ = ()
    _fields = {
        "functions": "The functions that the text defines.",
        "programs": "The programs in order.",
    }
    _nested = {"functions": ExplainedFunction, "programs": ExplainedProgram}
    _headline = ()

    def _repr_html_(self):
        return self.functions._repr_html_() + "".join(p._repr_html_() for p in self.programs)


class Program:
    """A text of programs (*.fuse), checked for a GPU. It never changes, so threads may share it.

    A text with mistakes makes no exception here: look at `legal` and `diagnoses`. What asks for more
    than that of such a text raises InputError with the first mistake.

    Args:
        file: the path of the text.
        text: the text itself, in the place of a file.
        gpu: a shipped GPU or a TOML file; the text's own target, else "h100".
        sizes: other numbers for the letters of the text's lines "size": {"M": 64}.
    """

    __slots__ = ("_gpu", "_native")

    def __init__(self, file=None, *, text=None, gpu=None, sizes=None):
        if (file is None) == (text is None):
            raise TypeError("Program() takes a file or a text")
        self._gpu = None if gpu is None else str(gpu)
        sizes = {} if sizes is None else dict(sizes)
        self._native = (_native.program_of_file(file, self._gpu, sizes) if text is None
                        else _native.program_of_text(text, self._gpu, sizes))

    @property
    def text(self):
        """The text, with the sizes that were given in their places."""
        return self._native.text()

    @property
    def gpu(self):
        """The name of the GPU that it is checked for."""
        return self._native.gpu()

    @property
    def sizes(self):
        """The numbers of its letters."""
        return self._native.sizes()

    @property
    def programs(self):
        """The names of its programs in order."""
        return self._native.names()

    @property
    def legal(self):
        """Whether it has no mistake."""
        return self._native.legal()

    @property
    def diagnoses(self):
        """Every mistake, in the order of their lines; the same as `fuseline program check`."""
        return Table(json.loads(self._native.diagnoses()), Diagnosis)

    def predict(self):
        """Time with its band, traffic and limits, and the same maths without fusion.

        Raises:
            InputError: the text has a mistake.
        """
        return ProgramPrediction(json.loads(self._native.predict()))

    def verify(self, *, threads=None, seed=1):
        """Executes the programs on the CPU and compares what they store with the fp64 meaning.

        A verification that failed is no exception: look at its `passed`. Ctrl-C stops it.

        Args:
            threads: of the executor; all when None. Results do not depend on them.
            seed: of the random inputs.

        Raises:
            InputError: the text has a mistake, or is too large for fp64: give smaller `sizes`.
        """
        return ProgramVerification(json.loads(self._native.verify(threads, seed)))

    def explain(self):
        """What every line moves, which tile each program gets, and the functions' derivatives.

        Raises:
            InputError: the text has a mistake.
        """
        return ProgramExplanation(json.loads(self._native.explain()))

    def gradient(self, of=None, *, kept=False):
        """The programs that compute the gradients, as a Program.

        With kept=True two of them: the gradient, which loads tiles that the forward programs keep,
        and the forward programs that keep them.

        Args:
            of: names of inputs and weights whose gradients are wanted; all when None.

        Raises:
            InputError: the text has a mistake, or a name is no input or weight.
            MissingError: a line that states no gradient.
        """
        wanted = [of] if isinstance(of, str) else list(of or [])
        backward, forward = (Program(text=text, gpu=self._gpu)
                             for text in self._native.gradient(wanted, kept))
        return (backward, forward) if kept else backward

    def save(self, path):
        """Writes the text to the file `path`."""
        _write(path, self.text)

    def __repr__(self):
        state = "legal" if self.legal else f"{len(self.diagnoses)} mistakes"
        return f"<Program: {', '.join(self.programs)} on {self.gpu}, {state}>"

    def _repr_html_(self):
        page = f"<pre>{html.escape(self.text)}</pre>"
        return page if self.legal else page + self.diagnoses._repr_html_()
