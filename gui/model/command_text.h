// The `fuseline` command that gives the numbers of the window.
#pragma once

#include <string>

#include "gui/model/document.h"

namespace fuseline::gui {

struct CommandText {
  std::string command;  // "fuseline predict --model llama2-7b --gpu h200 ... --policy eager,coda"
  std::string note{};   // what has to be done first, such as saving the session; else empty
};

// For all predictions that follow the document's setup. Where words cannot say it ("what if", an
// edited block, choices of edges), the command names the session's file. `file`: where that is, or
// is to be, saved; empty: nowhere yet.
CommandText command_of(const Document& document, const std::string& file);

// For one prediction, under its own setup where it is pinned.
CommandText command_of_run(const Document& document, const Run& run, const std::string& file);

// A word of a POSIX shell, quoted where it must be.
std::string shell_word(const std::string& text);

}  // namespace fuseline::gui
