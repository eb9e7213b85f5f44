#!/usr/bin/env python3
"""pip install of the source tree into a fresh virtual environment, without a network; the module is then
imported from another folder and reads the data that was installed with it.

usage: pip_install_test.py PACKAGE      the folder python/fuseline of a build; the wheel is packed from it
Exit status 77: venv or pip is not here (Debian: python3-venv).
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

USE = r"""
import json, sys
import fuseline
one = fuseline.predict(model="llama2-7b", gpu="h200", phase="forward", batch=1, seq=2048, policy="coda")
try:
    fuseline.predict(model="lama2-7b", gpu="h200")
    error = None
except fuseline.InputError as e:
    error = str(e)
print(json.dumps({
    "file": fuseline.__file__, "version": fuseline.__version__, "time_us": one.time_us,
    "models": sorted(m.name for m in fuseline.models()), "gpus": sorted(g.name for g in fuseline.gpus()),
    "blocks": sorted(b.name for b in fuseline.blocks()), "error": error,
    "page": len(fuseline.report(model="tinyllama", gpu="h200", seq=64, policy="coda"))}))
"""


def run(command, **more):
    done = subprocess.run([str(c) for c in command], text=True, capture_output=True, **more)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def main():
    package = pathlib.Path(sys.argv[1]).resolve()
    try:
        import ensurepip  # noqa: F401  Debian splits it off
        import venv  # noqa: F401
    except ImportError:
        print("skipped: no venv; on Debian: apt-get install python3-venv")
        return 77
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith(("PYTHON", "FUSELINE", "PIP_", "VIRTUAL_ENV"))}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder).resolve()
        run([sys.executable, "-m", "venv", folder / "env"], env=environment)
        python = folder / "env" / "bin" / "python"
        pip = [python, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir"]
        run([*pip, "install", "--no-index", "--config-settings", f"built={package}", ROOT],
            env=environment, cwd=folder)
        (folder / "elsewhere").mkdir()
        installed = json.loads(run([python, "-c", USE], env=environment, cwd=folder / "elsewhere"))
        built = json.loads(run([sys.executable, "-c", USE], cwd=folder / "elsewhere",
                               env={**environment, "PYTHONPATH": str(package.parent)}))

        site = pathlib.Path(installed["file"]).parents[1]
        assert site.is_relative_to(folder / "env"), site
        assert pathlib.Path(built["file"]).parent == package, built["file"]
        for key in built:
            if key != "file":
                assert installed[key] == built[key], (key, installed[key], built[key])
        assert "did you mean 'llama2-7b'" in installed["error"], installed["error"]
        assert len(installed["models"]) > 20 and installed["page"] > 10_000

        # The installed data is what is read: a GPU that only lies there is listed.
        gpus = site / "fuseline" / "scenarios" / "gpus"
        text = (gpus / "h200.toml").read_text(encoding="utf-8")
        (gpus / "of-this-test.toml").write_text(text, encoding="utf-8")
        again = json.loads(run([python, "-c", USE], env=environment, cwd=folder / "elsewhere"))
        assert set(again["gpus"]) - set(installed["gpus"]) == {"of-this-test"}, again["gpus"]
        (gpus / "of-this-test.toml").unlink()
        # pip knows every file that it wrote.
        run([*pip, "uninstall", "-y", "fuseline"], env=environment, cwd=folder)
        left = [p for p in site.rglob("*") if "fuseline" in str(p) and p.suffix != ".pyc" and p.is_file()]
        assert not left, left

        # A folder that holds no module is refused, and nothing is installed.
        done = subprocess.run([*map(str, pip), "install", "--no-index", "--config-settings",
                               f"built={folder / 'elsewhere'}", str(ROOT)], text=True,
                              capture_output=True, env=environment, cwd=folder)
        assert done.returncode != 0 and "holds no built module" in done.stdout + done.stderr
    print("installed, imported from another folder, and removed")
    return 0


sys.exit(main())
