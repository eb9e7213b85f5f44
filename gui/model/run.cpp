#include "gui/model/run.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"

namespace fuseline::gui {

namespace {

std::string default_name(const Run& run) {
  if (!run.plan.empty()) return std::filesystem::path(run.plan).stem().string();
  return run.policy + (run.is_measurement() ? ", measured" : "");
}

}  // namespace

RunId RunList::add(Run run) {
  if (run.name.empty()) run.name = default_name(run);
  run.name.resize(std::min(run.name.size(), kLongestName - 4));
  const std::string stem = run.name;
  for (int n = 2; find(run.name) != nullptr; ++n) run.name = stem + " " + std::to_string(n);
  run.id = RunId{next_id_++};
  runs_.push_back(std::move(run));
  if (runs_.size() == 1) baseline_ = runs_.front().id;
  return runs_.back().id;
}

void RunList::remove(RunId id) {
  const auto position = std::ranges::find(runs_, id, &Run::id);
  FUSELINE_ASSERT(position != runs_.end(), "no such run");
  if (runs_.size() == 1) {
    throw InputError({.field = "run",
                      .value = position->name,
                      .message = "is the only one: a comparison needs at least one run"});
  }
  const auto next = runs_.erase(position);
  if (baseline_ == id) baseline_ = next == runs_.end() ? runs_.front().id : next->id;
}

void RunList::rename(RunId id, const std::string& name) {
  Run& run = mutable_at(id);
  const auto fail = [&](const std::string& message) {
    throw InputError({.field = "name",
                      .value = name.substr(0, 40),
                      .message = message,
                      .allowed = "a name of its own of at most " + std::to_string(kLongestName) +
                                 " bytes for each run"});
  };
  if (name.find_first_not_of(' ') == std::string::npos) fail("is empty");
  if (name.size() > kLongestName) fail("is too long");
  const Run* other = find(name);
  if (other != nullptr && other->id != id) fail("is another run's name");
  run.name = name;
}

void RunList::set_baseline(RunId id) { baseline_ = at(id).id; }

void RunList::move(RunId id, std::size_t position) {
  const auto from = std::ranges::find(runs_, id, &Run::id);
  FUSELINE_ASSERT(from != runs_.end() && position < runs_.size(), "no such place");
  Run run = std::move(*from);
  runs_.erase(from);
  runs_.insert(runs_.begin() + static_cast<std::ptrdiff_t>(position), std::move(run));
}

void RunList::set_custom(RunId id, CustomFusion custom) {
  Run& run = mutable_at(id);
  FUSELINE_ASSERT(run.is_custom(), run.name);
  run.custom = std::move(custom);
}

void RunList::set_plan(RunId id, PlanText plan) {
  Run& run = mutable_at(id);
  FUSELINE_ASSERT(run.has_plan(), run.name);
  run.policy = std::move(plan.policy);
  run.plan = std::move(plan.file);
  run.plan_text = std::move(plan.text);
  run.plan_draft = std::move(plan.draft);
}

void RunList::drop_drafts() {
  for (Run& run : runs_) run.plan_draft.clear();
}

void RunList::set_setup(RunId id, std::optional<Setup> setup) {
  mutable_at(id).setup = std::move(setup);
}

const Run* RunList::find(RunId id) const {
  const auto found = std::ranges::find(runs_, id, &Run::id);
  return found == runs_.end() ? nullptr : &*found;
}

const Run* RunList::find(const std::string& name) const {
  const auto found = std::ranges::find(runs_, name, &Run::name);
  return found == runs_.end() ? nullptr : &*found;
}

const Run& RunList::at(RunId id) const {
  const Run* run = find(id);
  FUSELINE_ASSERT(run != nullptr, "no such run");
  return *run;
}

Run& RunList::mutable_at(RunId id) {
  const auto found = std::ranges::find(runs_, id, &Run::id);
  FUSELINE_ASSERT(found != runs_.end(), "no such run");
  return *found;
}

}  // namespace fuseline::gui
