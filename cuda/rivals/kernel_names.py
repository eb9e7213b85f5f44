"""How kernels are named in measurement files, and the marker that separates calls in a profile."""

KERNEL_NAME_LENGTH = 90
MARKER_KERNEL = "bitwise_not"  # part of the marker kernel's name; no measured program launches it


def tidy_kernel_name(name):
    """A demangled name as the files write it: no `native::`, cut after 90 characters."""
    name = name.replace("(anonymous namespace)", "<unnamed>").replace("native::", "")
    return name[:KERNEL_NAME_LENGTH]
