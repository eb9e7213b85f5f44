#include "cuda/emit/early_loads.h"

#include <cstddef>
#include <vector>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

// Where a part lies, and whether the slab meets it.
std::string scope_of(const EpilogueParts& parts, int part) {
  std::vector<const Part*> path;
  for (int p = part; p >= 0; p = path.front()->parent)
    path.insert(path.begin(), &parts.parts[static_cast<std::size_t>(p)]);
  std::string places, meets;
  std::string outer = "slab";
  for (const Part* p : path) {
    places += fmt::format("      const auto {} = columns({}, {}, {});\n", p->name, outer, p->begin,
                          p->cols);
    meets += fmt::format("{}meets({})", meets.empty() ? "" : " && ", p->name);
    outer = p->name;
  }
  return places + (meets.empty() ? "      {\n" : "      if (" + meets + ") {\n");
}

}  // namespace

std::string EarlyLoads::load(Value value, const std::string& wanted_name,
                             const EpilogueParts& parts, int part, const std::string& code) {
  std::string& member = members_[value];
  if (member.empty()) {
    member = names_.unique(wanted_name);
    state_ += (state_.empty() ? "" : ", ") + member;
  }
  scopes_.try_emplace(part, scope_of(parts, part));
  const std::string line = fmt::format("        loads.{}.loaded = {};\n", member, code);
  if (loads_[part].find(line) == std::string::npos) loads_[part] += line;
  return fmt::format("early.{}([&] {{ return {}; }})", member, code);
}

std::string EarlyLoads::source() const {
  std::string text = "  template <class Vectors>\n  struct Loads {\n    Vectors " + state_ +
                     ";\n  };\n  using Early = Loads<EarlyVectors<slab_groups>>;\n"
                     "  using Late = Loads<LateVectors>;\n  template <class Slab>\n"
                     "  static FUSELINE_DEVICE Early early(const Params& p, const Slab& slab) {\n"
                     "    Early loads;\n";
  for (const auto& [part, lines] : loads_)
    text += "    {\n" + scopes_.at(part) + lines + "      }\n    }\n";
  return text + "    return loads;\n  }\n";
}

}  // namespace fuseline::cuda
