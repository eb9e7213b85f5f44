"""What can go wrong, told apart by cause."""


class FuselineError(Exception):
    """Every error that fuseline raises on purpose."""


class InputError(FuselineError, ValueError):
    """What was asked for is wrong: an unknown name, a number out of range, a file that cannot be read.

    Attributes:
        file: the file in which the mistake is; empty when it is in the call itself.
        field: the keyword or the field of the file, such as "batch" or "gpu.sm_count".
        value: what was given.
        message: what is wrong with it.
        allowed: what may stand there.
        nearest: the nearest valid spelling; empty when none is near.
        hint: what to do next, in one sentence; empty when nothing can be said.
        line: the line of the file, from 1; 0 when there is none.
    """

    def __init__(self, text, file="", field="", value="", message="", allowed="", nearest="", line=0):
        super().__init__(text)
        self.file = file
        self.field = field
        self.value = value
        self.message = message
        self.allowed = allowed
        self.nearest = nearest
        self.line = line

    @property
    def hint(self):
        if self.nearest:
            return f"Did you mean '{self.nearest}'?"
        return f"Allowed: {self.allowed}." if self.allowed else ""

    def __reduce__(self):
        return (type(self), (str(self), self.file, self.field, self.value, self.message,
                             self.allowed, self.nearest, self.line))


class MissingError(FuselineError):
    """Something needed is not here: a data file of the installation, memory, a package."""


class InternalError(FuselineError):
    """A bug of fuseline. Please report it with the call that led to it."""
