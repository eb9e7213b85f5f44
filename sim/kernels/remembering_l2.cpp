#include "sim/kernels/remembering_l2.h"

#include <utility>

#include "base/error.h"

namespace fuseline {
namespace {

// Rounded up: no mean is below what each of them is at least.
Bytes share_of(Bytes sum, std::int64_t parts) { return Bytes(ceil_div(sum.value(), parts)); }

}  // namespace

RememberingL2::RememberingL2(Bytes capacity, double spread, WalkMemo* memo) {
  FUSELINE_ASSERT(0 <= spread && spread < 1, "the spread of the sets");
  const auto part = [&](double share) {
    parts_.emplace_back(Bytes(static_cast<std::int64_t>(capacity.as_double() * share)), memo);
  };
  if (spread > 0) part(1 - spread);
  parts_.emplace_back(capacity, memo);
  if (spread > 0) part(1 + spread);
}

WalkTraffic RememberingL2::walk(const WalkKey& key, const Walk& walk) {
  std::vector<WalkTraffic> walks;
  for (RememberingCache& part : parts_) walks.push_back(part.walk(key, walk));
  return mean_of(walks);
}

WalkTraffic RememberingL2::walk(const WalkKey& key,
                                const std::function<std::vector<Walk>(Bytes)>& parts) {
  std::vector<WalkTraffic> walks;
  for (RememberingCache& part : parts_)
    walks.push_back(part.walk(key, [&] { return parts(part.capacity()); }));
  return mean_of(walks);
}

std::vector<const L2Cache*> RememberingL2::watch(L2Watcher* watcher) {
  const auto middle = parts_.size() / 2;
  std::vector<const L2Cache*> caches = {&parts_[middle].watch(watcher)};
  for (std::size_t i = 0; i < parts_.size(); ++i)
    if (i != middle) caches.push_back(&parts_[i].watch(watcher));
  return caches;
}

bool RememberingL2::refill(const WalkKey& key, const Walk& walk) {
  for (RememberingCache& part : parts_) {
    if (part.refill(key, walk)) continue;
    for (RememberingCache& other : parts_) other.clear();
    return false;
  }
  return true;
}

template <class OfPart>
Bytes RememberingL2::mean(OfPart of_part) {
  Bytes sum;
  for (RememberingCache& part : parts_) sum += of_part(part);
  return share_of(sum, std::ssize(parts_));
}

Bytes RememberingL2::take_missed(std::uint32_t tensor) {
  return mean([&](RememberingCache& part) { return part.take_missed(tensor); });
}

void RememberingL2::forget_missed() {
  for (RememberingCache& part : parts_) part.forget_missed();
}

Bytes RememberingL2::resident(std::uint32_t tensor) {
  return mean([&](RememberingCache& part) { return part.resident(tensor); });
}

Bytes RememberingL2::dirty(std::uint32_t tensor) {
  return mean([&](RememberingCache& part) { return part.dirty(tensor); });
}

WalkTraffic mean_of(const std::vector<WalkTraffic>& walks) {
  FUSELINE_ASSERT(!walks.empty(), "the mean of nothing");
  WalkTraffic mean = walks.front();
  if (walks.size() == 1) return mean;
  const auto count = static_cast<double>(walks.size());
  const auto of_bytes = [&](auto get) {
    Bytes sum;
    for (const WalkTraffic& w : walks) sum += get(w);
    return share_of(sum, std::ssize(walks));
  };
  mean.hbm.read = of_bytes([](const WalkTraffic& w) { return w.hbm.read; });
  mean.hbm.write = of_bytes([](const WalkTraffic& w) { return w.hbm.write; });
  mean.most_missed = 0;
  for (const WalkTraffic& w : walks) mean.most_missed += w.most_missed / count;
  for (std::size_t i = 0; i < mean.waves.size(); ++i) {
    GemmWave& wave = mean.waves[i];
    wave.hbm.read = of_bytes([&](const WalkTraffic& w) { return w.waves[i].hbm.read; });
    wave.hbm.write = of_bytes([&](const WalkTraffic& w) { return w.waves[i].hbm.write; });
    wave.missed = of_bytes([&](const WalkTraffic& w) { return w.waves[i].missed; });
    wave.found = 0;
    for (const WalkTraffic& w : walks) wave.found += w.waves[i].found / count;
  }
  return mean;
}

}  // namespace fuseline
