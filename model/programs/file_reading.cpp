#include "model/programs/file_reading.h"

#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/programs/operand_reader.h"

namespace fuseline {

namespace {

constexpr std::string_view kSigns[] = {"+=", "·", "@", "ᵀ", "'", "⌈", "⌉", "|"};

}  // namespace

FileReading::FileReading(std::shared_ptr<const SourceText> source) : cursor(source, {}, kSigns) {
  out.source = std::move(source);
}

void FileReading::refuse(Position at, const char* rule, InputProblem problem,
                         std::string mend) const {
  refuse_at(*out.source, at, rule, std::move(problem), std::move(mend));
}

TensorId FileReading::tensor_of(const Graph& graph, const char* what) {
  const Position at = cursor.here();
  const std::string name = read_any_name(cursor, what);
  const std::optional<TensorId> id = graph.find_tensor(name);
  if (id) return *id;
  std::vector<std::string> names;
  for (const Tensor& t : graph.tensors()) names.push_back(t.name);
  refuse(at, "unknown-tensor",
         {.value = name,
          .message = "there is no such tensor",
          .allowed = "a declared tensor",
          .nearest = nearest_name(name, names)});
}

OpId FileReading::op_of(const Graph& graph) {
  const Position at = cursor.here();
  const std::string name = read_any_name(cursor, "an operator's name");
  const std::optional<OpId> id = graph.find_op(name);
  if (id) return *id;
  std::vector<std::string> names;
  for (const Op& o : graph.ops()) names.push_back(o.name);
  refuse(at, "unknown-operator",
         {.value = name,
          .message = "the plan has no such operator",
          .allowed = "an operator of a line \"op\"",
          .nearest = nearest_name(name, names)});
}

}  // namespace fuseline
