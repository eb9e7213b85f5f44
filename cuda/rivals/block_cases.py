"""Which blocks are measured: shapes of models, executions, phases, sizes, and the options that say
so. Needs no PyTorch."""

import argparse
from dataclasses import dataclass

EXECUTIONS = ("eager", "composed", "torch-compile")
PHASES = ("forward", "decode", "train")
FAMILIES = ("llama", "gpt")
CUSTOM = "custom"  # the model that --custom describes


@dataclass(frozen=True)
class Model:
    """A block's shape. `llama`: RMSNorm, RoPE, SwiGLU. `gpt`: LayerNorm, GELU (tanh), biases."""

    family: str
    width: int         # D
    feed_forward: int  # F
    heads: int         # H
    kv_heads: int      # Hkv
    head_width: int    # d
    qkv_bias: bool = False

    def weights(self):
        """Elements of the block's matrices; biases and norms are small beside them."""
        qkv = (self.heads + 2 * self.kv_heads) * self.head_width
        matrices = 3 if self.family == "llama" else 2
        return (self.width * (qkv + self.heads * self.head_width)
                + matrices * self.width * self.feed_forward)


MODELS = {
    "llama2-7b": Model("llama", 4096, 11008, 32, 32, 128),
    "llama2-13b": Model("llama", 5120, 13824, 40, 40, 128),
    "llama2-70b": Model("llama", 8192, 28672, 64, 8, 128),
    "llama3-8b": Model("llama", 4096, 14336, 32, 8, 128),
    "mistral-7b": Model("llama", 4096, 14336, 32, 8, 128),
    "tinyllama": Model("llama", 2048, 5632, 32, 4, 64),
    "qwen2-7b": Model("llama", 3584, 18944, 28, 4, 128, qkv_bias=True),
    "gpt2-large": Model("gpt", 1280, 5120, 20, 20, 64, qkv_bias=True),
    "gpt2-xl": Model("gpt", 1600, 6400, 25, 25, 64, qkv_bias=True),
    "gpt3-13b": Model("gpt", 5120, 20480, 40, 40, 128, qkv_bias=True),
}


@dataclass(frozen=True)
class Case:
    """One block to measure. In decode `seq` is 1 and `context` counts the new token."""

    model: str
    execution: str
    phase: str
    batch: int
    seq: int
    context: int

    def columns(self):
        return {"model": self.model, "execution": self.execution, "phase": self.phase,
                "batch": self.batch, "seq": self.seq, "context": self.context}

    def label(self):
        return "~".join(str(value) for value in self.columns().values())


def bytes_of_a_layer(case, model):
    """What every layer has of its own, in bf16: weights, and in decode a cache."""
    cached = 0
    if case.phase == "decode":
        cached = 2 * case.batch * case.context * model.kv_heads * model.head_width
    return 2 * (model.weights() + cached)


def layers_beyond(l2_bytes, each, capacities=4, most=64):
    """Layers of `each` bytes that are together `capacities` times the L2: what a replay leaves
    there is gone when the next begins. The same rule as fuseline's own blocks have."""
    return min(most, max(1, -(-capacities * l2_bytes // max(each, 1))))


def parse_shape(text, phase):
    """(batch, seq, context) of "4x2048", or of "16@2048" in decode."""
    separator = "@" if phase == "decode" else "x"
    parts = text.strip().split(separator)
    if len(parts) != 2 or not all(part.isdigit() and int(part) > 0 for part in parts):
        form = "BATCH@CONTEXT" if phase == "decode" else "BATCHxTOKENS"
        raise argparse.ArgumentTypeError(f"'{text}': expected {form}")
    first, second = int(parts[0]), int(parts[1])
    return (first, 1, second) if phase == "decode" else (first, second, 0)


def names_from(allowed):
    def parse(text):
        names = [name.strip() for name in text.split(",") if name.strip()]
        for name in names:
            if name not in allowed:
                raise argparse.ArgumentTypeError(f"'{name}': choose from {', '.join(allowed)}")
        return names
    return parse


def parse_blocks(text):
    """Cases of "llama3-8b:eager:decode:16@2048,..."."""
    found = []
    for item in text.split(","):
        parts = item.strip().split(":")
        if (len(parts) != 4 or parts[0] not in MODELS or parts[1] not in EXECUTIONS
                or parts[2] not in PHASES):
            raise argparse.ArgumentTypeError(f"'{item}': expected MODEL:EXECUTION:PHASE:SHAPE")
        found.append(Case(*parts[:3], *parse_shape(parts[3], parts[2])))
    return found


def parse_custom(text):
    """The model of "llama,4096,11008,32,32,128,0"."""
    parts = [part.strip() for part in text.split(",")]
    if (len(parts) != 7 or parts[0] not in FAMILIES or parts[6] not in ("0", "1")
            or not all(part.isdigit() and int(part) > 0 for part in parts[1:6])
            or int(parts[3]) % int(parts[4]) != 0):
        raise argparse.ArgumentTypeError(
            f"'{text}': expected FAMILY,WIDTH,FEED_FORWARD,HEADS,KV_HEADS,HEAD_WIDTH,QKV_BIAS with "
            f"a family of {', '.join(FAMILIES)}, KV_HEADS a divisor of HEADS, QKV_BIAS 0 or 1")
    return Model(parts[0], *(int(part) for part in parts[1:6]), qkv_bias=parts[6] == "1")


def cases_of(options):
    """The cases asked for: single blocks first, then the grid, executions outermost so that what
    compiles comes last."""
    cases = list(options.blocks)
    models = list(options.models or [])
    if options.custom is not None:
        models.append(CUSTOM)
    if cases and not models:
        return cases
    for execution in options.executions:
        for model in models or ["llama2-7b"]:
            for phase in options.phases:
                shapes = options.decode_shapes if phase == "decode" else options.shapes
                cases += [Case(model, execution, phase, *parse_shape(shape, phase))
                          for shape in shapes.split(",") if shape.strip()]
    return cases


def options_parser(description, budget):
    """`budget`: seconds after which no block is begun, where the command line does not say."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--models", type=names_from(tuple(MODELS)),
                        help=", ".join(MODELS) + " (default: llama2-7b)")
    parser.add_argument("--executions", type=names_from(EXECUTIONS), default=list(EXECUTIONS))
    parser.add_argument("--phases", type=names_from(PHASES), default=["forward", "decode"])
    parser.add_argument("--shapes", default="1x2048", metavar="BxT,...",
                        help="of forward and train")
    parser.add_argument("--decode-shapes", default="1@2048", metavar="B@S,...")
    parser.add_argument("--blocks", type=parse_blocks, default=[],
                        metavar="MODEL:EXECUTION:PHASE:SHAPE,...",
                        help="these blocks first; alone, unless --models is given too")
    parser.add_argument("--custom", type=parse_custom, metavar="FAMILY,D,F,H,HKV,HEAD,QKV_BIAS",
                        help="a model of this shape too, as in llama,4096,11008,32,32,128,0")
    parser.add_argument("--profile", action="store_true",
                        help="run each block once for an outside profiler; --out is JSON")
    parser.add_argument("--serve", action="store_true",
                        help="time the blocks whenever a line on standard input asks for it")
    parser.add_argument("--out", metavar="FILE", help="needed unless with --serve")
    parser.add_argument("--timeout-budget", type=float, default=budget, metavar="SECONDS",
                        help="start no block that would not end within this time")
    return parser


def checked_cases(parser, options):
    """The cases of parsed options; ends the program with a message when they are wrong."""
    if options.out is None and not options.serve:
        parser.error("the following arguments are required: --out")
    if options.custom is not None:
        MODELS[CUSTOM] = options.custom
    try:
        return cases_of(options)
    except argparse.ArgumentTypeError as problem:
        parser.error(str(problem))
