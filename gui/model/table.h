// The data behind a view as a table, for CSV and JSON. Bytes are integers, times in µs; numbers are
// those of `fuseline predict --format json`.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "gui/model/subject.h"

namespace fuseline::gui {

using Cell =
    std::variant<std::monostate, std::string, std::int64_t, double>;  // monostate: no value

struct Table {
  std::string name;                  // of the view, as in file names: "traffic"
  std::vector<std::string> columns;  // with the unit as suffix: "time_us", "hbm_read_bytes"
  std::vector<std::vector<Cell>> rows;
  std::vector<Subject> about{};  // of each row: columns of the files, behind the table's own
  // Cells that compare, with what they compare to.
  struct Compared {
    std::size_t row = 0;
    std::string column;
    Subject base;
  };
  std::vector<Compared> compared{};
};

// Adds a row about something, and what its comparing columns compare to. Those of the columns that
// have a value need `base`.
void add_row(Table& table, std::vector<Cell> cells, const Subject& about,
             const Subject* base = nullptr);
// Whether a column of that name compares: "time_relative", "delta_hbm", "error", "gain".
bool compares(const std::string& column);
// What a reader would conclude wrongly from the table: a row about nothing, a comparison with
// nothing, or with another work. Empty: nothing.
std::string unlike_in(const Table& table);

// A header line, then a line each row, with what each is about behind the table's own columns.
// Doubles as short as they can be without loss.
std::string to_csv(const Table& table);
// {"schema": "fuseline.view/1", "view": name, "rows": [{column: value, ...}, ...]}; absent values
// and numbers that are not finite are null.
std::string to_json(const Table& table);

// Names of files: letters and digits of the name, '-' for anything else: "eager, measured" becomes
// "eager-measured".
std::string file_stem(const std::string& name);

}  // namespace fuseline::gui
