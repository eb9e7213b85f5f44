// Calibration of the GPU at hand: what is measured, in which order, and what is fitted and checked.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "model/config/config.h"
#include "sim/gpu/gpu.h"
#include "sim/judge/fit.h"
#include "sim/measured/measurement.h"

namespace fuseline {

// One block, under policies that take turns.
struct HereStep {
  std::string what;  // what it tells of: "streams and products of 4,096 rows"
  std::string model;
  Workload workload;
  std::vector<std::string> policies;
  Seconds expected;       // about what it takes on an H200, compilation included
  bool kept_out = false;  // nothing is fitted to it: it checks the fit
};

// In the order in which they are measured: each few steps can be fitted to and checked, so that a
// short time gives a rough calibration, and a long one a good one.
std::vector<HereStep> here_steps();

// Who measures: the GPU here, or a stand-in.
class Measurer {
 public:
  virtual ~Measurer() = default;
  virtual Measurements measure(const HereStep& step) = 0;
};

struct HereOptions {
  Seconds budget{600};             // of measuring; what was measured before costs nothing
  int iterations = 5;              // of the fit
  std::function<Seconds()> clock;  // since any moment
  std::string date;                // "2026-11-24"
  // What is being done, and the share of the whole.
  std::function<void(const std::string&, double)> progress{};
};

// Errors of block times, |predicted / measured - 1|.
struct HereError {
  std::int64_t blocks = 0;
  double mean = 0, worst = 0;
};

struct HereResult {
  std::vector<std::string>
      left_out;              // steps that the budget did not allow, or that failed, and why
  std::size_t measured = 0;  // steps in the folder now
  FitResult fit;
  HereError before,
      after;       // of the blocks that were kept out, by the described and fitted constants
  GpuCheck check;  // of those that the GPU's new file has

  // Else the new file keeps the described constants, and says how far off these are.
  [[nodiscard]] bool fit_is_taken() const { return after.mean <= before.mean; }
};

// Measures into `folder` step by step; steps whose cases are there already are not measured again,
// so that an interrupted calibration goes on. Then fits to the steps that are not kept out, and
// checks on the others. InputError: the folder holds measurements of another GPU; too little was
// measured to fit to and to check on. Whatever the measurer throws but MissingError of one step.
HereResult calibrate_here(const Gpu& described, const std::filesystem::path& folder,
                          Measurer& measurer, const HereOptions& options);

// The text of a GPU file like `text`, under that name, with the check in place of its [[checked]]
// and, where the fit is taken, the fitted constants in place of its [calibration]. InputError:
// `text` is no GPU file.
std::string calibrated_file(const std::string& text, const std::string& name,
                            const HereResult& result, const std::string& source,
                            const std::string& date);

}  // namespace fuseline
