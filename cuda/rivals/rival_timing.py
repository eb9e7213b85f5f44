"""Timing, tracing and output shared by the PyTorch rival measurements.

A time is the length of one CUDA-graph replay between two events. Twenty replays follow each other
without a host synchronisation, after a warm-up; median, minimum and maximum are reported. All inputs
are normal random numbers: constant inputs draw less power and run faster.

`python3 rival_timing.py meta FILE.json` writes what identifies a measurement: device, driver,
library versions, clocks and limits as found (nothing is ever set), date.
"""

import csv
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

import torch

from kernel_names import MARKER_KERNEL, tidy_kernel_name

REPLAYS = 20
ROTATION_BYTES = 200e6  # more than three times the L2 of an H200


def process_start():
    """time.monotonic() at which this process began, its imports included."""
    now = time.monotonic()
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        with open("/proc/uptime", encoding="ascii") as file:
            age = float(file.read().split()[0]) - ticks / os.sysconf("SC_CLK_TCK")
        return now - age if 0.0 <= age < 600.0 else now
    except (OSError, ValueError, IndexError):
        return now


PROCESS_START = process_start()


class Budget:
    """Seconds this process may still use, counted from its start."""

    def __init__(self, seconds):
        self.seconds = seconds

    def left(self):
        return self.seconds - (time.monotonic() - PROCESS_START)

    def spent(self, needed=2.0):
        """True when a step of `needed` seconds should not be started."""
        return self.left() < needed


def default_budget():
    """Seconds from RIVAL_BUDGET, else an hour."""
    return float(os.environ.get("RIVAL_BUDGET", "3600"))


class CsvSink:
    """A CSV file whose every row reaches the disk before the next measurement starts."""

    def __init__(self, path, columns):
        self.path, self.columns = path, columns
        self.rows = []
        self.file = open(path, "w", newline="", encoding="utf-8")
        self.writer = csv.DictWriter(self.file, columns, lineterminator="\n", restval="")
        self.writer.writeheader()
        self.file.flush()

    def add(self, **row):
        self.rows.append(row)
        self.writer.writerow(row)
        self.file.flush()
        return row

    def rewrite(self):
        """Replaces the file by the rows as they are now (columns filled in after timing)."""
        self.file.close()
        temporary = self.path + ".tmp"
        with open(temporary, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self.columns, lineterminator="\n", restval="")
            writer.writeheader()
            writer.writerows(self.rows)
        os.replace(temporary, self.path)

    def close(self):
        self.file.close()


def log(*words):
    print(f"[{time.monotonic() - PROCESS_START:7.1f}s]", *words, flush=True)


def log_failure(what):
    """Reports the exception being handled and lets the sweep go on."""
    log("FAILED", what, "-", traceback.format_exc().strip().splitlines()[-1][:300])


def use_side_stream():
    """Makes a stream of its own current. Graphs cannot be captured on the default stream, and
    library workspaces belong to a stream, so warm-up, capture and replay all use this one."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    torch.cuda.set_stream(stream)
    return stream


class Capture:
    """CUDA graphs captured on the current stream from one shared memory pool.

    The pool keeps its blocks from one graph to the next, so a sweep of hundreds of small graphs does
    not allocate device memory for each. Only one graph of a pool may be alive at a time."""

    def __init__(self):
        self.pool = torch.cuda.graph_pool_handle()
        # A graph that stays alive keeps the pool alive.
        self.anchor = torch.cuda.CUDAGraph()
        cell = torch.zeros(1, device="cuda")
        self.anchor.capture_begin(pool=self.pool)
        try:
            self.kept = cell + 1
        finally:
            self.anchor.capture_end()

    def graph(self, body):
        """The graph of everything `body()` launches. The caller has run the body's calls once."""
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        graph.capture_begin(pool=self.pool)
        try:
            body()
        finally:
            graph.capture_end()
        return graph


def replay_times_ms(replay, replays=REPLAYS):
    """Milliseconds of each of `replays` calls launched back to back."""
    starts = [torch.cuda.Event(enable_timing=True) for _ in range(replays)]
    ends = [torch.cuda.Event(enable_timing=True) for _ in range(replays)]
    for start, end in zip(starts, ends):
        start.record()
        replay()
        end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) for start, end in zip(starts, ends)]


def warm_up(replay, milliseconds, most=200):
    """Replays until about `milliseconds` of device time have passed, at least three times."""
    first = statistics.median(replay_times_ms(replay, 3))
    for _ in range(min(most, int(milliseconds / max(first, 1e-3)))):
        replay()
    return first


def median_min_max(values):
    return statistics.median(values), min(values), max(values)


def rotated(make, set_bytes, most, total=ROTATION_BYTES):
    """`make(index)` for enough index values that `total` bytes pass before a buffer returns."""
    return [make(index) for index in range(min(most, max(1, math.ceil(total / set_bytes))))]


def timed_us(capture, calls, warm_ms=3.0):
    """Median, minimum and maximum microseconds of one call, all calls in one graph."""
    calls[0]()
    results = []

    def body():
        # Results stay alive to the end, so that no two calls write to the same memory.
        results.extend(call() for call in calls)

    graph = capture.graph(body)
    warm_up(graph.replay, warm_ms)
    times = [ms * 1e3 / len(calls) for ms in replay_times_ms(graph.replay)]
    results.clear()
    return median_min_max(times)


def use_cudnn_attention():
    """Leaves cuDNN as the only backend of scaled_dot_product_attention."""
    torch.backends.cuda.enable_cudnn_sdp(True)
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_math_sdp(False)


def mark(cell):
    """Launches the marker kernel on `cell` (an int32 tensor): separates calls in a trace."""
    cell.bitwise_not_()


def split_trace(events):
    """Kernels between markers, from the events of a Chrome trace.

    Returns one list per marker, in time order, of (name, grid, block); grid and block read like
    "(2, 66, 1)"."""

    def triple(value):
        return "(" + ", ".join(str(int(part)) for part in value) + ")" if value else ""

    kernels = [event for event in events if event.get("cat") == "kernel" and "ts" in event]
    kernels.sort(key=lambda event: float(event["ts"]))
    calls = []
    for event in kernels:
        name = event.get("name", "")
        if MARKER_KERNEL in name:
            calls.append([])
        elif calls:
            arguments = event.get("args", {})
            calls[-1].append((tidy_kernel_name(name), triple(arguments.get("grid")),
                              triple(arguments.get("block"))))
    return calls


def trace_kernels(calls):
    """What each call of the list launches, as split_trace() gives it. A call that fails gives []."""
    from torch.profiler import ProfilerActivity, profile

    cell = torch.ones(1, dtype=torch.int32, device="cuda")
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        cell.add_(0)  # tracing may miss what comes first; nothing before a marker is counted
        torch.cuda.synchronize()
        for call in calls:
            mark(cell)
            try:
                call()
            except Exception:
                log_failure("traced call")
        torch.cuda.synchronize()
    handle, path = tempfile.mkstemp(suffix=".json")
    os.close(handle)
    try:
        profiler.export_chrome_trace(path)
        with open(path, encoding="utf-8", errors="replace") as file:
            trace = json.loads(file.read(), strict=False)
    finally:
        os.unlink(path)
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    found = split_trace(events)
    if len(found) != len(calls):
        raise RuntimeError(f"trace holds {len(found)} markers for {len(calls)} calls")
    return found


def trace_in_chunks(calls, budget, chunk=64):
    """trace_kernels() over a long list; a chunk that fails or comes too late gives empty lists."""
    found = []
    for begin in range(0, len(calls), chunk):
        part = calls[begin:begin + chunk]
        if budget.spent(4.0):
            log(f"no time left to name the kernels of {len(calls) - begin} calls")
            break
        try:
            found += trace_kernels(part)
        except Exception:
            log_failure("kernel names")
            found += [[] for _ in part]
    return found + [[] for _ in range(len(calls) - len(found))]


def command_output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def metadata():
    """A dictionary that identifies device, driver, toolkit, clocks as found and date."""
    fields = ("name,driver_version,vbios_version,pstate,clocks.sm,clocks.mem,clocks.max.sm,"
              "clocks.max.mem,power.draw,power.limit,power.max_limit,temperature.gpu,"
              "memory.total,ecc.mode.current,persistence_mode,mig.mode.current")
    answer = command_output("nvidia-smi", "--query-gpu=" + fields, "--format=csv,noheader")
    values = [value.strip() for value in answer.splitlines()[0].split(",")] if answer else []
    meta = {
        "date": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        "python": sys.version.split()[0],
        "nvidia_smi": dict(zip(fields.split(","), values)),
        "nvcc": command_output("nvcc", "--version").splitlines()[-2:],
        "inputs": "normal random, weights N(0, 1/sqrt(fan_in))",
        "timer": f"CUDA events around graph replays, median of {REPLAYS}",
    }
    try:
        import triton
        meta["triton"] = triton.__version__
    except ImportError:
        pass
    try:
        device = torch.cuda.get_device_properties(0)
        meta |= {
            "torch": torch.__version__,
            "toolkit": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(),
            "device": device.name,
            "sms": device.multi_processor_count,
            "memory_bytes": device.total_memory,
            "l2_bytes": getattr(device, "L2_cache_size", None),
            "capability": f"{device.major}.{device.minor}",
        }
    except Exception as problem:
        meta["torch_problem"] = str(problem)
    wanted = re.compile(r"^\s*(Clocks|Max Clocks|Applications Clocks|Graphics|SM|Memory|Video|"
                        r"Clocks Event Reasons|Clocks Throttle Reasons|.*(Slowdown|Power|Capping).*)"
                        r"\s*(:|$)")
    full = command_output("nvidia-smi", "-q", "-d", "CLOCK,POWER,PERFORMANCE")
    meta["nvidia_smi_q"] = [line.rstrip() for line in full.splitlines() if wanted.match(line)][:120]
    return meta


def main():
    if len(sys.argv) != 3 or sys.argv[1] != "meta":
        print("usage: rival_timing.py meta FILE.json", file=sys.stderr)
        return 2
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(metadata(), file, indent=1)
        file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
