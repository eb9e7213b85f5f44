#include "sim/kernels/walk_memo.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace fuseline {
namespace {

// An entry's own memory and its place in the table, about.
std::size_t memory_of(const WalkMemo::Words& key, const WalkMemo::Entry& entry) {
  constexpr std::size_t kNode = 64;
  return kNode + sizeof(WalkMemo::Entry) + key.size() * sizeof(key[0]) +
         entry.traffic.waves.size() * sizeof(GemmWave) + entry.missed.size() * sizeof(Bytes) +
         entry.tensors_after.size() * sizeof(std::uint32_t);
}

}  // namespace

std::size_t WalkMemo::Hash::operator()(const Words& words) const {
  std::uint64_t h = words.size();
  for (const std::uint64_t word : words) h = std::rotl((h ^ word) * 0x9E3779B97F4A7C15U, 29);
  return static_cast<std::size_t>(h);
}

WalkMemo& WalkMemo::shared() {
  static WalkMemo memo;
  return memo;
}

std::shared_ptr<const WalkMemo::Entry> WalkMemo::find(const Words& key) {
  const std::scoped_lock lock(mutex_);
  if (const auto found = newer_.entries.find(key); found != newer_.entries.end()) {
    ++found_;
    return found->second;
  }
  const auto found = older_.entries.find(key);
  if (found == older_.entries.end()) return nullptr;
  ++found_;
  const std::shared_ptr<const Entry> entry = found->second;
  keep(key, entry);
  return entry;
}

void WalkMemo::add(const Words& key, Entry entry) {
  const std::scoped_lock lock(mutex_);
  ++added_;
  keep(key, std::make_shared<const Entry>(std::move(entry)));
}

WalkMemo::Contents WalkMemo::one_of(L2Contents contents) {
  const auto one = std::make_shared<const L2Contents>(std::move(contents));
  const std::scoped_lock lock(mutex_);
  return keep(one);
}

// In the newer half, unless equal contents are there: then those.
WalkMemo::Contents WalkMemo::keep(const Contents& contents) {
  Contents known = contents;
  for (Half* half : {&newer_, &older_}) {
    const auto [first, last] = half->contents.equal_range(contents->hash);
    const auto same = std::find_if(
        first, last, [&](const auto& c) { return c.second == contents || *c.second == *contents; });
    if (same == last) continue;
    if (half == &newer_) return same->second;
    known = same->second;
  }
  newer_.contents.emplace(known->hash, known);
  newer_.memory += known->memory();
  make_room();
  return known;
}

void WalkMemo::keep(const Words& key, const std::shared_ptr<const Entry>& entry) {
  if (!newer_.entries.emplace(key, entry).second) return;
  newer_.memory += memory_of(key, *entry);
  for (const Contents& contents : {entry->before, entry->after}) {
    if (contents) keep(contents);
  }
  make_room();
}

void WalkMemo::make_room() {
  if (newer_.memory <= budget_ / 2) return;
  older_ = std::exchange(newer_, Half{});
}

WalkMemo::Use WalkMemo::use() const {
  const std::scoped_lock lock(mutex_);
  return {found_, added_, newer_.memory + older_.memory};
}

void WalkMemo::forget() {
  const std::scoped_lock lock(mutex_);
  newer_ = {};
  older_ = {};
}

}  // namespace fuseline
