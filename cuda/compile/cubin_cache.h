// Compiled kernels on disk, keyed by everything that their code depends on: source, device headers,
// options, toolkit. A file that is damaged, or belongs to another key, counts as absent.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace fuseline::cuda {

class CubinCache {
 public:
  // Makes the folder when something is stored. Files used longest ago go when the sum of sizes
  // passes the bound.
  CubinCache(std::filesystem::path folder, Bytes bound);

  // $FUSELINE_CACHE_DIR, else $XDG_CACHE_HOME/fuseline, else ~/.cache/fuseline, else a folder of
  // the system's temporary files; 256 MiB.
  static CubinCache standard();

  [[nodiscard]] std::optional<std::vector<char>> find(std::string_view key) const;
  // Written beside its place and renamed, so no reader sees half a file. A cache that cannot be
  // written to is no error: nothing is kept.
  void store(std::string_view key, const std::vector<char>& cubin) const;
  [[nodiscard]] std::filesystem::path file_of(std::string_view key) const;
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

 private:
  void shrink() const;

  std::filesystem::path folder_;
  Bytes bound_;
};

}  // namespace fuseline::cuda
