// The attributes of operators in a plan's text: "pairs(head_width = 128, interleaved)".
#pragma once

#include <string>
#include <vector>

#include "model/attributes.h"
#include "model/programs/syntax.h"

namespace fuseline {

// The word of the struct that they hold; empty: there are none, or they are those of an operator
// from outside, which have no text.
std::string attributes_word(const Op& op);
std::vector<std::string> attribute_words();
// Writes or reads what stands in the brackets behind the word.
Attributes attributes_syntax(const std::string& word, const Attributes& now, Syntax& line);

}  // namespace fuseline
