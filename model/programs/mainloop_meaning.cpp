#include "model/programs/mainloop_meaning.h"

#include <variant>

#include "model/programs/mainloop_meanings.h"

namespace fuseline {

namespace {

struct RunMainloop {
  Meaning& exact;

  void operator()(const GemmMainloop& m) const { product_meaning(m, exact); }
  void operator()(const AttentionMainloop& m) const { attention_meaning(m, exact); }
  void operator()(const ScanMainloop& m) const { scan_meaning(m, exact); }
  void operator()(const StreamMainloop&) const {}
  void operator()(const RowMainloop&) const {}
};

}  // namespace

ExactMatrix whole(const Operand& o, const Meaning& exact) {
  ExactMatrix m(o.rows, o.cols);
  for (std::int64_t r = 0; r < o.rows; ++r)
    for (std::int64_t c = 0; c < o.cols; ++c) m.at(r, c) = exact.read(o, r, c);
  return m;
}

void run_mainloop_meaning(const Program& program, Meaning& exact) {
  std::visit(RunMainloop{exact}, program.mainloop);
}

}  // namespace fuseline
