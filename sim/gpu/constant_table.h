// Constants by name, for files, fits and lists; formulas read the fields of Constants.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/gpu/constants.h"

namespace fuseline {

enum class Zero : std::uint8_t { allowed, refused };

using ConstantPlace = std::variant<double*, Seconds*, std::int64_t*>;

struct ConstantInfo {
  const char* name;  // "gemm.start_us"
  const char* unit;  // "us"; "1" for plain numbers
  const char* meaning;
  Zero zero;  // refused where a formula divides by the constant
  ConstantPlace (*place)(Constants&);
};

// Every constant once, sorted by name.
std::span<const ConstantInfo> constant_table();
std::vector<std::string> constant_names();

// Null for an unknown name.
const ConstantInfo* find_constant(std::string_view name);

// Whether only whole numbers make sense: threads, columns.
bool is_whole(const ConstantInfo& constant);

// In the constant's unit. The caller checks the range.
double value_of(const ConstantInfo& constant, const Constants& constants);
void set_value(const ConstantInfo& constant, Constants& constants, double value);

}  // namespace fuseline
