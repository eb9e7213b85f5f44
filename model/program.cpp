#include "model/program.h"

#include <variant>

namespace fuseline {

namespace {

// Calls `visit` with each operand that the primitive loads.
template <class Visit>
void each_load(const Primitive& primitive, const Visit& visit) {
  if (const auto* p = std::get_if<LoadTile>(&primitive)) visit(p->from);
  if (const auto* p = std::get_if<LoadVector>(&primitive)) visit(p->from);
  if (const auto* p = std::get_if<LoadTable>(&primitive)) visit(p->from);
  if (const auto* p = std::get_if<OnlineLogSumExp>(&primitive)) visit(p->targets);
  if (const auto* p = std::get_if<Gather>(&primitive)) {
    visit(p->ids);
    visit(p->from);
  }
  if (const auto* p = std::get_if<GatherSum>(&primitive)) {
    if (p->ids) visit(*p->ids);
    visit(p->from);
  }
  if (const auto* p = std::get_if<OneHot>(&primitive)) visit(p->ids);
  if (const auto* p = std::get_if<LoadHalves>(&primitive)) {
    // As many elements as move, and other ones for the other half; where they lie says the
    // primitive.
    Operand half = p->from;
    half.cols /= 2;
    if (p->upper) half.col_begin += half.cols;
    visit(half);
  }
}

template <class Visit>
void each_store(const Primitive& primitive, const Visit& visit) {
  if (const auto* p = std::get_if<TileReduce>(&primitive)) visit(p->partial);
  if (const auto* p = std::get_if<OnlineLogSumExp>(&primitive)) visit(p->partial);
  if (const auto* p = std::get_if<StoreTile>(&primitive)) visit(p->to);
  if (const auto* p = std::get_if<StoreVector>(&primitive)) visit(p->to);
}

}  // namespace

std::vector<Operand> loads(const Program& program) {
  std::vector<Operand> result;
  const auto keep = [&result](const Operand& o) { result.push_back(o); };
  for (const Primitive& p : program.prologue) each_load(p, keep);
  if (const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop)) {
    keep(gemm->a);
    keep(gemm->b);
  }
  if (const auto* attention = std::get_if<AttentionMainloop>(&program.mainloop)) {
    if (attention->q_value < 0) keep(attention->q);
    if (attention->k_value < 0) keep(attention->k);
    if (attention->v_value < 0) keep(attention->v);
    if (attention->gradient) {
      keep(attention->gradient->dy);
      keep(attention->gradient->log_sum_exp);
      keep(attention->gradient->delta);
    }
  }
  for (const Primitive& p : program.body) each_load(p, keep);
  return result;
}

std::vector<Operand> stores(const Program& program) {
  std::vector<Operand> result;
  const auto keep = [&result](const Operand& o) { result.push_back(o); };
  for (const Primitive& p : program.prologue) each_store(p, keep);
  for (const Primitive& p : program.body) each_store(p, keep);
  return result;
}

}  // namespace fuseline
