// Traces as profilers write them, made of the launches of a measured block.
#pragma once

#include <string>
#include <vector>

#include "sim/measured/measurement.h"

namespace fuseline::test {

// One launch of a made trace; times in µs.
struct MadeLaunch {
  std::string name, grid = "(1, 1, 1)";
  double begin = 0, duration = 1;
};

// A model of `layers` equal blocks between an embedding and a head, run `times` times; launches
// follow each other after 1 µs. Run r takes 1 + r / 100 times as long, so that the median is known.
std::vector<MadeLaunch> model_run(const MeasuredTrace& block, int layers, int times);

// As torch.profiler writes it, with what it also holds.
std::string as_kineto(const std::vector<MadeLaunch>& launches);
// As `nsys stats` prints it.
std::string as_nsys_csv(const std::vector<MadeLaunch>& launches);
// As nsys exports it: the path of a file. Empty where python3 has no sqlite3 module.
std::string as_nsys_sqlite(const std::vector<MadeLaunch>& launches, const std::string& name);

}  // namespace fuseline::test
