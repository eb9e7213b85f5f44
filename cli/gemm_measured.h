// fuseline gemm --measure: products on the GPU here, one after the other, into one table.
#pragma once

#include <optional>
#include <string>

#include "cli/commands.h"
#include "sim/selection/gemm_request.h"

namespace fuseline {

// As the options were written; absent = not said.
struct GemmMeasureTexts {
  GemmWords words;
  std::optional<std::string> shapes, output, minutes, variants, tiles;
};

// Sizes come from --m, --n and --k or from a CSV with these columns. Rows that the output has
// already are not measured again; after the minutes no further product is begun. With variants the
// table is one of variants. `tiles` is a second table, a line for each tile of our own that ran.
CommandResult measure_gemms(const GemmMeasureTexts& texts);

}  // namespace fuseline
