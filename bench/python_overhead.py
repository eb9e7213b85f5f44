#!/usr/bin/env python3
"""What a prediction costs in Python beside the same one in C++, in one process and in turns: seconds that
the processor worked for this thread.

usage: PYTHONPATH=build/python bench/python_overhead.py [--repeats N]

Both sides do the same work: they resolve the words, make the plan, and simulate it with what the process
remembers of earlier walks. The difference is what Python adds: keywords, the lock, the result object. The
goal is at most 50 us.

A prediction takes milliseconds, most of them to read files, so on a busy machine the difference is mostly
noise. The last line shows Python's part alone: the same call, in which C++ resolves the keywords and then
predicts nothing.
"""
import argparse
import statistics
import time

import fuseline
from fuseline import _native

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


def predict_often(words, count):
    for _ in range(count):
        fuseline.predict(**words).time_us


def seconds_without_prediction(words, count):
    """The least time of a call of fuseline.predict() whose C++ side reads the keywords alone."""
    predict = _native.predict
    _native.predict = lambda keywords: _native.seconds_a_prediction(keywords, 0)
    try:
        return min(seconds_of(lambda: fuseline.predict(**words)) for _ in range(count))
    finally:
        _native.predict = predict


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=40, help="turns of each side (40)")
    repeats = parser.parse_args().repeats
    print(f"{'case':30} {'C++ us':>9} {'Python us':>10} {'difference us':>14}")
    for name, words in CASES.items():
        fuseline.predict(**words)
        in_cpp, in_python = [], []
        for _ in range(repeats):
            in_cpp.append(seconds_of(lambda: _native.seconds_a_prediction(words, 5)) / 5)
            in_python.append(seconds_of(lambda: predict_often(words, 5)) / 5)
        # The median of the differences of neighbouring turns: a load that fills the caches hits both.
        difference = statistics.median(p - c for p, c in zip(in_python, in_cpp))
        print(f"{name:30} {1e6 * statistics.median(in_cpp):9.1f} "
              f"{1e6 * statistics.median(in_python):10.1f} {1e6 * difference:14.1f}")
    alone = seconds_without_prediction(CASES["llama2-7b forward, coda"], 50 * repeats)
    print(f"{'the call without a prediction':30} {'':>9} {1e6 * alone:10.1f}")


if __name__ == "__main__":
    main()
