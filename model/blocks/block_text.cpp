#include "model/blocks/block_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <utility>

#include "base/data_dir.h"
#include "base/data_files.h"
#include "base/path_kind.h"

namespace fuseline {

namespace {

namespace fs = std::filesystem;

constexpr const char* kEnding = ".block";
constexpr Bytes kLargestText{std::int64_t{16} << 20};

// A name is a file of scenarios/blocks; what holds a '/' or ends in .block is a path from the
// folder of the file that says it.
fs::path file_of(const std::string& named, const fs::path& from) {
  if (named.find('/') == std::string::npos && !named.ends_with(kEnding))
    return data_dir() / "blocks" / (named + kEnding);
  return from.empty() ? fs::path(named) : relative_to_file(named, from);
}

// Every part that is called, with the places of the calls.
void for_each_call(const std::vector<Statement>& statements,
                   const std::function<void(const Expression&)>& f) {
  const std::function<void(const Expression&)> walk = [&](const Expression& e) {
    if (e.kind == ExpressionKind::call) f(e);
    for (const ExpressionPtr& part : e.parts) walk(*part);
    for (const Argument& a : e.arguments) walk(*a.value);
  };
  for (const Statement& s : statements) {
    if (s.value) walk(*s.value);
    for (const ExpressionPtr& e : s.given) walk(*e);
    for (const Declared& d : s.declared)
      for (const ExpressionPtr& e : d.sizes) walk(*e);
    for_each_call(s.body, f);
    for_each_call(s.otherwise, f);
  }
}

// Refuses parts that call themselves, also through others.
class Circles {
 public:
  explicit Circles(const BlockText& text) : text_(text) {}

  void check(const BlockText::Found& found) {
    if (done_.contains(found.definition)) return;
    path_.push_back(found.definition);
    for_each_call(found.definition->body, [&](const Expression& call) {
      const BlockText::Found next = text_.part(call.text);
      if (next.definition == nullptr) return;
      const auto at = std::find(path_.begin(), path_.end(), next.definition);
      if (at == path_.end()) {
        if (path_.size() >= kDeepestParts)
          found.source->fail(call.at, {.value = call.text,
                                       .message = "parts within parts go too deep",
                                       .allowed = fmt::format("at most {}", kDeepestParts)});
        return check(next);
      }
      std::vector<std::string> names;
      for (auto i = at; i != path_.end(); ++i) names.push_back((*i)->name);
      names.push_back(call.text);
      found.source->fail(call.at, {.value = call.text,
                                   .message = fmt::format("parts use each other in a circle: {}",
                                                          fmt::join(names, " -> "))});
    });
    path_.pop_back();
    done_.insert(found.definition);
  }

 private:
  const BlockText& text_;
  std::vector<const Definition*> path_;
  std::set<const Definition*> done_;
};

}  // namespace

std::shared_ptr<const BlockText> BlockText::parse(const std::string& text,
                                                  const std::string& file) {
  auto out = std::make_shared<BlockText>();
  std::set<std::string> read{fs::path(file).lexically_normal().string()};
  out->files_.push_back(parse_block_file(text, file));
  for (std::size_t i = 0; i < out->files_.size(); ++i) {
    const std::vector<Use> uses = out->files_[i].uses;
    const auto source = out->files_[i].source;
    for (const Use& use : uses) {
      const fs::path path = file_of(use.file, source->file);
      if (!read.insert(path.lexically_normal().string()).second) continue;
      if (kind_of_path(path) == PathKind::missing)
        source->fail(use.at, {.value = use.file,
                              .message = "there is no such file of parts",
                              .allowed = fmt::format("{}", fmt::join(block_names(), ", ")),
                              .nearest = nearest_name(use.file, block_names())});
      out->files_.push_back(parse_block_file(read_input_file(path, kLargestText), path.string()));
    }
  }
  for (const BlockFile& one : out->files_) {
    for (const Definition& d : one.definitions) {
      if (!d.is_part) continue;
      const auto [at, is_new] = out->parts_.emplace(d.name, Found{&d, one.source.get()});
      if (!is_new)
        one.source->fail(d.at,
                         {.value = d.name,
                          .message = fmt::format("is a part of {} too", at->second.source->file)});
    }
  }
  Circles circles(*out);
  for (const auto& [name, found] : out->parts_) circles.check(found);
  return out;
}

const Definition& BlockText::block() const {
  for (const Definition& d : file().definitions)
    if (!d.is_part) return d;
  throw InputError({.file = file().source->file,
                    .message = "the file holds parts and no block",
                    .allowed = "a file with a block"});
}

BlockText::Found BlockText::part(const std::string& name) const {
  const auto found = parts_.find(name);
  return found == parts_.end() ? Found{} : found->second;
}

std::vector<std::string> BlockText::part_names() const {
  std::vector<std::string> names;
  for (const auto& [name, found] : parts_) names.push_back(name);
  return names;
}

bool BlockText::calls(const std::string& function) const {
  bool found = false;
  for (const BlockFile& file : files_)
    for (const Definition& d : file.definitions)
      for_each_call(d.body, [&](const Expression& call) { found |= call.text == function; });
  return found;
}

std::vector<std::string> block_names() { return data_file_names("blocks", kEnding); }

std::shared_ptr<const BlockText> load_block_text(const std::string& name_or_path) {
  const fs::path path =
      find_data_file(name_or_path, {.field = "block", .folder = "blocks", .ending = kEnding});
  return BlockText::parse(read_input_file(path, kLargestText), path.string());
}

std::vector<std::string> parameter_names(const BlockText& text) {
  std::vector<std::string> names;
  for (const Parameter& p : text.block().parameters) names.push_back(p.name);
  return names;
}

}  // namespace fuseline
