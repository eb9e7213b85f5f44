// What `fuseline measure --format lines` prints while it measures, one JSON object a line, so that
// another program can show it meanwhile and keep it: this end of a pipe and the other.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/measured/measurement.h"

namespace fuseline {

// {"progress": "coda: timing", "done": 0.42}
std::string progress_line(const std::string& what, double done);
// {"block": {"execution": "coda", ..., "ms_median": 1.2}}: what is known of it so far; a later line
// of the same block takes its place.
std::string block_line(const MeasuredBlock& block);
// {"file": "block.csv", "text": "..."}, a line each file of the measurement folder.
std::string file_lines(const Measurements& measurements);
// {"end": "done"}, or {"end": "failed", "text": "..."}
std::string end_line(bool passed, const std::string& text);

// What came out of the pipe so far.
struct Measuring {
  std::string what;  // is being done
  double done = 0;   // 0 to 1
  std::vector<MeasuredBlock> blocks;
  std::map<std::string, std::string> files;
  std::optional<bool> passed;      // once it has ended
  std::string text;                // why it failed
  std::vector<std::string> other;  // lines that are none of ours: what a shell or a login says
};

class MeasuringReader {
 public:
  // Bytes as they come, whole lines or not. True when `seen()` has changed.
  bool feed(std::string_view bytes);
  void end();  // what is left is a line
  [[nodiscard]] const Measuring& seen() const { return seen_; }

 private:
  bool take(std::string_view line);

  std::string rest_;
  Measuring seen_;
};

// The files as a measurement folder, which is there whole or not at all, and read like any other.
// InputError: they are none, or `folder` is there already.
void keep_measured(const Measuring& measuring, const std::filesystem::path& folder);

}  // namespace fuseline
