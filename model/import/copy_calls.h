// Calls that give the same numbers, as they are or in another type: a block has one type for all
// that it keeps.
#pragma once

namespace fuseline {

inline constexpr const char* kDropout = "aten.dropout";  // outside training alone
inline constexpr const char* kCat = "aten.cat";          // of one tensor that has elements
inline constexpr const char* kCopyCalls[] = {
    "aten.to",    "aten._to_copy", "aten.contiguous", "aten.clone",
    "aten.alias", "aten.detach",   "aten.type_as",    "aten.lift_fresh_copy",
    "aten.float", "aten.bfloat16", "aten.half",       kDropout,
    kCat};

}  // namespace fuseline
