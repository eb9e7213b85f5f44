#include "sim/measured/measuring_lines.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/output_file.h"
#include "base/temporary_folder.h"
#include "sim/measured/measurement_table.h"
#include "sim/measured/measurement_write.h"

namespace fuseline {

namespace {

using nlohmann::json;

constexpr std::size_t kLongestMeasuringLine = 64 << 20;  // bytes
constexpr std::size_t kMostOtherLines = 200;
constexpr const char* kMeasuringFiles[] = {"block.csv", "rivals.csv", "kernels.csv", "gemm.csv",
                                           "meta.toml"};

std::string line_of(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

MeasuredBlock block_of(const json& j) {
  MeasuredBlock b;
  Workload& w = b.block.workload;
  b.block.model = j.at("model").get<std::string>();
  b.block.execution = j.at("execution").get<std::string>();
  const auto phase = j.at("phase").get<std::string>();
  w.phase = phase == name_of(Phase::decode)  ? Phase::decode
            : phase == name_of(Phase::train) ? Phase::train
                                             : Phase::forward;
  w.batch = j.at("batch").get<std::int64_t>();
  w.seq = j.at("seq").get<std::int64_t>();
  w.context = j.at("context").get<std::int64_t>();
  const auto time = [&j](const char* key) {
    const double ms = j.at(key).get<double>();
    if (!std::isfinite(ms) || ms <= 0) throw json::other_error::create(500, "no time", nullptr);
    return Seconds(ms / 1000);
  };
  b.time = {time("ms_median"), time("ms_min"), time("ms_max")};
  const auto bytes = [&j](const char* key) {
    return j.contains(key) ? std::optional(Bytes(j.at(key).get<std::int64_t>())) : std::nullopt;
  };
  b.hbm_read = bytes("hbm_read_bytes");
  b.hbm_write = bytes("hbm_write_bytes");
  b.l2 = bytes("l2_bytes");
  return b;
}

}  // namespace

std::string progress_line(const std::string& what, double done) {
  return line_of({{"progress", what}, {"done", done}});
}

std::string block_line(const MeasuredBlock& b) {
  const Workload& w = b.block.workload;
  json j = {{"model", b.block.model},
            {"execution", b.block.execution},
            {"phase", name_of(w.phase)},
            {"batch", w.batch},
            {"seq", w.seq},
            {"context", w.context},
            {"ms_median", b.time.median.value() * 1000},
            {"ms_min", b.time.least.value() * 1000},
            {"ms_max", b.time.most.value() * 1000}};
  if (b.hbm_read) j["hbm_read_bytes"] = b.hbm_read->value();
  if (b.hbm_write) j["hbm_write_bytes"] = b.hbm_write->value();
  if (b.l2) j["l2_bytes"] = b.l2->value();
  return line_of({{"block", std::move(j)}});
}

std::string file_lines(const Measurements& all) {
  std::string out;
  const auto add = [&out](const char* name, const std::string& text) {
    if (!text.empty()) out += line_of({{"file", name}, {"text", text}});
  };
  if (!all.blocks.empty()) add("block.csv", blocks_csv(all.blocks));
  if (!all.rivals.empty()) add("rivals.csv", blocks_csv(all.rivals));
  if (!all.traces.empty()) add("kernels.csv", kernels_csv(all.traces));
  if (!all.gemms.empty()) add("gemm.csv", gemms_csv(all.gemms));
  add("meta.toml", meta_toml(all.meta));
  return out;
}

std::string end_line(bool passed, const std::string& text) {
  json j = {{"end", passed ? "done" : "failed"}};
  if (!text.empty()) j["text"] = text;
  return line_of(j);
}

bool MeasuringReader::feed(std::string_view bytes) {
  bool changed = false;
  rest_ += bytes;
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string_view line(rest_.data() + begin, end - begin);
    changed = take(line) || changed;
  }
  rest_.erase(0, begin);
  if (rest_.size() > kLongestMeasuringLine)
    throw InputError({.message = "what is measured came as a line of more than 64 MiB"});
  return changed;
}

void MeasuringReader::end() {
  take(rest_);
  rest_.clear();
}

bool MeasuringReader::take(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.empty()) return false;
  const json j = json::parse(line, nullptr, false);
  try {
    if (j.is_object() && j.contains("progress")) {
      seen_.what = j.at("progress").get<std::string>();
      seen_.done = std::clamp(j.value("done", seen_.done), 0.0, 1.0);
      return true;
    }
    if (j.is_object() && j.contains("block")) {
      MeasuredBlock block = block_of(j.at("block"));
      const auto same = std::ranges::find_if(
          seen_.blocks, [&](const MeasuredBlock& b) { return same_case(b.block, block.block); });
      if (same == seen_.blocks.end())
        seen_.blocks.push_back(std::move(block));
      else
        *same = std::move(block);
      return true;
    }
    if (j.is_object() && j.contains("file")) {
      const auto name = j.at("file").get<std::string>();
      // Names of other files are none that a measurement has.
      if (std::ranges::find(kMeasuringFiles, name) == std::end(kMeasuringFiles)) return false;
      seen_.files[name] = j.at("text").get<std::string>();
      return true;
    }
    if (j.is_object() && j.contains("end")) {
      seen_.passed = j.at("end").get<std::string>() == "done";
      seen_.text = j.value("text", "");
      seen_.done = 1;
      return true;
    }
  } catch (const json::exception&) {
    // A line that only looks like one of ours is said as it is.
  }
  if (seen_.other.size() < kMostOtherLines) seen_.other.emplace_back(line.substr(0, 500));
  return true;
}

void keep_measured(const Measuring& measuring, const std::filesystem::path& folder) {
  if (measuring.files.empty())
    throw InputError(
        {.file = folder.string(),
         .message = "nothing was measured that could be kept",
         .allowed = "a program that prints the lines of fuseline measure --format lines"});
  const TemporaryFolder draft("fuseline-measured");
  for (const auto& [name, text] : measuring.files) replace_file(draft.path() / name, text);
  write_measurements(folder, load_measurements(draft.path().string()));
}

}  // namespace fuseline
