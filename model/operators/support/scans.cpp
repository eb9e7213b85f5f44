#include "model/operators/support/scans.h"

#include "model/config/config.h"

namespace fuseline {

ScanShape scan_of_call(OperatorCall& c) {
  ScanShape a;
  a.heads = c.whole("heads", 1, c.read(0).cols);
  a.groups = c.whole_or("groups", 1, 1, a.heads);
  a.batch = c.workload().batch;
  a.tokens = c.read(0).rows / a.batch;
  a.chunk = c.whole_or("chunk", a.chunk, 1, kLargestDimension);
  if (c.read(0).cols % a.heads != 0 || a.heads % a.groups != 0 || c.read(2).cols % a.groups != 0)
    c.refuse("has heads or groups that do not divide its columns evenly",
             "heads of equal width, and groups of equally many heads");
  a.head_width = c.read(0).cols / a.heads;
  a.state_width = c.read(2).cols / a.groups;
  return a;
}

std::int64_t scan_terms(const Graph&, const Op& op) {
  const auto& a = op.attributes.as<ScanShape>();
  return a.tokens * a.state_width;
}

}  // namespace fuseline
