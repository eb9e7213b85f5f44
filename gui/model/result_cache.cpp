#include <algorithm>
#include <filesystem>
#include <list>
#include <map>
#include <mutex>
#include <utility>

#include "gui/model/compute.h"

namespace fuseline::gui {

std::int64_t last_change(const std::string& path) {
  // Of the folder's files too: a folder keeps its time when one of its files is rewritten.
  std::error_code error;
  auto latest = std::filesystem::last_write_time(path, error);
  if (error) return 0;
  for (std::filesystem::directory_iterator at(path, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code gone;
    const auto changed = at->last_write_time(gone);
    if (!gone) latest = std::max(latest, changed);
  }
  return latest.time_since_epoch().count();
}

struct ResultCache::Contents {
  using Entry = std::pair<std::string, std::shared_ptr<const RunResult>>;
  std::size_t capacity = 0;
  mutable std::mutex mutex;
  std::list<Entry> entries;  // most recent first
  std::map<std::string, std::list<Entry>::iterator> by_key;
  std::map<std::string, std::pair<std::int64_t, std::shared_ptr<const Measurements>>> measured;

  void keep(std::size_t most) {
    while (entries.size() > most) {
      by_key.erase(entries.back().first);
      entries.pop_back();
    }
  }
};

ResultCache::ResultCache(std::size_t capacity) : contents_(std::make_unique<Contents>()) {
  contents_->capacity = capacity;
}
ResultCache::~ResultCache() = default;

std::shared_ptr<const RunResult> ResultCache::find(const std::string& key) {
  Contents& c = *contents_;
  const std::lock_guard lock(c.mutex);
  const auto found = c.by_key.find(key);
  if (found == c.by_key.end()) return nullptr;
  c.entries.splice(c.entries.begin(), c.entries, found->second);
  return found->second->second;
}

void ResultCache::store(const std::string& key, std::shared_ptr<const RunResult> result) {
  Contents& c = *contents_;
  const std::lock_guard lock(c.mutex);
  if (const auto found = c.by_key.find(key); found != c.by_key.end()) {
    c.entries.erase(found->second);
    c.by_key.erase(found);
  }
  c.entries.emplace_front(key, std::move(result));
  c.by_key[key] = c.entries.begin();
  c.keep(c.capacity);
}

void ResultCache::keep_latest(std::size_t most) {
  const std::lock_guard lock(contents_->mutex);
  contents_->keep(most);
}

void ResultCache::clear() {
  const std::lock_guard lock(contents_->mutex);
  contents_->entries.clear();
  contents_->by_key.clear();
  contents_->measured.clear();
}

std::size_t ResultCache::size() const {
  const std::lock_guard lock(contents_->mutex);
  return contents_->entries.size();
}

std::shared_ptr<const Measurements> ResultCache::measurements(const std::string& path) {
  Contents& c = *contents_;
  const std::int64_t changed = last_change(path);
  const std::lock_guard lock(c.mutex);
  auto& [time, measured] = c.measured[path];
  if (measured == nullptr || time != changed) {
    measured = std::make_shared<const Measurements>(load_measurements(path));
    time = changed;
  }
  return measured;
}

}  // namespace fuseline::gui
