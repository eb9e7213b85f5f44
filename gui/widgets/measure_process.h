// A command that measures, with what it has said so far. It runs in a process group of its own, so
// that cancelling reaches what it has started too.
#pragma once

#include <QObject>
#include <QTimer>
#include <string>

#include "sim/measured/measuring_lines.h"

class QProcess;

namespace fuseline::gui {

class MeasureProcess : public QObject {
  Q_OBJECT
 public:
  explicit MeasureProcess(QObject* parent);
  ~MeasureProcess() override;  // ends what still runs

  void start(const std::string& shell);  // for `sh -c`; ends what runs
  // Like Ctrl-C; what does not end then is killed after some seconds.
  void cancel();
  [[nodiscard]] bool is_running() const { return process_ != nullptr; }
  [[nodiscard]] const Measuring& seen() const { return reader_.seen(); }
  void wait();  // until it has ended, and ended() was told

 signals:
  void changed();
  // `why`: empty where it was measured, else the reason; cancelled: nobody needs one.
  void ended(bool cancelled, const QString& why);

 private:
  void read();
  void finish();
  void signal_group(int number);
  void drop();

  QProcess* process_ = nullptr;
  QTimer patience_;  // after a cancel
  MeasuringReader reader_;
  std::string errors_;
  std::string broken_;  // why its lines could not be read
  qint64 group_ = 0;    // of processes: the command and what it started
  bool cancelled_ = false;
};

}  // namespace fuseline::gui
