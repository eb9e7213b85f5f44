// Long work that Ctrl-C stops, as it stops Python's own.
#pragma once

#include <atomic>
#include <chrono>
#include <future>

#include <pybind11/pybind11.h>

namespace fuseline::python {

// `work(stop)` in a thread of its own, without Python's lock. On Ctrl-C `stop` becomes true, and
// KeyboardInterrupt follows when the work has ended.
template <class Work>
auto interruptible(Work&& work) {
  std::atomic<bool> stop{false};
  auto result = [&] {
    const pybind11::gil_scoped_release release;
    return std::async(std::launch::async, [&] { return work(stop); });
  }();
  bool interrupted = false;
  while (true) {
    {
      const pybind11::gil_scoped_release release;
      if (result.wait_for(std::chrono::milliseconds(20)) == std::future_status::ready) break;
    }
    if (!interrupted && PyErr_CheckSignals() != 0) {
      interrupted = true;
      stop = true;
    }
  }
  if (!interrupted) return result.get();
  try {
    (void)result.get();
  } catch (...) {
    // It was stopped in the middle, which is what was asked for.
  }
  throw pybind11::error_already_set();
}

}  // namespace fuseline::python
