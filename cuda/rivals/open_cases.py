"""Which blocks beyond LLaMA and GPT are measured, and how large they are. Needs no PyTorch."""

import argparse
from dataclasses import dataclass, field

from block_cases import Case, names_from, parse_shape

EXECUTIONS = ("eager", "torch-compile")
PHASES = ("forward", "decode")
# What a block needs, and what it may have: the value where nothing is said.
NEEDED = {"moe": ("D", "F", "H", "Hkv", "d", "E", "k"), "mmdit": ("D", "H"), "mamba2": ("D",)}
OPTIONAL = {"moe": {"qk_norm": 0, "all_scores": 0},
            "mmdit": {"F": 0, "d": 0, "text_tokens": 154, "qk_norm": 0},
            "mamba2": {"N": 128, "P": 64, "chunk": 256}}
# Of a model's first and last block, and how small numbers are kept away from zero: no time.
WITHOUT_EFFECT = ("text_width", "pooled_width", "patch_numbers", "image_positions", "norm_eps",
                  "groups", "taps", "sliding_window")


@dataclass(frozen=True)
class OpenModel:
    block: str
    sizes: dict = field(default_factory=dict)

    def __getitem__(self, name):
        return self.sizes[name]


def parse_open(text):
    """The model of "moe:D=4096:F=14336:H=32:Hkv=8:d=128:E=8:k=2"."""
    block, *parts = text.split(":")
    if block not in NEEDED:
        raise argparse.ArgumentTypeError(f"'{block}': choose from {', '.join(NEEDED)}")
    sizes = dict(OPTIONAL[block])
    for part in parts:
        name, _, value = part.partition("=")
        if name in WITHOUT_EFFECT or (name not in NEEDED[block] and name in ("F", "H", "Hkv", "d")
                                      and name not in sizes):
            continue
        if name not in NEEDED[block] and name not in sizes:
            raise argparse.ArgumentTypeError(f"'{part}': {block} has no such size")
        if not value.isdigit():
            raise argparse.ArgumentTypeError(f"'{part}': expected NAME=NUMBER")
        sizes[name] = int(value)
    missing = [name for name in NEEDED[block] if sizes.get(name, 0) < 1]
    if missing:
        raise argparse.ArgumentTypeError(f"'{text}': {', '.join(missing)} is not said")
    if block == "mmdit":
        sizes["F"] = sizes["F"] or 4 * sizes["D"]
        sizes["d"] = sizes["d"] or sizes["D"] // sizes["H"]
    return OpenModel(block, sizes)


def bytes_of_open_layer(case, model):
    """What every layer has of its own, in bf16. Of experts as many as the tokens can meet."""
    s = model.sizes
    if model.block == "moe":
        qkv = (s["H"] + 2 * s["Hkv"]) * s["d"]
        met = min(s["E"], case.batch * case.seq * s["k"])
        numbers = s["D"] * (qkv + s["H"] * s["d"] + s["E"]) + met * 3 * s["D"] * s["F"]
        if case.phase == "decode":
            numbers += 2 * case.batch * case.context * s["Hkv"] * s["d"]
    elif model.block == "mmdit":
        numbers = 2 * (10 * s["D"] * s["D"] + 2 * s["D"] * s["F"])
    else:
        inner = 2 * s["D"]
        numbers = s["D"] * (3 * inner + 2 * s["N"] + inner // s["P"])
    return 2 * numbers


def options_of(arguments=None):
    parser = argparse.ArgumentParser(description="Blocks beyond LLaMA and GPT in PyTorch.")
    parser.add_argument("--open", type=parse_open, required=True, metavar="BLOCK:NAME=NUMBER:...",
                        help="as in moe:D=4096:F=14336:H=32:Hkv=8:d=128:E=8:k=2")
    parser.add_argument("--executions", type=names_from(EXECUTIONS), default=list(EXECUTIONS))
    parser.add_argument("--phases", type=names_from(PHASES), default=["forward"])
    parser.add_argument("--shapes", default="1x2048", metavar="BxT")
    parser.add_argument("--decode-shapes", default="1@2048", metavar="B@S")
    parser.add_argument("--max-autotune", action="store_true",
                        help="torch.compile tries more kernels for each product")
    parser.add_argument("--serve", action="store_true",
                        help="time the blocks whenever a line on standard input asks for it")
    options = parser.parse_args(arguments)
    block = options.open.block
    if "decode" in options.phases and block != "moe":
        parser.error(f"--phases: blocks of {block} do not decode here")
    try:
        options.cases = [Case(block, execution, phase, *parse_shape(
            options.decode_shapes if phase == "decode" else options.shapes, phase))
            for execution in options.executions for phase in options.phases]
    except argparse.ArgumentTypeError as problem:
        parser.error(str(problem))
    for case in options.cases:
        if block == "mamba2" and case.seq % options.open["chunk"] != 0:
            parser.error(f"--shapes: {case.seq} tokens are no whole chunks of "
                         f"{options.open['chunk']}")
    return options
