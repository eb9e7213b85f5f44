#include "gui/widgets/app.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <QApplication>
#include <QMessageBox>
#include <QTimer>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <ostream>

#include "base/error.h"
#include "gui/model/block_editor.h"
#include "gui/model/document.h"
#include "gui/model/kernel_code.h"
#include "gui/model/run_plan.h"
#include "gui/widgets/charts/motion_view.h"
#include "gui/widgets/code_view.h"
#include "gui/widgets/held_memory.h"
#include "gui/widgets/main_window.h"
#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

namespace {

enum Status { done = 0, wrong_input = 2, something_missing = 3, our_bug = 70 };

const char* const kWholeWindow = "window";
constexpr int kLeastSide = 200, kMostSide = 16384;

[[noreturn]] void refuse(const std::string& field, const std::string& value,
                         const std::string& message, const std::string& allowed) {
  throw InputError({.file = "command line",
                    .field = field,
                    .value = value,
                    .message = message,
                    .allowed = allowed});
}

int side(const std::string& text, const std::string& all) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < kLeastSide ||
      value > kMostSide) {
    refuse("--size", all, "is no size of a picture", "WIDTHxHEIGHT, each from 200 to 16384");
  }
  return value;
}

QSize parse_size(const std::string& text) {
  const std::size_t x = text.find('x');
  if (x == std::string::npos) side({}, text);
  return {side(text.substr(0, x), text), side(text.substr(x + 1), text)};
}

QStringList parse_formats(const std::string& text) {
  const QStringList formats = to_qt(text).split(',');
  for (const QString& format : formats) {
    if (!kPictureFormats.contains(format)) {
      refuse("--format", from_qt(format), "is no format of pictures", "png, svg, pdf");
    }
  }
  return formats;
}

double parse_scale(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 1 && value <= 4)) {
    refuse("--scale", text, "is no scale", "a number from 1 to 4");
  }
  return value;
}

// Exceptions out of a slot would end the program: they are told instead. The box comes once the
// event is delivered: one that waited for its answer within the delivery would let other events
// delete what Qt still walks over, as it does while it tells all widgets of other colours.
class Application : public QApplication {
 public:
  Application(int& argc, char** argv, std::ostream& err) : QApplication(argc, argv), err_(err) {}
  bool notify(QObject* receiver, QEvent* event) override {
    try {
      return QApplication::notify(receiver, event);
    } catch (const std::exception& error) {
      tell(error.what());
      return false;
    }
  }

 private:
  void tell(const std::string& what) {
    err_ << "fuseline-gui: internal error (a bug of fuseline, please report it): " << what
         << std::endl;
    if (told_) return;  // the same picture may be drawn many times
    told_ = true;
    QTimer::singleShot(0, this, [this, what] {
      auto* box = new QMessageBox(QMessageBox::Critical, tr("A bug of fuseline"),
                                  tr("Please report it: %1").arg(to_qt(what)), QMessageBox::Ok);
      box->setObjectName("bug");
      box->setAttribute(Qt::WA_DeleteOnClose);
      connect(box, &QObject::destroyed, this, [this] { told_ = false; });
      box->open();
    });
  }

  std::ostream& err_;
  bool told_ = false;
};

bool has_display() {
  for (const char* name : {"QT_QPA_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return true;
  }
  return false;
}

// Where no desktop says otherwise, the size that desktops have, and a font by name: pictures are
// the same on every machine that has it.
void set_font() {
  QFont font = QApplication::font();
  if (QApplication::platformName() == "offscreen") {
    font = QFont("DejaVu Sans");  // another one where it is not installed
    font.setPointSizeF(9.5);
  }
  QApplication::setFont(font);
}

// As asked for, else as they were chosen in the last window, else as the desktop.
void set_colours(const AppOptions& options) {
  std::optional<bool> dark = options.dark;
  if (!dark && options.export_folder.empty()) dark = chosen_colours(state_folder());
  const bool is_dark = dark.value_or(Theme(QApplication::palette()).is_dark());
  QApplication::setStyle("Fusion");
  QApplication::setPalette(is_dark ? dark_palette() : light_palette());
}

RunId named_run(Session& session, const std::string& option, const std::string& name) {
  const RunList& runs = session.bench().document().runs;
  const Run* run = runs.find(name);
  if (run != nullptr) return run->id;
  std::vector<std::string> names;
  for (const Run& r : runs.all()) names.push_back(r.name);
  throw InputError({.file = "command line",
                    .field = option,
                    .value = name,
                    .message = "is no run of the session",
                    .nearest = nearest_name(name, names)});
}

void select_named_kernel(Session& session, const std::string& name) {
  const RunView* view = session.bench().results().find(session.bench().shown_run());
  std::vector<std::string> names;
  if (view != nullptr && view->ok())
    for (const KernelRow& row : view->result->kernels) names.push_back(row.estimate.name);
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    throw InputError({.file = "command line",
                      .field = "--kernel",
                      .value = name,
                      .message = "is no kernel of the shown run",
                      .nearest = nearest_name(name, names)});
  session.select(kernel_thing(view->run.id, static_cast<std::size_t>(found - names.begin())));
}

View* known_view(const std::string& id, const char* option, const MainWindow& window) {
  if (View* view = window.view(to_qt(id))) return view;
  std::vector<std::string> ids{kWholeWindow};
  for (const View* v : window.views()) ids.push_back(from_qt(v->id()));
  throw InputError({.file = "command line",
                    .field = option,
                    .value = id,
                    .message = "is no view",
                    .allowed = fmt::format("{}", fmt::join(ids, ", ")),
                    .nearest = nearest_name(id, ids)});
}

// What options ask for beyond the session.
void set_up(const AppOptions& options, Session& session, MainWindow& window) {
  if (!options.kernel.empty()) select_named_kernel(session, options.kernel);
  if (!options.beside.empty())
    qobject_cast<MotionView*>(window.view("motion"))
        ->show_beside(named_run(session, "--beside", options.beside));
  if (!options.trace.empty()) session.take_in(options.trace, FileKind::trace);
  if (!options.front.empty()) window.raise_view(known_view(options.front, "--front", window)->id());
}

std::vector<View*> chosen_views(const AppOptions& options, const MainWindow& window) {
  if (options.views.empty()) return window.views();
  std::vector<View*> chosen;
  for (const QString& id : options.views) {
    if (id == kWholeWindow) continue;
    chosen.push_back(known_view(from_qt(id), "--views", window));
  }
  return chosen;
}

// What was measured is of the models' own blocks.
Document chosen_document(const AppOptions& options) {
  Document document =
      options.session.empty() ? default_document() : load_document(options.session).document;
  if (options.block.empty()) return document;
  document.setup = with_block_of(document.setup, options.block);
  if (!options.session.empty()) return document;
  document.title = "Block " + options.block;
  document.measurements.clear();
  document.runs = runs_for(document.setup, default_policies(), {}, "");
  return document;
}

Document first_document(const AppOptions& options) {
  Document document = chosen_document(options);
  if (!options.plan.empty()) document.runs.add(run_of_plan(options.plan));
  return document;
}

int export_pictures(const AppOptions& options, std::ostream& out) {
  const std::filesystem::path state = state_folder();
  Session session(first_document(options), state);
  if (!options.run.empty()) session.show_run(named_run(session, "--run", options.run));
  MainWindow window(session, options.export_folder);  // no layout is read from there
  const std::vector<View*> views = chosen_views(options, window);
  window.resize(options.size.expandedTo(window.minimumSize()));
  window.show();
  if (!options.block.empty()) window.raise_view("block");
  session.wait();
  QApplication::processEvents();
  set_up(options, session, window);
  const QStringList names =
      export_views(session.bench(), views, options.export_folder,
                   {.size = options.size, .scale = options.scale, .formats = options.formats});
  for (const QString& name : names) out << from_qt(name) << "\n";
  QApplication::processEvents();
  session.end_without_autosave();
  if (!options.views.empty() && !options.views.contains(kWholeWindow)) return done;
  window.graph().finish();
  if (!options.front.empty()) known_view(options.front, "--front", window)->finish();
  QApplication::processEvents();
  const std::filesystem::path whole = std::filesystem::path(options.export_folder) / "window.png";
  if (!window.grab().save(to_qt(whole))) {
    throw InputError({.file = whole.string(), .message = "cannot be written"});
  }
  out << "window.png\n";
  return done;
}

int show_window(const AppOptions& options) {
  const std::filesystem::path state = state_folder();
  Session session(options.session.empty() ? first_document(options) : default_document(), state);
  MainWindow window(session, state);
  window.show();
  if (!options.session.empty()) window.files().open(options.session);
  if (!options.session.empty() && !options.block.empty())
    session.act([&](Workbench& bench) { bench.choose_block(options.block); });
  if (!options.session.empty() && !options.plan.empty())
    session.act([&](Workbench& bench) { bench.add_run(run_of_plan(options.plan)); });
  if (!options.block.empty()) window.raise_view("block");
  QTimer::singleShot(0, &window, [&] { window.files().offer_recovery(); });
  return QApplication::exec();
}

}  // namespace

std::string usage() {
  return "fuseline-gui: try fusion choices, see predicted beside measured.\n\n"
         "usage: fuseline-gui [SCENARIO.toml | MEASUREMENTS] [--block FILE.block] [--plan "
         "FILE.fuse]\n"
         "       fuseline-gui --export DIR [SCENARIO.toml] [--block FILE.block] [--plan "
         "FILE.fuse]\n"
         "                    [--size WxH] [--scale N] [--dark] [--format png,svg,pdf]\n"
         "                    [--views LIST] [--run NAME] [--beside NAME] [--kernel NAME]\n"
         "                    [--trace FILE] [--front VIEW]\n\n"
         "  --block FILE   a block in the place of the session's: a shipped name or a file\n"
         "  --plan FILE    a plan of the session's block, as explain --format program prints it, "
         "as "
         "one more run\n"
         "  --export DIR   write every view's picture, and its data as CSV and JSON; needs no "
         "display\n"
         "  --size WxH     of the pictures, 1200x800\n"
         "  --scale N      pixels of a PNG for each of --size, 1 to 4\n"
         "  --format LIST  png, svg, pdf\n"
         "  --views LIST   only these pictures: graph, traffic, waterfall, ..., and window for all "
         "of "
         "it\n"
         "  --run NAME     the run that graph, kernels and waterfall show\n"
         "  --beside NAME  the run that moves in step with it\n"
         "  --kernel NAME  the kernel of the shown run that is selected\n"
         "  --trace FILE   a profiler's trace of the session's block\n"
         "  --front VIEW   the view that is in front in the picture of the window\n"
         "  --dark, --light  colours; else as last chosen in a window, or as the desktop\n\n"
         "exit status: 0 done, 2 wrong input, 3 something needed is not here, 70 a bug of "
         "fuseline\n";
}

AppOptions parse_options(const std::vector<std::string>& args) {
  AppOptions o;
  for (std::size_t i = 0; i < args.size(); ++i) {
    std::string name = args[i];
    std::optional<std::string> inline_value;
    if (const std::size_t equals = name.find('=');
        name.starts_with("--") && equals != std::string::npos) {
      inline_value = name.substr(equals + 1);
      name.resize(equals);
    }
    const auto value = [&] {
      if (inline_value) return *inline_value;
      if (i + 1 >= args.size()) refuse(name, {}, "needs a value", {});
      return args[++i];
    };
    if (name == "--export") {
      o.export_folder = value();
      if (o.export_folder.empty()) refuse(name, {}, "needs a folder", {});
    } else if (name == "--block") {
      o.block = value();
      if (o.block.empty()) refuse(name, {}, "needs a block's name or file", {});
    } else if (name == "--plan") {
      o.plan = value();
      if (o.plan.empty()) refuse(name, {}, "needs a file", {});
    } else if (name == "--size") {
      o.size = parse_size(value());
    } else if (name == "--scale") {
      o.scale = parse_scale(value());
    } else if (name == "--format") {
      o.formats = parse_formats(value());
    } else if (name == "--views") {
      o.views = to_qt(value()).split(',');
    } else if (name == "--run") {
      o.run = value();
    } else if (name == "--beside") {
      o.beside = value();
    } else if (name == "--kernel") {
      o.kernel = value();
    } else if (name == "--trace") {
      o.trace = value();
    } else if (name == "--front") {
      o.front = value();
    } else if (name == "--dark") {
      o.dark = true;
    } else if (name == "--light") {
      o.dark = false;
    } else if (name == "--help" || name == "-h") {
      o.help = true;
    } else if (name == "--version") {
      o.version = true;
    } else if (name.starts_with("-")) {
      throw InputError(
          {.file = "command line",
           .value = name,
           .message = "there is no such option",
           .nearest = nearest_name(name, {"--export", "--block", "--plan", "--size", "--scale",
                                          "--format", "--views", "--run", "--beside", "--kernel",
                                          "--trace", "--front", "--dark", "--light", "--help"})});
    } else if (!o.session.empty()) {
      refuse({}, name, "is a second session", "one session");
    } else {
      o.session = name;
    }
  }
  return o;
}

int run_app(int& argc, char** argv, std::ostream& out, std::ostream& err) {
  // The window starts itself again to compile a kernel: this process is that one.
  if (const std::optional<bool> answered = answered_compile(argc, argv))
    return *answered ? done : our_bug;
  share_arenas();
  try {
    const AppOptions options = parse_options({argv + (argc > 0 ? 1 : 0), argv + argc});
    if (options.help) {
      out << usage() << std::flush;
      return done;
    }
    if (options.version) {
      out << "fuseline-gui 0.1.0\n" << std::flush;
      return done;
    }
    if (!options.export_folder.empty()) {
      qputenv("QT_QPA_PLATFORM", "offscreen");
      // The picture of the window has as many pixels for each of its own as those of the views.
      qputenv("QT_SCALE_FACTOR", QByteArray::number(options.scale));
    } else if (!has_display()) {
      throw MissingError("there is no display; 'fuseline-gui --export DIR' needs none");
    }
    QApplication::setAttribute(Qt::AA_EnableHighDpiScaling);
    QApplication::setAttribute(Qt::AA_UseHighDpiPixmaps);
    // A display at 150 % shows 150 % and neither 100 nor 200; pictures have the size asked for.
    if (options.export_folder.empty())
      QApplication::setHighDpiScaleFactorRoundingPolicy(
          Qt::HighDpiScaleFactorRoundingPolicy::PassThrough);
    QApplication::setApplicationName("fuseline");
    int one = 1;  // Qt would read options of its own
    Application app(one, argv, err);
    app.setProperty(kCompilerProperty, QCoreApplication::applicationFilePath());
    set_font();
    set_colours(options);
    return options.export_folder.empty() ? show_window(options) : export_pictures(options, out);
  } catch (const InputError& error) {
    err << "fuseline-gui: error: " << error.what() << "\n";
    return wrong_input;
  } catch (const MissingError& error) {
    err << "fuseline-gui: not available: " << error.what() << "\n";
    return something_missing;
  } catch (const std::exception& error) {
    err << "fuseline-gui: internal error (a bug of fuseline, please report it): " << error.what()
        << "\n";
    return our_bug;
  }
}

}  // namespace fuseline::gui
