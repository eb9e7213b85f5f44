#include "sim/gpu/architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <system_error>
#include <utility>

#include "base/data_dir.h"
#include "base/data_files.h"
#include "base/error.h"
#include "base/path_kind.h"
#include "base/toml_file.h"
#include "sim/gpu/constant_table.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;

constexpr std::array kFeatures = {Feature::mma_sync, Feature::wgmma,         Feature::bulk_copy,
                                  Feature::clusters, Feature::tensor_memory, Feature::mfma};
// No constant of any unit is larger, so that times stay finite.
constexpr double kMost = 1e6;
constexpr double kLeastPositive = 1e-6;
constexpr std::int64_t kMostGroupRows = std::int64_t{1} << 24;
constexpr std::int64_t kLargestEdge = 4096;
constexpr std::int64_t kMostStages = 64;
constexpr std::int64_t kLargestCluster = 16;
constexpr std::int64_t kMostTailParts = 64;
constexpr std::int64_t kMostSplits = 1024;

ConstantOrigin read_constant(const TomlTable& number, const ConstantInfo& constant,
                             const std::string& architecture) {
  ConstantOrigin origin;
  origin.number = read_provenance(
      number, {"datasheet", "microbenchmark", "derived", "fitted", "assumed"}, {"least", "most"});
  origin.file = architecture;
  origin.first_status = origin.number.status;
  if (origin.number.unit != constant.unit) {
    number.fail("unit", fmt::format("is the wrong unit for {}", constant.name), constant.unit);
  }
  const double floor = constant.zero == Zero::refused ? kLeastPositive : 0;
  origin.least = number.real("least", {floor, kMost});
  origin.most = number.real("most", {origin.least, kMost});
  origin.number.value = number.real("value", {origin.least, origin.most});
  if (is_whole(constant)) {
    for (const char* key : {"value", "least", "most"}) {
      static_cast<void>(number.whole(key, {0, static_cast<std::int64_t>(kMost)}));
    }
  }
  return origin;
}

// Sections [constants.gemm] with a constant a line.
void read_constants_of(const TomlTable& table, Architecture& architecture) {
  for (const std::string& group : table.keys()) {
    const TomlTable section = table.table(group);
    for (const std::string& key : section.keys()) {
      const std::string name = fmt::format("{}.{}", group, key);
      const ConstantInfo* constant = find_constant(name);
      if (constant == nullptr) {
        const std::string nearest = nearest_name(name, constant_names());
        section.fail(key, "no constant of the hierarchy model has the name " + name,
                     "the names in sim/gpu/constant_table.cpp",
                     nearest.starts_with(group + ".") ? nearest.substr(group.size() + 1) : nearest);
      }
      architecture.origins[name] = read_constant(section.table(key), *constant, architecture.name);
      set_value(*constant, architecture.constants, architecture.origins[name].number.value);
    }
  }
}

GemmTile read_tile(const TomlTable& entry) {
  GemmTile tile;
  tile.m = entry.whole("m", {1, kLargestEdge});
  tile.n = entry.whole("n", {1, kLargestEdge});
  tile.k = entry.whole("k", {1, kLargestEdge});
  tile.stages = entry.whole("stages", {1, kMostStages});
  tile.cluster_m = entry.whole_or("cluster_m", {1, kLargestCluster}, 1);
  tile.cluster_n = entry.whole_or("cluster_n", {1, kLargestCluster}, 1);
  tile.cluster_k = entry.whole_or("cluster_k", {1, kLargestCluster}, 1);
  tile.tail_parts = entry.whole_or("tail_parts", {1, kMostTailParts}, 1);
  return tile;
}

std::vector<GemmTile> read_tiles(const TomlTable& menu, const char* key) {
  std::vector<GemmTile> tiles;
  for (const TomlTable& entry : menu.tables(key)) {
    entry.refuse_other_keys(
        {"m", "n", "k", "stages", "cluster_m", "cluster_n", "cluster_k", "tail_parts"});
    tiles.push_back(read_tile(entry));
  }
  if (tiles.empty()) menu.fail(key, "holds no tile", "a list of { m, n, k, stages }");
  return tiles;
}

std::vector<GroupedTile> read_grouped(const TomlTable& menu) {
  std::vector<GroupedTile> tiles;
  if (!menu.has("grouped")) return tiles;
  for (const TomlTable& entry : menu.tables("grouped")) {
    entry.refuse_other_keys({"m", "n", "k", "stages", "cluster_m", "cluster_n", "cluster_k",
                             "most_rows", "most_columns", "fetch_bytes_per_cycle",
                             "idle_fetch_bytes_per_cycle"});
    GemmTile tile = read_tile(entry);
    tile.fetch_bytes_per_cycle = entry.real_or("fetch_bytes_per_cycle", {0, 1000}, 0);
    tile.idle_fetch_bytes_per_cycle = entry.real_or("idle_fetch_bytes_per_cycle", {0, 1000}, 0);
    tiles.push_back({tile, entry.whole_or("most_rows", {0, kMostGroupRows}, 0),
                     entry.whole_or("most_columns", {0, kMostGroupRows}, 0)});
  }
  if (tiles.empty() || tiles.back().most_rows > 0 || tiles.back().most_columns > 0)
    menu.fail("grouped", "its last tile is not for all groups", "one without most_rows");
  return tiles;
}

TileMenu read_menu(const TomlTable& menu) {
  menu.refuse_other_keys({"splits", "library", "own", "grouped"});
  return {.library = read_tiles(menu, "library"),
          .own = read_tiles(menu, "own"),
          .grouped = read_grouped(menu),
          .splits = menu.wholes("splits", {1, kMostSplits})};
}

// The files between the one that was asked for and the one that is read now, by name and by path.
struct Heirs {
  std::set<std::string> names;
  std::set<fs::path> files;
};

fs::path file_of(const std::string& name_or_path) {
  return fs::weakly_canonical(find_data_file(name_or_path, {"architecture", "architectures"}));
}

std::shared_ptr<Architecture> load(const std::string& name_or_path, Heirs heirs);

// What the file does not say, from the one it inherits from.
Architecture inherited(const TomlTable& table, const Heirs& heirs) {
  if (!table.has("inherits")) return {};
  const std::string parent = architecture_of_field(table, "inherits");
  if (heirs.names.contains(parent) || heirs.files.contains(file_of(parent))) {
    table.fail("inherits", "the files inherit from each other in a circle",
               "an architecture that does not inherit from this one");
  }
  Architecture base = *load(parent, heirs);
  base.inherits = base.name;
  for (auto& [name, origin] : base.origins) origin.number.status = "inherited";
  return base;
}

std::shared_ptr<Architecture> load(const std::string& name_or_path, Heirs heirs) {
  const TomlTable table =
      TomlTable::load(find_data_file(name_or_path, {"architecture", "architectures"}));
  table.refuse_other_keys(
      {"name", "title", "inherits", "compute_capabilities", "features", "constants", "tiles"});
  const std::string name = table.text("name");
  if (!heirs.names.insert(name).second) {
    table.fail("name", "an architecture that inherits from this one has the same name",
               "a name of its own, because sources are told apart by it");
  }
  heirs.files.insert(file_of(name_or_path));
  auto result = std::make_shared<Architecture>(inherited(table, heirs));
  result->name = name;
  result->title = table.text("title");
  result->compute_capabilities = table.texts("compute_capabilities");
  std::vector<std::string> words;
  for (const Feature feature : kFeatures) words.emplace_back(name_of(feature));
  result->features.clear();
  for (const std::string& word : table.words("features", words)) {
    const auto at = std::find(words.begin(), words.end(), word) - words.begin();
    result->features.insert(kFeatures[static_cast<std::size_t>(at)]);
  }
  if (table.has("constants")) read_constants_of(table.table("constants"), *result);
  for (const ConstantInfo& constant : constant_table()) {
    if (result->origins.contains(constant.name)) continue;
    throw InputError({.file = table.file(),
                      .field = fmt::format("constants.{}", constant.name),
                      .message = "the constant is missing",
                      .allowed = fmt::format("{{ value, unit, least, most, source, date, status }} "
                                             "in {}, or inherits = an architecture that has it",
                                             constant.unit)});
  }
  if (table.has("tiles")) {
    result->tiles = read_menu(table.table("tiles"));
  } else if (result->inherits.empty()) {
    table.fail("tiles", "is missing", "[tiles] with splits, library and own");
  }
  return result;
}

// A shipped architecture as it was read, and the files that it came from, parents included.
struct ReadArchitecture {
  std::vector<std::pair<fs::path, fs::file_time_type>> files;
  std::shared_ptr<const Architecture> read;

  [[nodiscard]] bool is_current() const {
    return read != nullptr && std::ranges::all_of(files, [](const auto& file) {
             std::error_code gone;
             return fs::last_write_time(file.first, gone) == file.second && !gone;
           });
  }
};

ReadArchitecture read_with_files(const std::string& name) {
  ReadArchitecture out{.files = {}, .read = load(name, {})};
  const std::vector<std::string> shipped = architecture_names();
  std::string file = name;
  while (std::ranges::find(shipped, file) != shipped.end()) {
    const fs::path path = file_of(file);
    out.files.emplace_back(path, fs::last_write_time(path));
    file = load(file, {})->inherits;
  }
  return out;
}

// Every prediction asks for one, and reading it takes longer than a prediction: it is read again
// only after one of its files has changed.
std::shared_ptr<const Architecture> shipped_architecture(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, ReadArchitecture> known;
  const std::string key = fs::absolute(data_dir()).string() + "\n" + name;
  const std::lock_guard lock(mutex);
  ReadArchitecture& architecture = known[key];
  if (!architecture.is_current()) architecture = read_with_files(name);
  return architecture.read;
}

}  // namespace

const char* name_of(Feature feature) {
  switch (feature) {
    case Feature::mma_sync:
      return "mma_sync";
    case Feature::wgmma:
      return "wgmma";
    case Feature::bulk_copy:
      return "bulk_copy";
    case Feature::clusters:
      return "clusters";
    case Feature::tensor_memory:
      return "tensor_memory";
    case Feature::mfma:
      return "mfma";
  }
  FUSELINE_ASSERT(false, "feature");
}

std::shared_ptr<const Architecture> load_architecture(const std::string& name_or_path) {
  // A path's parents may be anywhere.
  return looks_like_path(name_or_path) ? load(name_or_path, {})
                                       : shipped_architecture(name_or_path);
}

std::string architecture_of_field(const TomlTable& table, const std::string& key) {
  std::vector<std::string> names = architecture_names();
  const std::string allowed =
      fmt::format("{}, or a path that starts at the folder of this file", fmt::join(names, ", "));
  if (table.has(key) && !table.is_text(key)) table.fail(key, "is not a text in quotes", allowed);
  const std::string written = table.text(key);
  if (std::find(names.begin(), names.end(), written) != names.end()) return written;
  if (!looks_like_path(written))
    table.fail(key, "unknown architecture", allowed, nearest_name(written, names));
  const fs::path path = relative_to_file(written, table.file());
  const PathKind kind = kind_of_path(path);
  if (kind == PathKind::folder) table.fail(key, "is a folder", "a file, or " + allowed);
  if (kind == PathKind::missing) {
    // The file may be beside the one that is meant.
    const std::string folder = fs::path(written).parent_path().string();
    std::error_code unreadable;
    for (const fs::directory_entry& entry :
         fs::directory_iterator(path.parent_path().empty() ? "." : path.parent_path(), unreadable))
      if (entry.path().extension() == ".toml" && !fs::equivalent(entry, table.file(), unreadable))
        names.push_back((fs::path(folder) / entry.path().filename()).string());
    table.fail(key, "no such file", allowed, nearest_name(written, names));
  }
  return path.string();
}

std::vector<std::string> architecture_names() { return data_file_names("architectures"); }

}  // namespace fuseline
