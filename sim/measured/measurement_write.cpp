#include "sim/measured/measurement_write.h"

#include <algorithm>
#include <array>
#include <system_error>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/error.h"
#include "base/output_file.h"
#include "base/output_folder.h"
#include "base/path_kind.h"
#include "sim/measured/measurement_table.h"

namespace fuseline {

namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 4> kTables = {"block.csv", "rivals.csv", "kernels.csv",
                                                "gemm.csv"};
constexpr const char* kMeta = "meta.toml";

[[noreturn]] void refuse(const fs::path& folder, const std::string& message,
                         const std::string& allowed) {
  throw InputError({.file = folder.string(), .message = message, .allowed = allowed});
}

// "results/" is the folder "results".
fs::path without_slash(const fs::path& folder) {
  return folder.has_filename() ? folder : folder.parent_path();
}

// Columns that the writer does not know would be lost.
void check_columns(const fs::path& path) {
  if (kind_of_path(path) == PathKind::missing) return;
  const std::vector<std::string> known = measurement_columns(path.filename().string());
  const CsvTable csv(path.string());
  for (const std::string& column : csv.columns()) {
    if (std::find(known.begin(), known.end(), column) != known.end()) continue;
    throw InputError({.file = path.string(),
                      .field = column,
                      .message = "the column would be lost when the folder is extended",
                      .allowed = fmt::format("{}", fmt::join(known, ", ")),
                      .line = 1});
  }
}

void check_existing(const fs::path& folder, ExistingFolder existing) {
  const PathKind kind = kind_of_path(folder);
  if (kind == PathKind::missing) return;
  if (kind != PathKind::folder) refuse(folder, "is a file", "a folder");
  if (existing == ExistingFolder::refuse) {
    refuse(folder, "the folder is already there", "a folder that does not exist yet");
  }
  if (existing == ExistingFolder::extend) {
    for (const char* name : kTables) check_columns(folder / name);
    return;
  }
  for (const fs::path& entry : folder_entries(folder)) {
    const std::string name = entry.filename().string();
    if (name == kMeta || std::find(kTables.begin(), kTables.end(), name) != kTables.end()) continue;
    throw InputError({.file = folder.string(),
                      .value = name,
                      .message = "the folder holds more than a measurement",
                      .allowed = fmt::format("{}, {}", fmt::join(kTables, ", "), kMeta)});
  }
}

std::string swept_in(const MeasurementMeta& meta) {
  return meta.raster_clusters ? std::to_string(*meta.raster_clusters) : "as the tool chooses";
}

std::string launched_in(const MeasurementMeta& meta) {
  return meta.launches.empty() ? "one behind the other" : meta.launches;
}

// One meta.toml speaks for all numbers of a folder.
void check_same_source(const fs::path& folder, const MeasurementMeta& old,
                       const MeasurementMeta& added) {
  struct Field {
    const char* name;
    const std::string &before, &now;
  };
  const std::string groups_before = swept_in(old), groups_now = swept_in(added);
  const std::string launches_before = launched_in(old), launches_now = launched_in(added);
  for (const Field& f :
       {Field{"raster_clusters", groups_before, groups_now},
        Field{"launches", launches_before, launches_now}, Field{"gpu", old.gpu, added.gpu},
        Field{"device", old.device, added.device}, Field{"driver", old.driver, added.driver},
        Field{"toolkit", old.toolkit, added.toolkit},
        Field{"framework", old.framework, added.framework}}) {
    if (f.before.empty() || f.now.empty() || f.before == f.now) continue;
    throw InputError({.file = (folder / "meta.toml").string(),
                      .field = f.name,
                      .value = f.now,
                      .message = "the folder's measurements come from elsewhere",
                      .allowed = f.before + ", or a folder of its own"});
  }
}

template <class Item, class Same>
void put(std::vector<Item>& items, const Item& item, Same same) {
  const auto found =
      std::find_if(items.begin(), items.end(), [&](const Item& old) { return same(old, item); });
  if (found == items.end()) {
    items.push_back(item);
  } else {
    *found = item;
  }
}

// "2026-11-20" and "2026-11-21" → "2026-11-20; 2026-11-21": both tell where numbers come from.
std::string joined(const std::string& before, const std::string& now, const std::string& between) {
  const std::string all = between + before + between;
  if (now.empty() || all.find(between + now + between) != std::string::npos) return before;
  return before.empty() ? now : before + between + now;
}

}  // namespace

Measurements merged(Measurements base, const Measurements& added) {
  const auto same = [](const auto& a, const auto& b) { return same_case(a.block, b.block); };
  for (const MeasuredBlock& block : added.blocks) put(base.blocks, block, same);
  for (const MeasuredBlock& rival : added.rivals) put(base.rivals, rival, same);
  for (const MeasuredTrace& trace : added.traces) put(base.traces, trace, same);
  for (const MeasuredGemm& gemm : added.gemms) {
    put(base.gemms, gemm,
        [](const auto& a, const auto& b) { return a.m == b.m && a.n == b.n && a.k == b.k; });
  }
  MeasurementMeta& meta = base.meta;
  const MeasurementMeta& more = added.meta;
  for (std::string MeasurementMeta::*field :
       {&MeasurementMeta::title, &MeasurementMeta::gpu, &MeasurementMeta::device,
        &MeasurementMeta::driver, &MeasurementMeta::toolkit, &MeasurementMeta::framework}) {
    if ((meta.*field).empty()) meta.*field = more.*field;
  }
  for (std::string MeasurementMeta::*field :
       {&MeasurementMeta::date, &MeasurementMeta::clocks, &MeasurementMeta::version,
        &MeasurementMeta::counters}) {
    meta.*field = joined(meta.*field, more.*field, "; ");
  }
  meta.command = joined(meta.command, more.command, "\n");
  for (const std::string& note : more.notes) {
    put(meta.notes, note, [](const auto& a, const auto& b) { return a == b; });
  }
  return base;
}

void check_measurement_folder(const fs::path& folder, ExistingFolder existing) {
  const fs::path path = without_slash(folder);
  if (path.empty()) refuse(folder, "is empty", "a folder's name");
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (kind_of_path(parent) != PathKind::folder) {
    refuse(path, "the folder around it does not exist", "a name in a folder that exists");
  }
  check_existing(path, existing);
  const OutputFolder trial(path);
}

void write_measurements(const fs::path& folder, const Measurements& measurements,
                        ExistingFolder existing) {
  if (measurements.blocks.empty() && measurements.traces.empty() && measurements.gemms.empty()) {
    refuse(folder, "there is nothing to write", "at least one block, kernel trace or GEMM");
  }
  check_measurement_folder(folder, existing);
  const fs::path path = without_slash(folder);
  OutputFolder draft(path);
  Measurements all = measurements;
  if (existing == ExistingFolder::extend && kind_of_path(path) == PathKind::folder) {
    const Measurements old = load_measurements(path.string());
    check_same_source(path, old.meta, measurements.meta);
    all = merged(old, measurements);
    // A link stays a link: what it leads to may be the folder itself.
    const auto how = fs::copy_options::recursive | fs::copy_options::copy_symlinks;
    std::error_code error;
    fs::copy(end_of_links(path), draft.path(), how, error);
    if (error) refuse(path, "cannot be copied: " + error.message(), "a folder that can be read");
  }
  if (!all.blocks.empty()) replace_file(draft.path() / "block.csv", blocks_csv(all.blocks));
  if (!all.rivals.empty()) replace_file(draft.path() / "rivals.csv", blocks_csv(all.rivals));
  if (!all.traces.empty()) replace_file(draft.path() / "kernels.csv", kernels_csv(all.traces));
  if (!all.gemms.empty()) replace_file(draft.path() / "gemm.csv", gemms_csv(all.gemms));
  const std::string meta = meta_toml(all.meta);
  if (!meta.empty()) replace_file(draft.path() / "meta.toml", meta);
  try {
    load_measurements(draft.path().string());
  } catch (const InputError& problem) {
    // The system may refuse to open what it has just written; that is no mistake of the text.
    if (problem.problem().message.starts_with("cannot be read"))
      throw MissingError(std::string("what was written cannot be read again: ") + problem.what());
    throw InternalError(std::string("a measurement was written that cannot be read: ") +
                        problem.what());
  }
  draft.take_place();
}

}  // namespace fuseline
