// Which lines of a kernel's CUDA text a line of its program became.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gui/model/block_editor.h"

namespace fuseline::gui {

// For each line of the CUDA text the lines of the program that it comes from, both 1-based. They
// are told by what both name: values keep their names, parameters those of their tensors or the
// numbers that the text's first comment gives them. A line that nothing is known of has none.
std::vector<std::vector<int>> code_links(const std::vector<std::string>& program,
                                         const std::vector<std::string>& cuda);

// What the words of a line of CUDA, PTX or machine code are.
std::vector<WordSpan> words_of_code_line(std::string_view line);

}  // namespace fuseline::gui
