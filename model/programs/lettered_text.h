// The sizes of a text of programs as letters, so that they can be changed.
#pragma once

#include <string>

namespace fuseline {

// A printed text says the size of every tensor, as in "x[M,D] = [2048, 4096]", and no line "size".
// This is the same text with that line, with letters alone in declarations that have some, and in
// shapes of numbers alone letters where exactly one of them has that size, or that many parts of
// 128. The text as it is where a letter has two sizes.
std::string lettered_text(const std::string& text);

}  // namespace fuseline
