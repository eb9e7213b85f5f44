#!/usr/bin/env python3
"""What a prediction costs in Python beside the same one in C++: seconds that the processor worked for
this thread, so that other programs on the machine disturb the numbers less.

usage: PYTHONPATH=build/python bench/python_overhead.py [--repeats N]

Python adds the keywords, the lock, the result object, and reading the time from it. The first table shows
that part alone: the same call of fuseline.predict(), in which the C++ side hands out a prediction that
was made ahead. The goal is at most 50 us, and the exit status is 1 where a case takes more.

The second table shows whole predictions on both sides, in turns. They take milliseconds, most of them to
read files, so on a busy machine the difference is mostly noise.
"""
import argparse
import statistics
import sys
import time

import fuseline
from fuseline import _native

GOAL_SECONDS = 50e-6
CASES = {
    "llama2-7b forward, coda": dict(model="llama2-7b", gpu="h200", phase="forward", batch=1,
                                    seq=2048, policy="coda"),
    "llama2-7b decode, eager": dict(model="llama2-7b", gpu="h200", phase="decode", batch=16,
                                    context=4096, policy="eager"),
    "tinyllama forward, roofline": dict(model="tinyllama", gpu="h100", seq=512, policy="coda",
                                        fidelity="roofline"),
}


def seconds_of(work):
    begin = time.thread_time()
    work()
    return time.thread_time() - begin


def python_part(words, count):
    """The least and the median time of a call whose prediction was made ahead."""
    ready = _native.ReadyPredictions(words, count)
    predict = _native.predict
    _native.predict = ready.take
    try:
        times = [seconds_of(lambda: fuseline.predict(**words).time_us) for _ in range(count)]
    finally:
        _native.predict = predict
    return min(times), statistics.median(times)


def whole_predictions(words, turns):
    """The least time of a prediction in C++ and in Python, in turns."""
    in_cpp, in_python = [], []
    for _ in range(turns):
        in_cpp.append(seconds_of(lambda: _native.seconds_a_prediction(words, 1)))
        in_python.append(seconds_of(lambda: fuseline.predict(**words).time_us))
    return min(in_cpp), min(in_python)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=40, help="turns of each side (40)")
    repeats = parser.parse_args().repeats
    print(f"{'what Python adds to':30} {'least us':>9} {'median us':>10}")
    most = 0
    for name, words in CASES.items():
        least, median = python_part(words, 20 * repeats)
        most = max(most, median)
        print(f"{name:30} {1e6 * least:9.1f} {1e6 * median:10.1f}")
    print(f"\n{'whole prediction, least':30} {'C++ us':>9} {'Python us':>10} {'difference us':>14}")
    for name, words in CASES.items():
        in_cpp, in_python = whole_predictions(words, repeats)
        print(f"{name:30} {1e6 * in_cpp:9.1f} {1e6 * in_python:10.1f} {1e6 * (in_python - in_cpp):14.1f}")
    return 1 if most > GOAL_SECONDS else 0


if __name__ == "__main__":
    sys.exit(main())
