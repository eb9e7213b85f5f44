#include "model/programs/rules.h"

#include <algorithm>

#include "base/error.h"

namespace fuseline {

namespace {

constexpr ProgramRule kRules[] = {
    {"syntax", "The text is none of the language's."},
    {"version",
     "A text says in which version of the language it is, so that it means the same later."},
    {"statement", "A file holds sizes, functions, tensors, programs and what a plan adds to them."},
    {"hash", "A plan that was written by the program and changed by hand is no longer that plan."},
    {"arguments", "A primitive's line has its own values, tensors and arguments, and no others."},
    {"results", "A primitive makes a fixed number of values."},
    {"number-format", "Elements of tensors lie in memory in one of the known formats."},
    {"unknown-tensor", "A program moves tensors that the file declares."},
    {"unknown-operator", "A plan's operators are those of the project."},
    {"unknown-primitive",
     "A program's lines are primitives, maps and functions that the file defines."},
    {"undefined-value", "A value exists from the line that makes it on, within its program."},
    {"defined-twice",
     "A name stands for one value, tensor or function, so that a line has one meaning."},
    {"shape", "A tile meets tiles, rows, columns and tables of its own place: their sizes fit it."},
    {"mainloop", "The mainloop is fixed: it copies panels of operands whose shapes match."},
    {"second-mainloop", "A tile of a second product needs columns that other thread blocks make."},
    {"whole-row", "A tile has a part of the row; the rest is in other thread blocks."},
    {"whole-column", "A tile has a part of the column; the rest is in other thread blocks."},
    {"other-rows", "Rows above or below the tile are in other thread blocks' tiles."},
    {"pair-across-tiles",
     "The partners of a pair are in another thread's registers, or in another tile."},
    {"two-layouts",
     "Both operands of a step have one order and width, or an element meets another's partner."},
    {"stored-twice",
     "Two stores of one element in one program leave it to chance which one stays."},
    {"unused-value",
     "A step whose result nothing reads takes time and bytes for nothing; most often a name is "
     "mistyped."},
    {"stores-nothing", "A program without a store leaves no trace of its work."},
    {"alias", "An input, a weight or a table is the caller's, or is read by other layers."},
    {"in-place",
     "Another tile still reads what this tile would overwrite: tiles run in any order."},
    {"read-before-stored",
     "A kernel reads what kernels before it stored; the order is the plan's."},
    {"unfinished-partial",
     "Partials of a row come from several thread blocks: only a later kernel has all of them."},
    {"no-finisher",
     "A reduction across tiles leaves partials, which mean nothing until a kernel joins them."},
    {"several-finishers",
     "Partials are read once, by the kernel that finishes them: others read its result."},
    {"on-chip", "What stays on chip is gone when its kernel ends."},
    {"output-not-stored", "An output is what the caller gets: every element of it is stored."},
    {"operators", "Every operator of the plan runs once, in one kernel."},
    {"kernel-name", "Kernels are told apart by their names."},
    {"tile",
     "The epilogue's values and operands wait in registers and shared memory beside the "
     "mainloop's."},
};

}  // namespace

std::span<const ProgramRule> program_rules() { return kRules; }

const ProgramRule& program_rule(const std::string& name) {
  const auto at =
      std::ranges::find_if(kRules, [&](const ProgramRule& r) { return name == r.name; });
  FUSELINE_ASSERT(at != std::end(kRules), "no rule of programs: " + name);
  return *at;
}

}  // namespace fuseline
