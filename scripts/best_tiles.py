#!/usr/bin/env python3
"""How much faster a found plan would be with the best tile of the GPU's menu for each product.

    scripts/best_tiles.py build/release/bin/fuseline DATA -- OPTIONS OF THE SELECTION

DATA is the folder of data files (scenarios). Searches the block on an H200, then predicts the found plan with menus of
one tile each, and takes every product's best time. A tile that no epilogue of the plan fits in is left out.

    scripts/best_tiles.py build/release/bin/fuseline scenarios -- --model llama3-8b --phase decode --batch 8 --context 4096
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile


def main():
    if "--" not in sys.argv[1:] or sys.argv.index("--") != 3:
        sys.exit(__doc__)
    fuseline, data, where = sys.argv[1], sys.argv[2], ["--gpu", "h200", *sys.argv[4:]]
    with tempfile.TemporaryDirectory() as folder:
        own = os.path.join(folder, "scenarios")
        shutil.copytree(data, own)
        plan = os.path.join(folder, "found.fuse")
        file = os.path.join(own, "architectures", "hopper.toml")
        with open(file) as text:
            before = text.read()
        begin = before.index("\nown = [")
        end = before.index("\n]", begin)
        tiles = [line.strip().rstrip(",") for line in before[begin:end].split("\n") if "{" in line]

        def run(*words):
            done = subprocess.run([fuseline, *words], capture_output=True, text=True,
                                  env=dict(os.environ, FUSELINE_DATA=own))
            return done if done.returncode == 0 else None

        def products():
            done = run("predict", *where, "--plan", plan, "--format", "json")
            if done is None:
                return None, {}
            block = json.loads(done.stdout)["predictions"][0]
            return block["time_us"], {k["name"]: k["time_us"] for k in block["kernels"] if k["kind"] == "gemm"}

        if run("search", *where, "--policy", "coda,per-operator", "--output", plan) is None:
            sys.exit("the search failed")
        time, chosen = products()
        best = dict(chosen)
        for tile in tiles:
            with open(file, "w") as text:
                text.write(before[:begin] + "\nown = [\n" + tile + before[end:])
            for name, us in products()[1].items():
                best[name] = min(best.get(name, us), us)
        spared = sum(chosen.values()) - sum(best.values())
        print(f"{time:.1f} us; with the best of {len(tiles)} tiles for each product {time - spared:.1f} us: "
              f"{100 * spared / time:.2f} % less")


if __name__ == "__main__":
    main()
