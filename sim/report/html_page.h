// Building blocks of a self-contained HTML page: no script, no other file, light and dark.
#pragma once

#include <string>
#include <vector>

namespace fuseline {

struct HtmlColumn {
  std::string header;
  bool number = true;  // aligned to the right
};

// A table with its caption. Cells are plain text.
std::string html_table(const std::string& caption, const std::vector<HtmlColumn>& columns,
                       const std::vector<std::vector<std::string>>& rows);

// The whole page around `body`, which is HTML.
std::string html_page(const std::string& title, const std::string& body);

}  // namespace fuseline
