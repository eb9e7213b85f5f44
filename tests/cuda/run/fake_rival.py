"""A rival without PyTorch: answers as cuda/rivals/pytorch_blocks.py --serve does, with made-up times.
`composed` cannot be got ready, and a burst of 13 replays fails."""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../cuda/rivals"))

from block_cases import MODELS, checked_cases, options_parser  # noqa: E402
from rival_serve import own_output, serve  # noqa: E402


class Block:
    layers, blocks = 2, 6

    def __init__(self, case):
        print("what a library prints must not be taken for an answer", flush=True)
        os.system("echo nor what its children print")
        if case.execution == "composed":
            raise RuntimeError("out of memory\nin two lines")
        model = MODELS[case.model]
        self.first = model.width + case.batch + case.seq + case.context

    def run(self, warm_ups, replays):
        if replays == 13:
            raise RuntimeError("unlucky")
        return [float(self.first + warm_ups + i) for i in range(replays)]


if __name__ == "__main__":
    parser = options_parser(__doc__, 1.0)
    cases = checked_cases(parser, parser.parse_args())
    answers = own_output()
    serve(cases, Block, "Fake 1.0", sys.stdin, answers)
