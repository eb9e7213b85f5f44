// A GPU file with constants that were fitted on the GPU at hand.
#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/toml_file.h"
#include "base/toml_text.h"
#include "sim/gpu/constant_table.h"
#include "sim/gpu/gpu_file.h"
#include "sim/judge/here.h"
#include "sim/judge/refit.h"

namespace fuseline {

namespace {

bool begins_key(std::string_view line, std::string_view key) {
  return line.starts_with(key) && line.find_first_not_of(' ', key.size()) != line.npos &&
         line[line.find_first_not_of(' ', key.size())] == '=';
}

// The constants of the file's own [calibration] that the fit left alone stay.
ConstantValues constants_of(const Gpu& gpu, const ConstantValues& fitted) {
  ConstantValues all = fitted;
  for (const ConstantInfo& info : constant_table()) {
    const double value = value_of(info, gpu.constants);
    if (value != value_of(info, gpu.architecture->constants)) all.try_emplace(info.name, value);
  }
  return all;
}

std::string check_text(const GpuCheck& c) {
  const auto error = [](double fraction) {
    return fmt::format("{{ value = {:.2f}, unit = \"%\" }}", 100 * fraction);
  };
  return fmt::format(
      "\n[[checked]]\nmeasurements = {}\npolicies = {}\nblocks = {}\nmean_error = {}\n"
      "worst_error = {}\nsource = {}\ndate = {}\n",
      toml_text(c.measurements), toml_list(c.policies), c.blocks, error(c.mean_error),
      error(c.worst_error), toml_text(c.source), toml_text(c.date));
}

}  // namespace

std::string calibrated_file(const std::string& text, const std::string& name,
                            const HereResult& result, const std::string& source,
                            const std::string& date) {
  const Gpu gpu = read_gpu(TomlTable::parse(text, name));
  std::string out;
  bool top = true;       // before the first section
  bool dropped = false;  // in a section whose place another one takes
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with("[")) {
      top = false;
      dropped = (result.fit_is_taken() && line.starts_with("[calibration]")) ||
                line.starts_with("[[checked]]");
    }
    // Other names of the file that this one is like are that one's.
    if (dropped || (top && begins_key(line, "aliases"))) continue;
    if (top && begins_key(line, "name")) {
      out += "name = " + toml_text(name) + "\n";
    } else if (top && begins_key(line, "calibrated") && result.fit_is_taken()) {
      out += "calibrated = true\n";
    } else {
      out += std::string(line) + "\n";
    }
  }
  while (out.ends_with("\n\n")) out.pop_back();
  if (result.fit_is_taken())
    out += "\n" + calibration_toml(constants_of(gpu, result.fit.constants), source, date);
  out += check_text(result.check);
  static_cast<void>(read_gpu(TomlTable::parse(out, name)));  // what is written can be read
  return out;
}

}  // namespace fuseline
