"""Builds fuseline's wheel for pip (PEP 517): runs CMake, then packs the module and its data.

It needs what the build needs (scripts/install-deps.sh --with-python) and no other package, so that
`pip install .` also works without a network. The wheel is for the interpreter that runs this.
"""
import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ("models", "gpus", "architectures", "blocks", "bands", "measurements", "published", "claims",
        "programs")


def _version():
    text = (ROOT / "base" / "version.h").read_text()
    return re.search(r'kVersion = "([^"]+)"', text).group(1)


def _tag():
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    return f"{python}-{python}-{platform}"


def _metadata():
    return (f"Metadata-Version: 2.1\nName: fuseline\nVersion: {_version()}\n"
            "Summary: Predicts what fusing a neural-network block is worth on a GPU\n"
            "License: Apache-2.0\nRequires-Python: >=3.9\nProvides-Extra: tables\n"
            "Requires-Dist: pandas; extra == 'tables'\n")


def _wheel_facts():
    return f"Wheel-Version: 1.0\nGenerator: fuseline_wheel\nRoot-Is-Purelib: false\nTag: {_tag()}\n"


def _build(settings):
    """The folder of the built package. --config-settings built=FOLDER names one that is built already."""
    built = (settings or {}).get("built")
    if built:
        package = pathlib.Path(built).resolve()
        if not list(package.glob("_native*.so")) or not (package / "__init__.py").exists():
            sys.exit(f"fuseline: {package} holds no built module; expected the folder python/fuseline of "
                     "a build")
        return package
    folder = ROOT / "build" / f"wheel-{sys.version_info.major}.{sys.version_info.minor}"
    subprocess.run(["cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja",
                    "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG",
                    "-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=12",
                    "-DFUSELINE_BUILD_TESTS=OFF", "-DFUSELINE_BUILD_BENCH=OFF",
                    "-DFUSELINE_BUILD_GUI=OFF", f"-DFUSELINE_PYTHON={sys.executable}"], check=True)
    # CMake builds with as many processes as Ninja thinks right; CMAKE_BUILD_PARALLEL_LEVEL says another number.
    made = subprocess.run(["cmake", "--build", str(folder), "--target", "fuseline_python"])
    if made.returncode != 0:
        sys.exit("fuseline: the module was not built; it needs pybind11-dev and python3-dev of this "
                 f"interpreter ({sys.executable})")
    return folder / "python" / "fuseline"


def _files(package):
    """(name in the wheel, bytes) of everything."""
    for path in sorted(package.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield f"fuseline/{path.relative_to(package)}", path.read_bytes()
    scenarios = ROOT / "scenarios"
    for path in sorted(scenarios.rglob("*")):
        inside = path.relative_to(scenarios)
        if path.is_file() and (len(inside.parts) == 1 or inside.parts[0] in DATA):
            yield f"fuseline/scenarios/{inside}", path.read_bytes()


def _pack(wheel, files):
    """A wheel is a zip file that lists its files with their hashes."""
    facts = f"fuseline-{_version()}.dist-info"
    record = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as out:
        def put(name, data):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}\n")
            out.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)

        for name, data in files:
            put(name, data)
        put(f"{facts}/METADATA", _metadata().encode())
        put(f"{facts}/WHEEL", _wheel_facts().encode())
        record.append(f"{facts}/RECORD,,\n")
        out.writestr(f"{facts}/RECORD", "".join(record))


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    package = _build(config_settings)
    name = f"fuseline-{_version()}-{_tag()}.whl"
    _pack(os.path.join(wheel_directory, name), _files(package))
    return name


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("fuseline: install it from its source tree; there is no source archive")
