#!/usr/bin/env python3
"""Makes a file of scenarios/distributions from a trace of requests.

    scripts/condense_requests.py TRACE --title T --source S --date D [--assumed A]... > NAME.toml

TRACE is a CSV with a header, or JSON lines. Its prompt lengths are the column ContextTokens,
input_length or prompt; the lengths of the answers GeneratedTokens, output_length or generated.
Requests are put in the order of their prompts and parted into 20 groups of equal numbers, of which
the last one leaves the longest 1 % to a group of its own. A group stands for its requests with
the means of both lengths, so that the sum of all tokens stays what it was, up to rounding.
"""
import argparse
import collections
import csv
import json
import sys

GROUPS = 20
LONGEST = 0.01
PROMPT = ("ContextTokens", "input_length", "prompt")
GENERATED = ("GeneratedTokens", "output_length", "generated")


def rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        if path.endswith(".jsonl"):
            yield from (json.loads(line) for line in file if line.strip())
        else:
            yield from csv.DictReader(file)


def column(row, names, path):
    for name in names:
        if name in row:
            return name
    sys.exit(f"condense_requests: {path} has none of the columns {', '.join(names)}")


def read(path):
    requests = []
    prompt = generated = None
    for row in rows(path):
        if prompt is None:
            prompt, generated = column(row, PROMPT, path), column(row, GENERATED, path)
        requests.append((int(row[prompt]), int(row[generated])))
    if not requests:
        sys.exit(f"condense_requests: {path} holds no request")
    return sorted(requests)


def ends(count):
    """Where each group ends: 20 equal ones, the longest 1 % apart."""
    out = [round(count * g / GROUPS) for g in range(1, GROUPS)]
    out.append(round(count * (1 - LONGEST)))
    out.append(count)
    return out


def frequent(weights):
    """How many sizes make which share of the calls: 1, 2, 4, ... and all."""
    weights = sorted(weights, reverse=True)
    total, done, out = sum(weights), 0, []
    for number, weight in enumerate(weights, 1):
        done += weight
        if number & (number - 1) == 0 or number == len(weights):
            out.append((number, done / total))
    return out


def counts(name, weights):
    entries = ",\n".join(f"  {{ sizes = {n}, share = {share:.6g} }}"
                         for n, share in frequent(weights))
    return f"[{name}]\ndifferent = {len(weights)}\nfrequent = [\n{entries},\n]\n"


def contexts(requests):
    """How often a token is generated with so many tokens in the cache, itself included."""
    change = collections.Counter()
    for prompt, generated in requests:
        change[prompt + 1] += 1
        change[prompt + generated + 1] -= 1
    now, weights, last = 0, [], None
    for size in sorted(change):
        if now:
            weights += [now] * (size - last)
        now += change[size]
        last = size
    return weights


def main():
    parser = argparse.ArgumentParser(description="a trace of requests as a distribution")
    parser.add_argument("trace")
    parser.add_argument("--title", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--date", required=True)
    parser.add_argument("--assumed", action="append", default=[])
    options = parser.parse_args()
    requests = read(options.trace)
    print(f"# Made by scripts/condense_requests.py: {len(requests)} requests by the length of their "
          f"prompts in {GROUPS} groups of\n# equal numbers, the longest 1 % apart; each group has "
          "the means of its lengths. Tokens.")
    for key in ("title", "source", "date"):
        print(f"{key} = {json.dumps(getattr(options, key), ensure_ascii=False)}")
    print("assumed = [")
    for assumed in options.assumed:
        print(f"  {json.dumps(assumed, ensure_ascii=False)},")
    print("]")
    print(f"counted = {len(requests)}")
    print("request = [")
    begin = 0
    for end in ends(len(requests)):
        group = requests[begin:end]
        if group:
            prompt = max(1, round(sum(p for p, _ in group) / len(group)))
            generated = round(sum(g for _, g in group) / len(group))
            print(f"  {{ prompt = {prompt}, generated = {generated}, weight = {len(group)} }},")
        begin = end
    print("]\n")
    print("# Different lengths of the trace itself, and which share of the calls the most frequent "
          "ones make.")
    print(counts("prompts", list(collections.Counter(p for p, _ in requests).values())))
    print(counts("contexts", contexts(requests)))
    print(counts("sums", list(collections.Counter(p + g for p, g in requests).values())), end="")


if __name__ == "__main__":
    main()
