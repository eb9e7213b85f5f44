"""The random blocks of scripts/check_random_blocks.py: the same ones for the same seed, and all of them ones that fuseline accepts."""
import pathlib
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check_random_blocks.py"
PROGRAM = sys.argv[1]


def run(*arguments):
    return subprocess.run([sys.executable, SCRIPT, "--fuseline", PROGRAM, *arguments], capture_output=True, text=True,
                          check=False)


def listed(seed):
    done = run("--list", "--count", "8", "--seed", str(seed))
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


first = listed(5)
assert len(first) == 8, first
assert first == listed(5), "the same seed makes other blocks"
assert first != listed(6), "another seed makes the same blocks"
for line in first:
    for word in ("--phase", "--batch", "--policy"):
        assert word in line, line
assert run().returncode == 2
assert run("--list", "--count", "0").returncode == 2
