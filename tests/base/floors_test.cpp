// Folders are floors and arrows go one way (docs/architecture.md): what a file may include follows
// from the folder in which it lies.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace {

namespace fs = std::filesystem;

struct Room {
  std::string_view folder;
  std::vector<std::string_view> below;  // rooms whose headers it may include, besides its own
};

// From the ground up. A room of a folder that has rooms of its own is the longest name that fits.
const std::vector<Room>& rooms() {
  static const std::vector<Room> all{
      {"base", {}},
      {"model", {"base"}},
      {"model/instructions", {"base", "model"}},
      {"sim/gpu", {"base", "model"}},
      {"sim/memory", {"base", "model", "sim/gpu"}},
      {"sim/kernels", {"base", "model", "sim/gpu", "sim/memory"}},
      {"sim/block", {"base", "model", "sim/gpu", "sim/memory", "sim/kernels"}},
      {"sim/motion", {"base", "model", "sim/gpu", "sim/memory", "sim/kernels", "sim/block"}},
      {"sim/executor", {"base", "model", "sim/gpu", "sim/memory", "sim/kernels", "sim/block"}},
      {"sim/instructions",
       {"base", "model", "sim/gpu", "sim/memory", "sim/kernels", "sim/block", "sim/executor"}},
      {"sim/programs",
       {"base", "model", "sim/gpu", "sim/memory", "sim/kernels", "sim/block", "sim/executor",
        "sim/sure"}},
      {"sim/training", {"base", "model", "sim/gpu", "sim/executor"}},
      {"sim/measured", {"base", "model"}},
      {"sim/sure", {"base", "model", "sim/gpu", "sim/memory", "sim/kernels", "sim/block"}},
      {"sim/judge",
       {"base", "model", "sim/gpu", "sim/memory", "sim/kernels", "sim/block", "sim/measured",
        "sim/sure"}},
      {"sim/draw", {"base"}},
      {"sim/ranks", {"base"}},
      {"sim/report",
       {"sim/draw", "base", "model", "sim/gpu", "sim/memory", "sim/kernels", "sim/block",
        "sim/measured", "sim/judge", "sim/sure"}},
      {"sim/verdict",
       {"base", "model", "sim/gpu", "sim/memory", "sim/kernels", "sim/block", "sim/measured",
        "sim/sure", "sim/report"}},
      {"sim/nests", {"sim/draw", "base", "model", "sim/memory", "sim/block", "sim/report"}},
      {"sim/search",
       {"sim/draw", "base", "model", "sim/gpu", "sim/memory", "sim/kernels", "sim/block",
        "sim/executor", "sim/sure", "sim/report", "sim/verdict"}},
      {"sim/selection",
       {"base", "model", "sim/gpu", "sim/block", "sim/executor", "sim/measured", "sim/judge",
        "sim/sure", "sim/report", "sim/verdict", "sim/search"}},
      {"sim/traces", {"base", "model", "sim/gpu", "sim/block", "sim/measured", "sim/selection"}},
      {"lab", {"base", "model", "sim"}},
      {"cuda", {"base", "model", "sim"}},
      {"gui/model", {"base", "model", "sim", "cuda/emit", "cuda/compile"}},
      {"gui/widgets", {"base", "model", "sim", "gui/model"}},
      {"gui/bench", {"gui/model", "gui/widgets"}},
      {"python", {"base", "model", "sim"}},
      {"cli", {"base", "model", "sim", "lab", "cuda"}},
  };
  return all;
}

bool lies_in(std::string_view path, std::string_view folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

const Room* room_of(std::string_view path) {
  const Room* found = nullptr;
  for (const Room& room : rooms())
    if (lies_in(path, room.folder) &&
        (found == nullptr || room.folder.size() > found->folder.size()))
      found = &room;
  return found;
}

// The project's own headers that the file includes.
std::vector<std::string> included(const fs::path& file) {
  std::vector<std::string> paths;
  std::ifstream in(file);
  constexpr std::string_view begin = "#include \"";
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(begin)) continue;
    paths.push_back(line.substr(begin.size(), line.find('"', begin.size()) - begin.size()));
  }
  return paths;
}

// Why the file may not include the header, or nothing.
std::string crossing(const std::string& file, const std::string& header) {
  const Room* from = room_of(file);
  if (from == nullptr) return file + " lies in no room of tests/base/floors_test.cpp";
  if (header.find('/') == std::string::npos) return "";  // beside the file, or made by the build
  if (lies_in(header, from->folder)) return "";
  const bool allowed = std::ranges::any_of(
      from->below, [&](std::string_view folder) { return lies_in(header, folder); });
  return allowed ? "" : file + " includes " + header + ", which is not below it";
}

TEST(Floors, NoIncludeCrossesAFloor) {
  const fs::path root = FUSELINE_SOURCE_DIR;
  std::size_t files = 0;
  for (const char* layer : {"base", "model", "sim", "lab", "cuda", "cli", "gui", "python"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / layer)) {
      const std::string extension = entry.path().extension();
      if (extension != ".h" && extension != ".cpp") continue;
      const std::string file = fs::relative(entry.path(), root);
      if (file.starts_with("lab/harness/")) continue;  // compiled beside a student's answer
      ++files;
      for (const std::string& header : included(entry.path()))
        EXPECT_EQ(crossing(file, header), "");
    }
  }
  EXPECT_GT(files, 500U);
}

TEST(Floors, RefusesAnIncludeFromBelow) {
  EXPECT_EQ(crossing("base/csv.cpp", "base/error.h"), "");
  EXPECT_NE(crossing("base/csv.cpp", "model/graph.h"), "");
  EXPECT_NE(crossing("sim/gpu/gpu.cpp", "sim/block/estimate.h"), "");
  EXPECT_NE(crossing("sim/measured/measurement.cpp", "sim/judge/validation.h"), "");
  EXPECT_NE(crossing("model/graph.cpp", "gui/model/document.h"), "");
  EXPECT_NE(crossing("elsewhere/a.cpp", "base/error.h"), "");
}

}  // namespace
