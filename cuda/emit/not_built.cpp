#include "cuda/emit/not_built.h"

#include <variant>

namespace fuseline::cuda {

namespace {

bool apart(const Operand& o) { return o.at.run > 1; }

std::string of(const GemmMainloop& m) {
  if (!m.groups.empty()) return "a product of groups of rows";
  // The copy engine takes matrices; batches find theirs by runs.
  if (m.batch == 1 && (apart(m.a) || apart(m.b))) return "a product of rows that lie apart";
  return "";
}

std::string of(const AttentionMainloop& m) {
  const AttentionShape& s = m.shape;
  if (s.v_width() != s.head_width) return "attention whose keys and values have different widths";
  if (s.causal && s.prefix > 0) return "attention with a prefix that all queries see";
  if (s.softcap > 0) return "attention with capped scores";
  if (m.bias) return "attention with a bias";
  if (m.q_value < 0 && apart(m.q)) return "attention of queries whose rows lie apart";
  if (m.gradient && (apart(m.k) || apart(m.v)))
    return "attention's gradient of keys whose rows lie apart";
  return "";
}

std::string of(const StreamMainloop&) { return ""; }
std::string of(const RowMainloop&) { return ""; }
std::string of(const ScanMainloop&) { return "a scan"; }

}  // namespace

std::string not_built(const Program& program) {
  std::string missing = std::visit([](const auto& m) { return of(m); }, program.mainloop);
  if (!missing.empty() || !std::holds_alternative<GemmMainloop>(program.mainloop)) return missing;
  for (const Primitive& p : program.body)
    for (const Access& access : p.accesses())
      if (!access.store && apart(access.operand))
        return "an epilogue that loads rows that lie apart";
  return "";
}

}  // namespace fuseline::cuda
