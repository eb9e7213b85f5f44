"""scripts/measure_table.py without a GPU.

  measure_table_test.py slices                 its calls, with a program that only writes what `measure` writes
  measure_table_test.py check FUSELINE [ROWS]  its own check: commands are read, kernels compile
"""
import csv
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "measure_table.py"

# Bf16 blocks take 100 us and others 40; torch-compile 150 and eager 120. The training kernels take 30.
FAKE = """#!/usr/bin/env python3
import os, pathlib, sys
words = sys.argv[1:]
folder = pathlib.Path(words[words.index("--output") + 1])
folder.mkdir(parents=True, exist_ok=True)
us = 40 if "--weights" in words else 100
(folder / "block.csv").write_text(f"model,execution,ms_median,checked\\nm,coda,{us / 1000},0.002\\n")
if "--rivals" in words and "RIVAL_IS_LOST" not in os.environ:
    rivals = words[words.index("--rivals") + 1].split(",")
    (folder / "rivals.csv").write_text("execution,ms_median\\n" + "".join(
        f"{r},{0.12 if r == 'eager' else 0.15}\\n" for r in rivals))
if "--kernels" in words:
    (folder / "kernels.csv").write_text("operator,us_graph\\n" + "".join(
        f"{k},{us}\\n" for k, us in (("d_down", 20), ("d_down", 10), ("d_gate_up", 25), ("finish_dot_norm2", 5))))
(folder / "meta.toml").write_text('device = "' + os.environ.get("FAKE_GPU", "H200") + '"\\ndriver = "1"\\n'
    'toolkit = "CUDA 13.0"\\ndate = "2026-11-26"\\nnotes = ["rivals.csv: PyTorch 2.11, in turns"]\\n')
"""
PAIRS = """import sys
out = sys.argv[sys.argv.index("--out") + 1]
open(out, "w").write("pair,us_median\\nnorm-backward,60\\nswiglu-backward,45\\n")
"""


def call(scratch, *more, **environment):
    return subprocess.run(
        [sys.executable, str(SCRIPT), str(scratch / "out"), "--fuseline", str(scratch / "fake"),
         "--pairs-command", f"{sys.executable} {scratch / 'pairs.py'}", *more],
        capture_output=True, text=True, env={**os.environ, **environment}, check=False)


def table(scratch):
    with open(scratch / "out" / "table.csv", newline="", encoding="utf-8") as f:
        return {line["row"]: line for line in csv.DictReader(f)}


def slices():
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        (scratch / "fake").write_text(FAKE)
        (scratch / "fake").chmod(0o755)
        (scratch / "pairs.py").write_text(PAIRS)

        unknown = call(scratch, "--rows", "mixtral")
        assert unknown.returncode == 1 and "is none of mixtral-decode-1" in unknown.stderr, unknown.stderr

        none = call(scratch, "--minutes", "0")
        assert none.returncode == 1 and "0 of 8 rows measured" in none.stdout, none.stdout

        lost = call(scratch, "--rows", "mixtral-decode-1", RIVAL_IS_LOST="1")
        assert lost.returncode == 1 and "no times of torch-compile" in lost.stdout, lost.stdout

        two = call(scratch, "--rows", "mixtral-decode-1,int4-decode-1")
        assert two.returncode == 0, two.stdout + two.stderr
        rows = table(scratch)
        assert list(rows) == ["mixtral-decode-1", "int4-decode-1"], rows
        assert rows["mixtral-decode-1"]["ratio"] == "1.500" and rows["int4-decode-1"]["ratio"] == "2.500", rows
        assert rows["int4-decode-1"]["checked"] == "0.002" and rows["int4-decode-1"]["device"] == "H200", rows
        assert rows["mixtral-decode-1"]["framework"] == "PyTorch 2.11", rows

        other = call(scratch, FAKE_GPU="H100")
        assert other.returncode == 1 and "was begun on H200" in other.stderr, other.stderr

        rest = call(scratch)
        assert rest.returncode == 0, rest.stdout + rest.stderr
        assert "mixtral-decode-1:" not in rest.stdout, "what is there is not measured again"
        assert "8 of 8 rows measured, 7 reach what is asked" in rest.stdout, rest.stdout
        rows = table(scratch)
        assert rows["mamba2-2048"]["rival"] == "eager" and rows["mamba2-2048"]["ratio"] == "1.200", rows
        assert rows["norm-backward"]["ratio"] == "2.000" and rows["swiglu-backward"]["ratio"] == "1.500", rows
        assert sorted(p.name for p in (scratch / "out").glob("call-?")) == [f"call-{n}" for n in range(1, 6)]


def check(fuseline, *rows):
    done = subprocess.run([sys.executable, str(SCRIPT), "--check", "--fuseline", fuseline,
                           *(word for names in rows for word in ("--rows", names))],
                          capture_output=True, text=True, check=False)
    print(done.stdout + done.stderr)
    assert done.returncode == 0


if __name__ == "__main__":
    slices() if sys.argv[1] == "slices" else check(*sys.argv[2:])
