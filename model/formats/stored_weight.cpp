#include "model/formats/stored_weight.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "base/error.h"
#include "model/formats/all_weight_formats.h"

namespace fuseline {
namespace {

// Groups of one or two columns would have more scales than codes.
constexpr std::int64_t kLeastGroup = 4;
constexpr std::int64_t kMostGroup = 1 << 16;

[[noreturn]] void refuse(const std::string& field, const std::string& text,
                         const std::string& message, const std::string& allowed,
                         const std::string& nearest = {}) {
  throw InputError(
      {.field = field, .value = text, .message = message, .allowed = allowed, .nearest = nearest});
}

}  // namespace

const std::vector<const WeightFormat*>& all_weight_formats() {
  static const std::vector<const WeightFormat*> all(std::begin(weight_formats::kAll),
                                                    std::end(weight_formats::kAll));
  return all;
}

std::vector<std::string> weight_format_names() {
  std::vector<std::string> names;
  for (const WeightFormat* format : all_weight_formats()) names.emplace_back(format->name.value);
  std::sort(names.begin(), names.end());
  return names;
}

std::string StoredWeight::name() const {
  if (format == nullptr) return "";
  if (group == format->group) return format->name.value;
  return fmt::format("{}:{}", format->name.value, group);
}

Dtype StoredWeight::element() const {
  FUSELINE_ASSERT(format != nullptr, "a weight without a format");
  return format->element;
}

bool StoredWeight::scales_sums() const {
  constexpr std::int64_t kBitsOfStep = 512;
  if (!quantised() || !scaled_within_rows()) return true;
  return group % (kBitsOfStep / size_of(element()).bits()) == 0 && !format->zero_points;
}

std::vector<ScaleTensor> StoredWeight::beside(std::int64_t N, std::int64_t K) const {
  if (format == nullptr) return {};
  const std::int64_t rows = ceil_div(N, format->group_rows);
  const std::int64_t cols = group == 0 ? 1 : ceil_div(K, group);
  std::vector<ScaleTensor> tensors = {{ScaleKind::scale, "_scale", format->scale, rows, cols}};
  if (format->zero_points)
    tensors.push_back({ScaleKind::zero_point, "_zero", Dtype::int8, rows, cols});
  if (format->tensor_scale)
    tensors.push_back({ScaleKind::tensor_scale, "_tensor_scale", Dtype::fp32, 1, 1});
  return tensors;
}

ScaleRange StoredWeight::beside(ScaleKind kind, std::int64_t n_begin, std::int64_t n_end,
                                std::int64_t k_begin, std::int64_t k_end) const {
  FUSELINE_ASSERT(format != nullptr, "a weight without a format");
  const std::int64_t first = k_begin == 0 ? 1 : 0;
  if (kind == ScaleKind::tensor_scale) return {0, 1, 0, first};
  ScaleRange range;
  range.row_begin = scale_row(pairs ? n_begin / 2 * 2 : n_begin);
  range.row_end = scale_row(pairs ? (n_end - 1) / 2 * 2 + 1 : n_end - 1) + 1;
  range.col_begin = group == 0 ? 0 : ceil_div(k_begin, group);
  range.col_end = group == 0 ? first : ceil_div(k_end, group);
  return range;
}

double StoredWeight::scale_bytes_per_element(std::int64_t K) const {
  if (format == nullptr) return 0;
  const double shared =
      static_cast<double>(group == 0 ? K : group) * static_cast<double>(format->group_rows);
  return (size_of(format->scale).as_double() + (format->zero_points ? 1.0 : 0.0)) / shared;
}

std::int64_t StoredWeight::scale_row(std::int64_t n) const {
  FUSELINE_ASSERT(format != nullptr, "a weight without a format");
  return pairs ? n / 2 / format->group_rows * 2 + n % 2 : n / format->group_rows;
}

StoredWeight parse_stored_weight(const std::string& text, const std::string& field,
                                 const std::string& plain) {
  if (text == plain) return {};
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  std::vector<std::string> names = weight_format_names();
  const auto& all = all_weight_formats();
  const auto found = std::find_if(all.begin(), all.end(), [&](const WeightFormat* format) {
    return name == format->name.value;
  });
  if (found == all.end()) {
    names.insert(names.begin(), plain);
    refuse(
        field, text, "there is no such number format",
        fmt::format("{}; int4, int4-zero and int8 with a group: int4:64", fmt::join(names, ", ")),
        nearest_name(name, names));
  }
  StoredWeight weight{*found, (*found)->group};
  if (colon == std::string::npos) return weight;
  if (!weight.format->any_group)
    refuse(field, text, fmt::format("{} has groups of its own", name), name);
  const char* const begin = text.data() + colon + 1;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, weight.group);
  const bool whole_row = weight.group == 0;
  const bool possible = weight.group >= kLeastGroup && weight.group <= kMostGroup;
  if (error != std::errc() || stop != end || !(whole_row || possible) || weight.group % 2 != 0)
    refuse(field, text, "is no group of columns",
           fmt::format("an even number from {} to {} behind the colon, or 0 for a whole row",
                       kLeastGroup, kMostGroup));
  return weight;
}

}  // namespace fuseline
