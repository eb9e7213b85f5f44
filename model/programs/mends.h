// What to write in place of a mistake, as lines of the language: the mends of diagnoses.
#pragma once

#include <string>

#include "model/program.h"

namespace fuseline {

// "program finish_s ...": joins the partials of each row; its result is for others to read.
// `reduction`: "sum", or "max" for partials of the largest.
std::string finisher_of(const Graph& graph, TensorId partials, const std::string& reduction);
// A reduction of whole rows inside a tile as partials and their finisher; `value`: by its name.
std::string partials_of(const std::string& value, const std::string& reduction, std::int64_t rows,
                        std::int64_t width);
// A declaration of a tensor of that shape under another name, and a store to it.
std::string other_tensor(const Graph& graph, const Operand& stored, const std::string& value);
// "output h[M,D]", with the given role.
std::string declaration(const Tensor& t, Role role);
// The product with an operand's "ᵀ" exchanged, where its shapes match then; else empty.
std::string exchanged_product(const Graph& graph, const GemmMainloop& mainloop,
                              const std::string& result);
// The line without its remark and the spaces around it; with a flag at its end; and without it.
std::string code_of_line(const std::string& line);
std::string with_flag(const std::string& line, const std::string& flag);
std::string without_flag(const std::string& line, const std::string& flag);

}  // namespace fuseline
