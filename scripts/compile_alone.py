#!/usr/bin/env python3
"""Compiles single sources and headers as a build folder says, without what the build would make first.

  compile_alone.py BUILD FILE...    exit status 1: one of them does not compile

Objects are not kept: the compiler only reads the file and everything that it includes. A header is
read with the options of a source beside it: it must include all that it uses, since in a build
another file may have included that before.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys


def compile_alone(file, entry):
    words = shlex.split(entry["command"])
    words[words.index("-o"):words.index("-o") + 2] = []
    if file.endswith(".h"):
        words[words.index("-c"):] = ["-x", "c++", "-Wno-pragma-once-outside-header",
                                      "-Wno-unused-const-variable", file]
    done = subprocess.run(words + ["-fsyntax-only"], cwd=entry["directory"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return file, done.returncode, done.stdout


def command_of(file, commands):
    """The command of the file; of a header, that of its source or of a source in its folder or above."""
    if not file.endswith(".h"):
        return commands.get(file)
    own = commands.get(file[:-2] + ".cpp")
    if own:
        return own
    folder = os.path.dirname(file)
    while len(folder) > 1:
        beside = [entry for source, entry in commands.items() if source.startswith(folder + "/")]
        if beside:
            return min(beside, key=lambda entry: entry["file"].count("/"))
        folder = os.path.dirname(folder)
    return None


def main():
    build, files = pathlib.Path(sys.argv[1]), [os.path.realpath(f) for f in sys.argv[2:]]
    commands = {os.path.realpath(e["file"]): e
                for e in json.loads((build / "compile_commands.json").read_text())}
    work = [(file, command_of(file, commands)) for file in files]
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, status, said in pool.map(lambda job: compile_alone(*job),
                                           [job for job in work if job[1]]):
            print(("ok     " if status == 0 else "FAILED ") + os.path.relpath(file), flush=True)
            wrong += status != 0
            if said:
                print(said)
    sys.exit(1 if wrong else 0)


main()
