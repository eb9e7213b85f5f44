#include "sim/search/constraints.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace fuseline {

namespace {

std::vector<std::string> split_at(const std::string& text, char mark) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == mark)
      parts.emplace_back();
    else if (c != ' ')
      parts.back() += c;
  }
  return parts;
}

bool has(const RewrittenBlock& block, const std::string& op) {
  return block.graph.find_op(op).has_value();
}

}  // namespace

std::vector<Constraint> parse_constraints(const std::string& text, bool together) {
  std::vector<Constraint> all;
  for (const std::string& pair : split_at(text, ';')) {
    const std::vector<std::string> names = split_at(pair, ',');
    const bool two = names.size() == 2 && !names[0].empty() && !names[1].empty();
    Constraint c{together, names[0], two ? names[1] : ""};
    if (!two || c.a == c.b)
      throw InputError({.file = "command line",
                        .field = c.option(),
                        .value = pair,
                        .message = two ? "names one operator twice" : "is not a pair of operators",
                        .allowed = "two operators of the block, as in gate_up,swiglu; several "
                                   "pairs with a semicolon between them"});
    all.push_back(std::move(c));
  }
  return all;
}

std::vector<RewrittenBlock> with_operators(std::vector<RewrittenBlock> blocks,
                                           const std::vector<Constraint>& constraints) {
  for (const Constraint& c : constraints) {
    for (const std::string& name : {c.a, c.b}) {
      if (std::ranges::any_of(blocks, [&](const auto& block) { return has(block, name); }))
        continue;
      std::set<std::string> known;
      for (const RewrittenBlock& block : blocks)
        for (const Op& op : block.graph.ops()) known.insert(op.name);
      throw InputError({.file = "command line",
                        .field = c.option(),
                        .value = c.text(),
                        .message = "the block has no operator '" + name + "'",
                        .allowed = "operators that explain lists, after any rewrites",
                        .nearest = nearest_name(name, {known.begin(), known.end()})});
    }
  }
  std::erase_if(blocks, [&](const RewrittenBlock& block) {
    return std::ranges::any_of(constraints, [&](const Constraint& c) {
      return c.together && (!has(block, c.a) || !has(block, c.b));
    });
  });
  return blocks;
}

}  // namespace fuseline
