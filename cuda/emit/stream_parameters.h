// The parameters of a stream or row kernel as its body asks for them: each once, named by what it
// is and a number.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cuda/emit/stream_fields.h"
#include "model/program.h"

namespace fuseline::cuda {

class StreamParameters {
 public:
  // `odd`: no element moves with its neighbours.
  StreamParameters(const Graph& graph, bool odd) : graph_(graph), odd_(odd) {}

  // Each returns the parameter's name: "in0", "out1", "c0".
  std::string operand(StreamFieldKind kind, const char* name, const Operand& operand);
  // The same one for a value that is made at several places.
  std::string of(Value v, StreamFieldKind kind, const char* name, const Operand& from);
  std::string constant(Value v, double number);
  std::string visible(Value v, const AttentionShape& attention, std::int64_t keys);
  std::string count(const char* name, std::int64_t number);  // the same for equal numbers
  std::string row_groups(Value v, const std::vector<std::int64_t>& lengths);

  [[nodiscard]] std::vector<StreamField> take() { return std::move(fields_); }

 private:
  std::string add(StreamField field);
  const Graph& graph_;
  bool odd_;
  std::vector<StreamField> fields_;
  std::map<std::pair<Value, StreamFieldKind>, std::string> of_;
  std::map<std::int64_t, std::string> counts_;
  std::map<std::string, int> numbers_;
};

}  // namespace fuseline::cuda
