// XLA:GPU: chains of element-wise operators and row reductions become one fusion each (a shared
// result is stored by a multi-output fusion, not computed twice); GEMMs are library calls that take
// bias and GELU; attention is the library's fused one, as XLA does on Hopper. An update of the KV
// cache in place is the root of its own fusion, so it joins its producer but no sibling.
#include "model/implementation.h"
#include "model/policies/rules.h"

namespace fuseline {

namespace {

std::string fuse(const Graph& graph, const std::vector<OpId>& from, const std::vector<OpId>& to,
                 const Edge&) {
  if (library_takes(graph, from, to)) return "";
  if (has_gemm(graph, from)) return "the library call takes no such epilogue, only bias and GELU";
  if (is_loop(graph, from) && is_loop(graph, to)) return "";
  return "attention is a library call";
}

bool appends(const Graph& graph, const std::vector<OpId>& ops) {
  return any_op(graph, ops, [](const Op& op) { return op.kind == OpKind::cache_append; });
}

bool siblings(const Graph& graph, const std::vector<OpId>& a, const std::vector<OpId>& b) {
  return !appends(graph, a) && !appends(graph, b) && same_loop_and_input(graph, a, b);
}

}  // namespace

PolicyRules xla_policy() {
  return {
      .info = {"xla", "XLA:GPU",
               "element-wise and reduction chains; GEMMs are library calls with bias/activation "
               "epilogues"},
      .rewrites = {},
      .fuse = fuse,
      .siblings = siblings,
      .implement = generated_implementation};
}

}  // namespace fuseline
