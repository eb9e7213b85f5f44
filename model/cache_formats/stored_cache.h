// A cache in a number format: what stands beside it, and what its codes are worth.
#pragma once

#include <string>
#include <vector>

#include "model/config/dtype.h"

namespace fuseline {

struct CacheFormat;  // model/cache_formats/cache_format.h

// The format that is asked for.
struct StoredCache {
  const CacheFormat* format = nullptr;  // null: numbers of the workload's type

  [[nodiscard]] bool quantised() const { return format != nullptr; }
  // "int8"; "" without a format.
  [[nodiscard]] std::string name() const;
  // The type of the codes.
  [[nodiscard]] Dtype element() const;
  // Whether a tensor of scales stands beside it: one for each head of each token, of this type.
  [[nodiscard]] bool scaled() const;
  [[nodiscard]] Dtype scale_type() const;
  // The largest number of a head becomes this code.
  [[nodiscard]] double largest() const;

  friend bool operator==(const StoredCache&, const StoredCache&) = default;
};

// "int8", or the name of the workload's type for no format (`plain`: "bf16"). InputError with
// `field` otherwise, with the nearest name.
StoredCache parse_stored_cache(const std::string& text, const std::string& field,
                               const std::string& plain);

// The names of all formats, in alphabetical order.
std::vector<std::string> cache_format_names();
const std::vector<const CacheFormat*>& all_cache_formats();

}  // namespace fuseline
