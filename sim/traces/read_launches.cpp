#include <algorithm>
#include <charconv>
#include <fstream>

#include <fmt/format.h>

#include "base/data_files.h"
#include "base/error.h"
#include "base/gzip_text.h"
#include "base/path_kind.h"
#include "base/sqlite_file.h"
#include "sim/measured/nsight_csv.h"
#include "sim/measured/nsight_table.h"
#include "sim/traces/kineto_trace.h"
#include "sim/traces/launch_list.h"
#include "sim/traces/nsys_export.h"

namespace fuseline {

namespace {

constexpr Bytes kLargestTrace{std::int64_t{512} << 20};  // 512 MiB, packed or not
constexpr const char* kReadForms =
    "a Chrome trace of PyTorch's profiler (.json, .json.gz), nsys export --type sqlite, nsys stats "
    "--report cuda_gpu_trace --format csv, or ncu --csv --page raw";

std::string first_bytes(const std::string& path) {
  std::string bytes(16, '\0');
  if (kind_of_path(path) != PathKind::regular) return {};
  std::ifstream in(path, std::ios::binary);
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(in.gcount()));
  return bytes;
}

// Nsight Compute runs every kernel alone, so its times say nothing of when one began.
LaunchList from_nsight_compute(const std::string& path, const std::string& text) {
  const NsightReport report = read_nsight_csv(path, text);
  LaunchListMaker maker(path, "Nsight Compute");
  maker.list().in_place = false;
  maker.list().rounded = report.rounded;
  Seconds begin;
  for (const NsightKernel& k : report.kernels) {
    std::int32_t device = 0;
    std::from_chars(k.device.data(), k.device.data() + k.device.size(), device);
    maker.add({.name = k.kernel.kernel,
               .shape = {k.kernel.grid, k.kernel.block},
               .device = std::clamp(device, 0, 1023),
               .begin = begin,
               .duration = k.kernel.time,
               .counters = LaunchCounters{k.kernel.hbm_read, k.kernel.hbm_write, k.kernel.l2}},
              fmt::format("line {}", k.line));
    begin += k.kernel.time;
  }
  return maker.finish(kReadForms);
}

}  // namespace

LaunchList read_launches(const std::string& path) {
  if (is_sqlite(first_bytes(path))) return read_nsys_sqlite(path);
  std::string text = read_input_file(path, kLargestTrace);
  if (is_gzip(text)) text = gunzip(text, path, kLargestTrace);
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string::npos && (text[begin] == '{' || text[begin] == '['))
    return read_kineto_trace(path, text);
  if (path.ends_with(".nsys-rep") || path.ends_with(".qdrep") || path.ends_with(".ncu-rep")) {
    throw InputError({.file = path,
                      .message = "is a report in the tool's own form, which only the tool reads",
                      .allowed = path.ends_with(".ncu-rep")
                                     ? "what ncu --import FILE --csv --page raw prints"
                                     : "what nsys export --type sqlite FILE writes"});
  }
  if (holds_nsys_csv(text)) return read_nsys_csv(path, text);
  if (text.find("Kernel Name") != std::string::npos) return from_nsight_compute(path, text);
  throw InputError(
      {.file = path, .message = "is no trace that is read here", .allowed = kReadForms});
}

}  // namespace fuseline
