#include "gui/widgets/measure_process.h"

#include <unistd.h>

#include <QProcess>
#include <csignal>

#include "base/error.h"
#include "gui/model/live_measure.h"
#include "gui/widgets/qt_text.h"
#include "gui/widgets/session.h"

namespace fuseline::gui {

namespace {

constexpr int kPatienceMs = 3000;
constexpr std::size_t kMostErrorBytes = 64 << 10;  // the last ones are kept
constexpr int kNoExit = 128;                       // a status of our own for one that was killed

class GroupedProcess : public QProcess {
 public:
  using QProcess::QProcess;

 protected:
  void setupChildProcess() override { ::setpgid(0, 0); }
};

}  // namespace

MeasureProcess::MeasureProcess(QObject* parent) : QObject(parent) {
  patience_.setSingleShot(true);
  patience_.setInterval(kPatienceMs);
  connect(&patience_, &QTimer::timeout, this, [this] { signal_group(SIGKILL); });
}

MeasureProcess::~MeasureProcess() { drop(); }

// Without a word to anybody.
void MeasureProcess::drop() {
  if (process_ == nullptr) return;
  process_->disconnect(this);
  signal_group(SIGKILL);
  process_->waitForFinished(kPatienceMs);
  delete process_;
  process_ = nullptr;
  patience_.stop();
}

void MeasureProcess::start(const std::string& shell) {
  drop();
  reader_ = MeasuringReader();
  errors_.clear();
  broken_.clear();
  cancelled_ = false;
  process_ = new GroupedProcess(this);
  connect(process_, &QProcess::readyReadStandardOutput, this, [this] { read(); });
  connect(process_, &QProcess::readyReadStandardError, this, [this] { read(); });
  connect(process_, QOverload<int, QProcess::ExitStatus>::of(&QProcess::finished), this,
          [this] { finish(); });
  connect(process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart) finish();
  });
  process_->start("sh", {"-c", to_qt(shell)});
  group_ = process_->processId();
  process_->closeWriteChannel();  // a question for a password fails, and is not waited for
  emit changed();
}

void MeasureProcess::read() {
  errors_ += process_->readAllStandardError().toStdString();
  if (errors_.size() > kMostErrorBytes) errors_.erase(0, errors_.size() - kMostErrorBytes);
  bool fresh = false;
  try {
    fresh = reader_.feed(process_->readAllStandardOutput().toStdString());
  } catch (const InputError& error) {
    broken_ = error.what();
    signal_group(SIGKILL);
  }
  if (fresh) emit changed();
}

void MeasureProcess::finish() {
  read();
  reader_.end();
  const bool exited = process_->exitStatus() == QProcess::NormalExit &&
                      process_->error() != QProcess::FailedToStart;
  const int status = exited ? process_->exitCode() : kNoExit;
  // What a shell starts in the background ignores SIGINT, and would go on without the shell.
  if (cancelled_) signal_group(SIGTERM);
  process_->deleteLater();
  process_ = nullptr;
  patience_.stop();
  const bool measured = seen().passed == true && broken_.empty();
  std::string why;
  if (!broken_.empty())
    why = broken_;
  else if (!measured)
    why = reason_of_failure(seen(), errors_, status);
  emit ended(cancelled_ && !measured, to_qt(why));
}

void MeasureProcess::signal_group(int number) {
  if (process_ == nullptr || group_ <= 0) return;
  ::kill(-static_cast<pid_t>(group_), number);
}

void MeasureProcess::cancel() {
  if (process_ == nullptr) return;
  cancelled_ = true;
  signal_group(SIGINT);
  patience_.start();
}

void MeasureProcess::wait() {
  while (process_ != nullptr && process_->waitForFinished(-1)) {
  }
}

}  // namespace fuseline::gui
