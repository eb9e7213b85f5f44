// The session as one HTML file: numbers, commands and pictures, readable anywhere and without a
// network.
#pragma once

#include <string>
#include <vector>

#include "gui/model/document.h"
#include "gui/model/results.h"
#include "gui/model/table.h"

namespace fuseline::gui {

struct PageView {
  std::string id;
  std::string title;
  std::string hint;
  std::string svg;            // the picture, whole file
  std::vector<Table> tables;  // under it, folded
};

// `file`: of the session, for the command; may be empty.
std::string session_page(const Document& document, const Results& results,
                         const std::vector<PageView>& views, const std::string& file);

}  // namespace fuseline::gui
