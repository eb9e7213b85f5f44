// The data behind a view as a table, for CSV and JSON. Bytes are integers, times in µs; numbers are
// those of `fuseline predict --format json`.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace fuseline::gui {

using Cell =
    std::variant<std::monostate, std::string, std::int64_t, double>;  // monostate: no value

struct Table {
  std::string name;                  // of the view, as in file names: "traffic"
  std::vector<std::string> columns;  // with the unit as suffix: "time_us", "hbm_read_bytes"
  std::vector<std::vector<Cell>> rows;
};

// A header line, then a line each row. Doubles as short as they can be without loss.
std::string to_csv(const Table& table);
// {"schema": "fuseline.view/1", "view": name, "rows": [{column: value, ...}, ...]}; absent values
// and numbers that are not finite are null.
std::string to_json(const Table& table);

// Names of files: letters and digits of the name, '-' for anything else: "eager, measured" becomes
// "eager-measured".
std::string file_stem(const std::string& name);

}  // namespace fuseline::gui
