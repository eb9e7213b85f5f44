#include "model/program.h"

#include <variant>

namespace fuseline {

namespace {

template <class Visit>
void each_moved(const Primitive& primitive, bool store, const Visit& visit) {
  for (const Access& access : primitive.accesses())
    if (access.store == store) visit(access.moved());
}

}  // namespace

std::vector<Operand> loads(const Program& program) {
  std::vector<Operand> result;
  const auto keep = [&result](const Operand& o) { result.push_back(o); };
  for (const Primitive& p : program.prologue) each_moved(p, false, keep);
  if (const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop)) {
    keep(gemm->a);
    keep(gemm->b);
    for (const Operand& o : gemm->beside_b) keep(o);
    if (gemm->a_scale) keep(*gemm->a_scale);
  }
  if (const auto* attention = std::get_if<AttentionMainloop>(&program.mainloop)) {
    if (attention->q_value < 0) keep(attention->q);
    if (attention->k_value < 0) keep(attention->k);
    if (attention->v_value < 0) keep(attention->v);
    for (const auto* scale : {&attention->k_scale, &attention->v_scale})
      if (*scale) keep(**scale);
    if (attention->bias) keep(*attention->bias);
    if (attention->gradient) {
      keep(attention->gradient->dy);
      keep(attention->gradient->log_sum_exp);
      keep(attention->gradient->delta);
    }
  }
  if (const auto* scan = std::get_if<ScanMainloop>(&program.mainloop)) {
    for (const Operand& o : {scan->x, scan->log_decay, scan->k, scan->q}) keep(o);
    if (scan->rates) keep(*scan->rates);
    if (scan->state) keep(*scan->state);
    if (scan->gradient) keep(scan->gradient->dy);
    if (scan->gradient && scan->gradient->states) keep(*scan->gradient->states);
  }
  for (const Primitive& p : program.body) each_moved(p, false, keep);
  return result;
}

std::vector<Operand> stores(const Program& program) {
  std::vector<Operand> result;
  const auto keep = [&result](const Operand& o) { result.push_back(o); };
  for (const Primitive& p : program.prologue) each_moved(p, true, keep);
  const auto* scan = std::get_if<ScanMainloop>(&program.mainloop);
  if (scan != nullptr && scan->state_after) keep(*scan->state_after);
  if (scan != nullptr && scan->gradient) {
    const ScanGradient& g = *scan->gradient;
    for (const Operand& o : {g.d_decay, g.dk, g.dq}) keep(o);
    if (g.d_rates) keep(*g.d_rates);
  }
  for (const Primitive& p : program.body) each_moved(p, true, keep);
  return result;
}

}  // namespace fuseline
