"""How a rival answers a program that times it in turns with others. Needs no PyTorch.

One JSON value a line. When it is ready, the rival has written for every block, in their order,
  {"ready": "llama2-7b~eager~forward~1~2048~0", "execution": "eager", "framework": "PyTorch 2.11.0",
   "layers": 1, "blocks": 1}
or
  {"failed": "llama2-7b~eager~forward~1~2048~0", "execution": "eager", "message": "out of memory"}
and then
  {"done": true}
`blocks` is how many blocks one replay runs through, `layers` how many of them have weights of their
own. A request is the place of a block in that order, and the answer the milliseconds of one block
in every replay, the length of the replay over `blocks`:
  {"block": 0, "warm_ups": 3, "replays": 20}
  {"block": 0, "ms": [1.23, 1.22]}
or, when it cannot,
  {"block": 0, "message": "why"}
The end of the requests ends the rival.
"""

import json
import os
import sys
import traceback


def own_output():
    """A file for the answers alone: what else is printed, by libraries too, goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    sys.stdout.flush()
    os.dup2(2, 1)
    return answers


def last_line(problem):
    """The exception in one line."""
    return traceback.format_exception_only(type(problem), problem)[-1].strip()[:300]


def serve(cases, prepare, framework, requests, answers):
    """Answers until `requests` (lines) end. `prepare(case)` gives an object whose run(warm_ups,
    replays) gives milliseconds per block, with `layers` and `blocks`. The number of blocks that
    were ready."""

    def say(**line):
        answers.write(json.dumps(line) + "\n")
        answers.flush()

    prepared = []
    for case in cases:
        try:
            block = prepare(case)
            say(ready=case.label(), execution=case.execution, framework=framework,
                layers=block.layers, blocks=block.blocks)
        except Exception as problem:
            block = None
            say(failed=case.label(), execution=case.execution, message=last_line(problem))
        prepared.append(block)
    say(done=True)
    for line in requests:
        if not line.strip():
            continue
        index = None
        try:
            request = json.loads(line)
            index = request["block"]
            if not 0 <= index < len(prepared) or prepared[index] is None:
                raise ValueError(f"there is no block {index}")
            say(block=index, ms=prepared[index].run(request["warm_ups"], request["replays"]))
        except Exception as problem:
            say(block=index, message=last_line(problem))
    return sum(block is not None for block in prepared)
