#include "gui/model/read_once.h"

#include <filesystem>
#include <map>
#include <mutex>
#include <utility>

#include "base/data_dir.h"
#include "base/data_files.h"

namespace fuseline::gui {

namespace {

template <class File>
class ReadOnce {
 public:
  // `load` for a shipped name that is not known yet, and for each path.
  template <class Load>
  File get(const std::string& name_or_path, const Load& load) {
    if (looks_like_path(name_or_path)) return load(name_or_path);
    const std::string key = std::filesystem::absolute(data_dir()).string() + "\n" + name_or_path;
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = by_name_.find(key); found != by_name_.end()) return found->second;
    }
    File file = load(name_or_path);
    const std::lock_guard lock(mutex_);
    return by_name_.insert_or_assign(key, std::move(file)).first->second;
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    by_name_.clear();
  }

 private:
  std::mutex mutex_;
  std::map<std::string, File> by_name_;
};

ReadOnce<Gpu>& read_gpus() {
  static ReadOnce<Gpu> all;
  return all;
}
ReadOnce<ModelConfig>& read_models() {
  static ReadOnce<ModelConfig> all;
  return all;
}

}  // namespace

// A click asks for the GPU several times on the window's thread, and each prediction for the model.
Gpu gpu_read_once(const std::string& name_or_path) {
  return read_gpus().get(name_or_path, [](const std::string& name) { return load_gpu(name); });
}

ModelConfig model_read_once(const std::string& name_or_path) {
  return read_models().get(name_or_path, [](const std::string& name) { return load_model(name); });
}

void read_files_again() {
  read_gpus().forget();
  read_models().forget();
}

}  // namespace fuseline::gui
