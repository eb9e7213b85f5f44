#include "cuda/vendor/vendor_gemm.h"

#include <map>

#include "base/error.h"
#include "model/primitives/functions.h"

namespace fuseline::cuda {

namespace {

Dtype type_of(const Graph& graph, const Operand& operand) {
  return graph.tensor(operand.tensor).dtype;
}

// Follows value 0 through the body: [· constant] [+ bias] [store] [gelu] store.
class Reader {
 public:
  Reader(const Graph& graph, const Program& program) : graph_(graph), program_(program) {}

  std::optional<VendorGemm> read() {
    for (const Primitive& primitive : program_.body)
      if (!take(primitive)) return std::nullopt;
    if (!stored_ || !typed()) return std::nullopt;
    return form_;
  }

 private:
  bool take(const Primitive& primitive) {
    if (const auto* load = primitive.as<LoadVector>()) return take(*load);
    if (const auto* map = primitive.as<Map>()) return take(*map);
    if (const auto* store = primitive.as<StoreTile>()) return take(*store);
    return false;
  }

  bool take(const LoadVector& load) {
    if (load.axis != Axis::cols) return false;
    vectors_[load.out] = load.from;
    return true;
  }

  bool take(const Map& map) {
    if (stored_ && map.fn != maps::gelu_tanh) return false;
    if (map.fn == maps::scale_by_constant) {
      if (map.in.at(0) != value_ || form_.bias || form_.gelu) return false;
      form_.scale *= map.constant;
    } else if (map.fn == maps::add) {
      const bool first = map.in.at(0) == value_;
      const auto bias = vectors_.find(map.in.at(first ? 1 : 0));
      if ((!first && map.in.at(1) != value_) || bias == vectors_.end() || form_.bias || form_.gelu)
        return false;
      form_.bias = bias->second;
    } else if (map.fn == maps::gelu_tanh) {
      if (map.in.at(0) != value_ || form_.gelu || form_.accumulate) return false;
      if (stored_) form_.before_gelu = form_.out;
      form_.gelu = true;
      stored_ = false;
    } else {
      return false;
    }
    value_ = map.out;
    return true;
  }

  bool take(const StoreTile& store) {
    if (store.in != value_ || stored_) return false;
    // The library adds what is there before its GELU, not after it.
    if (store.accumulate && form_.gelu) return false;
    form_.accumulate = store.accumulate;
    form_.out = store.to;
    stored_ = true;
    return true;
  }

  // One type for a and b; results of that type or fp32, and what the epilogue reads and writes of
  // the result's.
  [[nodiscard]] bool typed() const {
    const auto& gemm = std::get<GemmMainloop>(program_.mainloop);
    const Dtype in = type_of(graph_, gemm.a);
    const Dtype out = type_of(graph_, form_.out);
    if (type_of(graph_, gemm.b) != in || (out != in && out != Dtype::fp32)) return false;
    if (form_.bias && (type_of(graph_, *form_.bias) != out || form_.bias->rows != 1)) return false;
    return !form_.before_gelu || (type_of(graph_, *form_.before_gelu) == out && out != Dtype::fp32);
  }

  const Graph& graph_;
  const Program& program_;
  VendorGemm form_;
  Value value_ = 0;
  bool stored_ = false;
  std::map<Value, Operand> vectors_;
};

}  // namespace

std::optional<VendorGemm> vendor_gemm(const Graph& graph, const Program& program) {
  const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop);
  if (gemm == nullptr || !program.prologue.empty()) return std::nullopt;
  if (!gemm->groups.empty() || !gemm->depths.empty()) return std::nullopt;  // of unlike sizes
  std::optional<VendorGemm> form = Reader(graph, program).read();
  // Sums over products of a batch, and epilogues in one, are no single call.
  if (form && gemm->batch > 1 && (gemm->summed > 1 || form->bias || form->gelu))
    return std::nullopt;
  return form;
}

bool supports(const Graph& graph, const Program& program) {
  return vendor_gemm(graph, program).has_value();
}

}  // namespace fuseline::cuda
