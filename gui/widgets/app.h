// The program behind fuseline-gui: what its arguments ask for.
#pragma once

#include <QSize>
#include <QStringList>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace fuseline::gui {

struct AppOptions {
  std::string session;        // a scenario; empty: the default comparison
  std::string block;          // a block in the place of the session's; empty: its own
  std::string plan;           // a plan's file, as a further run; empty: none
  std::string export_folder;  // empty: a window
  QSize size{1200, 800};
  double scale = 1;
  QStringList formats{"png"};
  QStringList views;         // by name, "window" for all of it; empty: all
  std::optional<bool> dark;  // empty: as the desktop
  std::string run;           // by name, shown by graph and table; empty: the last prediction
  std::string beside;        // by name, the run in step with it; empty: none
  std::string kernel;        // of the shown run, selected; empty: none
  std::string trace;         // a profiler's trace; empty: none
  std::string front;         // the view that is raised; empty: as usual
  bool help = false;
  bool version = false;
};

// Arguments without the program's name. InputError: file "command line".
AppOptions parse_options(const std::vector<std::string>& args);

std::string usage();

// Exit status as the command line's. Messages go to `err`, names of exported files to `out`.
int run_app(int& argc, char** argv, std::ostream& out, std::ostream& err);

}  // namespace fuseline::gui
