#include "sim/executor/reference_source.h"

#include <algorithm>

#include "base/error.h"

namespace fuseline::executor {

Source::Source(const Graph& graph, const TensorValues& values, const Inputs& inputs,
               const Operand& o)
    : operand_(o) {
  const Tensor& t = graph.tensor(o.tensor);
  if (values.has(o.tensor)) {
    computed_ = values.at(o.tensor).data();
  } else {
    const auto found = inputs.find(t.name);
    if (found == inputs.end())
      throw InputError({.field = t.name, .message = "the input tensor is missing"});
    stored_ = found->second.get();
  }
  stride_ = t.cols;
}

void Source::copy(std::int64_t row, std::int64_t rows, std::int64_t col, std::int64_t cols,
                  std::vector<double>& to) const {
  to.resize(static_cast<std::size_t>(rows * cols));
  std::vector<float> line(static_cast<std::size_t>(cols));
  for (std::int64_t r = 0; r < rows; ++r) {
    double* out = to.data() + r * cols;
    if (computed_ != nullptr) {
      std::copy_n(computed_ + operand_.tensor_row(row + r) * stride_ + operand_.col_begin + col,
                  cols, out);
      continue;
    }
    stored_->read(operand_.tensor_row(row + r), operand_.col_begin + col, cols, line.data());
    std::copy(line.begin(), line.end(), out);
  }
}

}  // namespace fuseline::executor
