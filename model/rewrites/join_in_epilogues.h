#pragma once

#include "model/rewrites/rewrite.h"

namespace fuseline {

// Streams of tokens are stored where their joint rows are: in the place of one operator that joins
// them, a copy of each stream, which the epilogue of the product that makes the stream can have.
//
//   q = join(image [B·1024, D], text [B·154, D])
//   -> q [rows 0:1024 of every 1178] = copy(image), q [rows 1024:1178 of every 1178] = copy(text)
Rewrite join_in_epilogues();

}  // namespace fuseline
