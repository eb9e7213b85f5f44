#!/usr/bin/env python3
"""Times found plans on the GPU here, in turns with `coda` and PyTorch's torch.compile, and prints a table.

    scripts/found_plans.py build/release/bin/fuseline --gpu h200 [--plans FOLDER] [--csv FILE] [--seconds N]

A plan that is not in the folder is searched for and put there: the fastest, by prediction, of those whose every kernel has
CUDA code of ours. Outputs are checked against fp64 at the measured sizes. The exit status is 1 when a plan failed.

    scripts/found_plans.py build/release/bin/fuseline --gpu h100 --choose

searches every candidate and says which six cases the rule of docs/search.md takes. Nothing is measured for it.

    scripts/found_plans.py build/release/bin/fuseline --gpu h200 --finishers [--predict [--check-plans]]

takes, in the place of found plans, `coda` without the launches that finish a norm's statistics: every tile that scales
by the norm sums its rows' partials itself. The cases are the decode blocks of scripts/measure-kernels.sh. --predict says
what that is worth and needs no GPU; --check-plans also executes every plan on the CPU and writes its CUDA code.
"""
import argparse
import csv
import json
import pathlib
import subprocess
import sys
import tempfile
import time

# What --choose took on an H100 before any of them was measured; then the cases of the first two times.
CASES = [
    ("gpt2-large", "forward", 2, 1024, 0), ("gpt2-xl", "forward", 2, 1024, 0), ("tinyllama", "decode", 4, 1, 2048),
    ("gpt2-large", "decode", 4, 1, 2048), ("gpt2-large", "train", 1, 1024, 0), ("gpt2-xl", "train", 1, 1024, 0),
    ("qwen3-8b", "decode", 13, 1, 3001), ("tinyllama", "decode", 37, 1, 1500), ("gpt2-xl", "forward", 3, 700, 0),
    ("mistral-7b", "forward", 1, 1777, 0), ("phi3", "forward", 2, 1111, 0), ("tinyllama", "train", 2, 900, 0),
    ("llama3-8b", "decode", 8, 1, 4096), ("gpt2-xl", "decode", 1, 1, 1024),
]
# What PyTorch's side of `measure` can build, with a check against fp64 that takes minutes at most; one shape a phase.
CANDIDATES = ["gpt2-large", "gpt2-xl", "gpt3-13b", "llama2-7b", "llama2-13b", "llama3-8b", "mistral-7b", "phi3", "tinyllama"]
SHAPES = [("forward", 2, 1024, 0), ("decode", 4, 1, 2048), ("train", 1, 1024, 0)]
# The decode blocks of scripts/measure-kernels.sh.
FINISHED = [(model, "decode", batch, 1, 2048) for model, batch in
            (("llama2-7b", 1), ("llama2-13b", 1), ("llama3-8b", 1), ("llama3-8b", 4), ("llama3-8b", 8), ("tinyllama", 1),
             ("tinyllama", 4), ("tinyllama", 8))] + [
    ("llama2-7b", "decode", 3, 1, 1700), ("llama3-8b", "decode", 1, 1, 27000), ("llama2-13b", "decode", 7, 1, 900),
    ("mistral-7b", "decode", 20, 1, 1300), ("qwen3-8b", "decode", 48, 1, 700), ("tinyllama", "decode", 100, 1, 600),
    ("phi3", "decode", 12, 1, 2100), ("gpt2-xl", "decode", 40, 1, 500), ("llama3-8b", "decode", 128, 1, 500),
    ("falcon-7b", "decode", 5, 1, 3000), ("gemma2-9b", "decode", 16, 1, 1100), ("llama2-70b", "decode", 2, 1, 5000),
]
COLUMNS = ["model", "phase", "batch", "seq", "context", "search_us", "search_predicted_us", "coda_us", "coda_predicted_us",
           "torch_compile_us", "checked"]


def words_of(case):
    model, phase, batch, seq, context = case
    words = ["--model", model, "--phase", phase, "--batch", str(batch), "--seq", str(seq)]
    return words + (["--context", str(context)] if context else [])


def predicted_us(o, case, which):
    done = subprocess.run([o.fuseline, "predict", "--gpu", o.gpu, *words_of(case), *which, "--format", "json"], check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout)["predictions"][0]["time_us"]


def find(o, case, plan):
    """The fastest found plan that our kernels run, into the file; its predicted time and the kernels that were allowed."""
    best = None
    for kernels in ("own", "any"):
        tried = plan.with_suffix(f".{kernels}.fuse")
        if kernels == "any" and case[1] != "decode":
            continue  # one launch of a whole block is a decode block's
        subprocess.run([o.fuseline, "search", "--gpu", o.gpu, *words_of(case), "--policy", "coda", "--kernels", kernels,
                        "--output", str(tried), "--format", "json"], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        us = predicted_us(o, case, ["--plan", str(tried)])
        built = subprocess.run([o.fuseline, "explain", "--gpu", o.gpu, *words_of(case), "--plan", str(tried), "--cuda"],
                               capture_output=True)
        if built.returncode == 0 and (best is None or us < best[0]):
            best = us, kernels, tried.read_bytes()
        tried.unlink()
    plan.write_bytes(best[2])
    return best[:2]


def launches(o, case, which):
    done = subprocess.run([o.fuseline, "predict", "--gpu", o.gpu, *words_of(case), *which, "--format", "json"], check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout)["predictions"][0]["launches"]


def fold_finishers(o, case, plan):
    """The best plan in which every finisher of `coda` is in a kernel with what scales by it. Whether there is one."""
    done = subprocess.run([o.fuseline, "explain", "--gpu", o.gpu, *words_of(case), "--policy", "coda", "--format", "json"],
                          check=True, capture_output=True, text=True)
    coda = json.loads(done.stdout)["plans"][0]
    finishers = {op for k in coda["kernels"] if k["implementation"] == "finisher" for op in k["operators"]}
    pairs = [f"{e['from']},{e['to']}" for e in coda["edges"] if e["from"] in finishers and not e["fused"]]
    if not pairs:
        return False
    searched = subprocess.run([o.fuseline, "search", "--gpu", o.gpu, *words_of(case), "--policy", "coda", "--kernels", "own",
                               "--keep-together", ";".join(pairs), "--output", str(plan), "--format", "json"],
                              capture_output=True, text=True)
    return searched.returncode == 0


def predict_finishers(o):
    """A table of what the launches cost. The exit status."""
    print("| block | coda µs | launches | without finishers | launches | gain |" + (" checked |" if o.check_plans else ""))
    print("|---|---|---|---|---|---|" + ("---|" if o.check_plans else ""))
    failed = 0
    for number in o.numbers:
        case = o.all_cases[number - 1]
        plan = o.plans / f"{number}-{o.gpu}.fuse"
        what = f"{case[0]} {case[2]} x {case[4]}"
        if not fold_finishers(o, case, plan):
            print(f"| {what} | no finisher that can be folded | | | | |" + (" |" if o.check_plans else ""), flush=True)
            continue
        with_plan, with_coda = ["--plan", str(plan)], ["--policy", "coda"]
        before, after = predicted_us(o, case, with_coda), predicted_us(o, case, with_plan)
        said = ""
        if o.check_plans:
            right = subprocess.run([o.fuseline, "verify", "--gpu", o.gpu, *words_of(case), *with_plan],
                                   capture_output=True).returncode == 0
            built = subprocess.run([o.fuseline, "explain", "--gpu", o.gpu, *words_of(case), *with_plan, "--cuda"],
                                   capture_output=True).returncode == 0
            failed += not (right and built)
            said = f" {'verified' if right else 'WRONG'}, {'has CUDA code' if built else 'NO CUDA CODE'} |"
        print(f"| {what} | {before:.1f} | {launches(o, case, with_coda)} | {after:.1f} | {launches(o, case, with_plan)} "
              f"| {before / after:.3f} |{said}", flush=True)
    return 1 if failed else 0


def choose(o):
    """Of each phase the two models with the largest predicted gain over the faster of coda and torch-compile."""
    print("| block | found µs | kernels | coda | torch-compile | gain | |\n|---|---|---|---|---|---|---|")
    taken = []
    for phase, batch, seq, context in SHAPES:
        rows = []
        for model in CANDIDATES:
            case = (model, phase, batch, seq, context)
            found, kernels = find(o, case, o.plans / f"candidate-{model}-{phase}-{o.gpu}.fuse")
            coda, torch = (predicted_us(o, case, ["--policy", name]) for name in ("coda", "torch-compile"))
            rows.append((min(coda, torch) / found, case, found, kernels, coda, torch))
        best = [r[1] for r in sorted(rows, reverse=True)[:2]]
        taken += best
        for gain, case, found, kernels, coda, torch in rows:
            print(f"| {case[0]} {phase} | {found:.1f} | {kernels} | {coda:.1f} | {torch:.1f} | {gain:.3f} "
                  f"| {'taken' if case in best else ''} |", flush=True)
    print("\n" + "\n".join(f"    {case}," for case in taken))


def times(folder, name):
    file = folder / name
    if not file.exists():
        return {}
    with open(file) as f:
        return {row["execution"]: row for row in csv.DictReader(f)}


def measure(o, case, number, left):
    plan = o.plans / f"{number}-{o.gpu}.fuse"
    if not plan.exists():
        if o.finishers and not fold_finishers(o, case, plan):
            return None, "no finisher that can be folded"
        if not o.finishers:
            find(o, case, plan)
    predicted = {policy: predicted_us(o, case, which)
                 for policy, which in (("search", ["--plan", str(plan)]), ("coda", ["--policy", "coda"]))}
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "measured"
        command = [o.fuseline, "measure", "--gpu", o.gpu, *words_of(case), "--plan", str(plan), "--policy", "coda",
                   "--rivals", "torch-compile", "--rounds", "4", "--no-counters", "--check", o.check, "--kernels",
                   "--output", str(out)]
        if o.rival_command:
            command += ["--rival-command", o.rival_command]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=left)
        except subprocess.TimeoutExpired:
            return None, "out of time"
        if o.logs:
            (o.logs / f"found-{number}.log").write_text(done.stdout + done.stderr)
        own, rivals = times(out, "block.csv"), times(out, "rivals.csv")
    if done.returncode != 0 or "search" not in own:
        return None, done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit status {done.returncode}"
    us = {name: 1e3 * float(row["ms_median"]) for name, row in {**own, **rivals}.items()}
    row = dict(zip(COLUMNS, case), search_us=round(us["search"], 1), search_predicted_us=round(predicted["search"], 1),
               coda_us=round(us["coda"], 1), coda_predicted_us=round(predicted["coda"], 1),
               torch_compile_us=round(us["torch-compile"], 1) if "torch-compile" in us else "", checked=o.check)
    return row, ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fuseline")
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("--plans", type=pathlib.Path, default=pathlib.Path("found-plans"))
    parser.add_argument("--csv", type=pathlib.Path)
    parser.add_argument("--logs", type=pathlib.Path)
    parser.add_argument("--check", default="full")
    parser.add_argument("--rival-command")
    parser.add_argument("--cases", help="numbers, with commas between them (1 to 6; all, of --finishers)")
    parser.add_argument("--finishers", action="store_true", help="coda without launches of finishers")
    parser.add_argument("--predict", action="store_true", help="of --finishers: no GPU")
    parser.add_argument("--check-plans", action="store_true", help="of --predict: execute the plans, write their code")
    parser.add_argument("--choose", action="store_true", help="say which cases the rule takes; no GPU")
    parser.add_argument("--seconds", type=float, default=3600, help="no case begins later")
    o = parser.parse_args()
    o.plans.mkdir(parents=True, exist_ok=True)
    o.all_cases = FINISHED if o.finishers else CASES
    o.numbers = [int(n) for n in o.cases.split(",")] if o.cases else list(range(1, len(FINISHED) + 1 if o.finishers else 7))
    if o.predict:
        return predict_finishers(o)
    if o.choose:
        choose(o)
        return 0
    end = time.monotonic() + o.seconds
    rows, failed = [], 0
    print("| block | found µs | coda | torch.compile | gain over coda, predicted | measured | over torch.compile |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for number in o.numbers:
        case = o.all_cases[number - 1]
        what = f"{case[0]} {case[1]} {case[2]} x {case[3]}" + (f" of {case[4]}" if case[4] else "")
        left = end - time.monotonic()
        row, why = measure(o, case, number, left) if left > 10 else (None, "out of time")
        if row is None:
            failed += 1
            print(f"| {what} | {why} | | | | | |", flush=True)
            continue
        rows.append(row)
        torch = row["torch_compile_us"]
        print(f"| {what} | {row['search_us']} | {row['coda_us']} | {torch or 'not run'} "
              f"| {row['coda_predicted_us'] / row['search_predicted_us']:.3f} | {row['coda_us'] / row['search_us']:.3f} "
              f"| {f'''{torch / row['search_us']:.3f}''' if torch else ''} |", flush=True)
        if o.csv:
            with open(o.csv, "w", newline="") as f:
                writer = csv.DictWriter(f, COLUMNS)
                writer.writeheader()
                writer.writerows(rows)
    gains = [(r["coda_predicted_us"] / r["search_predicted_us"] - 1, r["coda_us"] / r["search_us"] - 1) for r in rows]
    square = sum(p * p for p, _ in gains)
    with_torch = [r for r in rows if r["torch_compile_us"]]
    print(f"\n{sum(m >= 0 for _, m in gains)} of {len(rows)} no slower than coda, "
          f"{sum(r['torch_compile_us'] > r['search_us'] for r in with_torch)} of {len(with_torch)} ahead of torch.compile"
          + (f"; slope of measured on predicted gain {sum(p * m for p, m in gains) / square:.2f}" if square else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
