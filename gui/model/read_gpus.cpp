#include "gui/model/read_gpus.h"

#include <filesystem>
#include <map>
#include <mutex>
#include <utility>

#include "base/data_dir.h"
#include "base/data_files.h"

namespace fuseline::gui {

namespace {

struct ReadGpus {
  std::mutex mutex;
  std::map<std::string, Gpu> by_name;
};
ReadGpus& read_gpus() {
  static ReadGpus all;
  return all;
}

}  // namespace

// A click asks for the GPU several times on the window's thread.
Gpu gpu_read_once(const std::string& name_or_path) {
  if (looks_like_path(name_or_path)) return load_gpu(name_or_path);
  const std::string key = std::filesystem::absolute(data_dir()).string() + "\n" + name_or_path;
  ReadGpus& known = read_gpus();
  {
    const std::lock_guard lock(known.mutex);
    if (const auto found = known.by_name.find(key); found != known.by_name.end())
      return found->second;
  }
  Gpu gpu = load_gpu(name_or_path);
  const std::lock_guard lock(known.mutex);
  return known.by_name.insert_or_assign(key, std::move(gpu)).first->second;
}

void read_gpus_again() {
  const std::lock_guard lock(read_gpus().mutex);
  read_gpus().by_name.clear();
}

}  // namespace fuseline::gui
