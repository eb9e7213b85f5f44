// A table as the bytes of an SQLite file.
#pragma once

#include <string>

namespace fuseline {

// Whether the file's name ends as those of SQLite files do: .sqlite, .sqlite3, .db.
bool named_as_sqlite(const std::string& path);

// The lines of a CSV text, whose first one names the columns, as the only table of a database.
// Cells become whole numbers, real ones or texts, empty ones NULL. Equal texts give equal bytes.
// MissingError: built without SQLite.
std::string sqlite_of_csv(const std::string& table, const std::string& csv);

}  // namespace fuseline
