#include "gui/model/hardware_constants.h"

#include <algorithm>
#include <map>
#include <utility>

namespace fuseline::gui {

namespace {

constexpr const char* kFitted = "calibration.";

std::string readable(const std::string& key) {
  static const std::map<std::string, std::string> names = {
      {"sm_count", "SMs"},
      {"sm_clock_boost", "SM clock, boost"},
      {"sm_clock_base", "SM clock, base"},
      {"tensor_clock", "clock that tensor rates are quoted at"},
      {"tensor_bf16_dense", "tensor rate bf16"},
      {"tensor_fp16_dense", "tensor rate fp16"},
      {"tensor_fp8_dense", "tensor rate fp8"},
      {"tensor_int8_dense", "tensor rate int8"},
      {"fp32_vector", "vector rate fp32"},
      {"hbm_capacity", "HBM capacity"},
      {"hbm_bandwidth", "HBM bandwidth"},
      {"hbm_bandwidth_sustained", "HBM bandwidth, sustained"},
      {"l2_capacity", "L2 capacity"},
      {"l2_partitions", "L2 partitions"},
      {"l2_bandwidth", "L2 bandwidth"},
      {"smem_per_sm", "shared memory of an SM"},
      {"smem_per_block_max", "shared memory of a thread block, most"},
      {"smem_bandwidth_per_sm", "shared-memory bandwidth of an SM"},
      {"register_file_per_sm", "registers of an SM"},
      {"max_threads_per_sm", "threads of an SM, most"},
      {"tdp", "power limit"},
      {"tiny_kernel_graph", "an empty kernel in a CUDA graph"}};
  const auto found = names.find(key);
  return found == names.end() ? key : found->second;
}

// Splits "4800 GB/s (source, which may hold commas, 2023-11, datasheet)".
HardwareConstant parse(const std::string& key, const std::string& text) {
  HardwareConstant c;
  c.key = key;
  c.name = key.starts_with(kFitted) ? key.substr(std::string(kFitted).size()) : readable(key);
  const std::size_t open = text.find(" (");
  const std::string number = text.substr(0, open);
  const std::size_t space = number.find(' ');
  c.value = number.substr(0, space);
  if (space != std::string::npos) c.unit = number.substr(space + 1);
  if (c.unit == "1") c.unit.clear();
  if (open == std::string::npos) return c;
  std::string inside = text.substr(open + 2);
  if (!inside.empty() && inside.back() == ')') inside.pop_back();
  const auto take_last = [&inside] {
    const std::size_t comma = inside.rfind(", ");
    std::string part = comma == std::string::npos ? "" : inside.substr(comma + 2);
    if (comma != std::string::npos) inside.resize(comma);
    return part;
  };
  c.status = take_last();
  c.date = take_last();
  c.source = inside;
  return c;
}

}  // namespace

std::vector<HardwareConstant> hardware_constants(const Gpu& gpu) {
  std::vector<HardwareConstant> all;
  for (const auto& [key, text] : gpu.sources) all.push_back(parse(key, text));
  std::stable_partition(all.begin(), all.end(),
                        [](const HardwareConstant& c) { return !c.key.starts_with(kFitted); });
  return all;
}

std::string details_text(const HardwareConstant& c) {
  return c.name + " " + c.value + (c.unit.empty() ? "" : " " + c.unit) + ": " + c.source + ", " +
         c.date + " (" + c.status + ")";
}

}  // namespace fuseline::gui
