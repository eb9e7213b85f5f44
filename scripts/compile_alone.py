#!/usr/bin/env python3
"""Compiles single sources as a build folder says, without what the build would make first.

  compile_alone.py BUILD SOURCE...    exit status 1: one of them does not compile

Objects are not kept: the compiler only reads the file and everything that it includes.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys


def check(entry):
    words = shlex.split(entry["command"])
    words[words.index("-o"):words.index("-o") + 2] = []
    done = subprocess.run(words + ["-fsyntax-only"], cwd=entry["directory"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return entry["file"], done.returncode, done.stdout


def main():
    build, sources = pathlib.Path(sys.argv[1]), [os.path.realpath(s) for s in sys.argv[2:]]
    commands = {os.path.realpath(e["file"]): e
                for e in json.loads((build / "compile_commands.json").read_text())}
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, status, said in pool.map(check, [commands[s] for s in sources if s in commands]):
            print(("ok     " if status == 0 else "FAILED ") + os.path.relpath(file), flush=True)
            wrong += status != 0
            if said:
                print(said)
    sys.exit(1 if wrong else 0)


main()
