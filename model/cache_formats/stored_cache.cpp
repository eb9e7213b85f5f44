#include "model/cache_formats/stored_cache.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "model/cache_formats/all_cache_formats.h"
#include "model/config/format_name.h"

namespace fuseline {

const std::vector<const CacheFormat*>& all_cache_formats() {
  static const std::vector<const CacheFormat*> all(std::begin(cache_formats::kAll),
                                                   std::end(cache_formats::kAll));
  return all;
}

std::vector<std::string> cache_format_names() {
  std::vector<std::string> names;
  for (const CacheFormat* format : all_cache_formats()) names.emplace_back(format->name.value);
  std::sort(names.begin(), names.end());
  return names;
}

std::string StoredCache::name() const { return format == nullptr ? "" : format->name.value; }

Dtype StoredCache::element() const {
  FUSELINE_ASSERT(format != nullptr, "a cache without a format");
  return format->element;
}

bool StoredCache::scaled() const { return format != nullptr && format->scale_of_heads; }

Dtype StoredCache::scale_type() const {
  FUSELINE_ASSERT(scaled(), "a cache without scales");
  return format->scale;
}

double StoredCache::largest() const {
  FUSELINE_ASSERT(format != nullptr, "a cache without a format");
  return format->largest;
}

StoredCache parse_stored_cache(const std::string& text, const std::string& field,
                               const std::string& plain) {
  if (text == plain) return {};
  for (const CacheFormat* format : all_cache_formats())
    if (text == format->name.value) return {format};
  refuse_format(text, field, plain, cache_format_names(), "caches");
}

}  // namespace fuseline
