#include "model/programs/known_lines.h"

#include <utility>

#include "model/programs/all_lines.h"

namespace fuseline {

namespace {

class Collected final : public LineForms {
 public:
  void makes(const std::string& word, const Primitive& filled) override {
    all.push_back({kinds.size() - 1, "", word, "", filled});
  }
  void stores(const std::string& keyword, const std::string& word,
              const Primitive& filled) override {
    all.push_back({kinds.size() - 1, keyword, word, "", filled});
  }
  void pattern(const std::string& text, const Primitive& filled) override {
    all.push_back({kinds.size() - 1, "", "", text, filled});
  }
  std::vector<LineForm> all;
  std::vector<LineKind> kinds;

 private:
  void begin(LineKind kind) override { kinds.push_back(std::move(kind)); }
};

std::vector<AddLines>& from_outside() {
  static std::vector<AddLines> all;
  return all;
}

Collected collected() {
  Collected found;
  for (const AddLines add : lines::kAll) add(found);
  for (const AddLines add : from_outside()) add(found);
  return found;
}

Collected& all_lines_known() {
  static Collected all = collected();
  return all;
}

}  // namespace

const std::vector<LineForm>& known_lines() { return all_lines_known().all; }
const std::vector<LineKind>& known_kinds() { return all_lines_known().kinds; }

const LineKind* kind_of(const Primitive& primitive) {
  for (const LineKind& kind : known_kinds())
    if (kind.is(primitive)) return &kind;
  return nullptr;
}

AddedLines::AddedLines(AddLines add) {
  from_outside().push_back(add);
  all_lines_known() = collected();
}

}  // namespace fuseline
