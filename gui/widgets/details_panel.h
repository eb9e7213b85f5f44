// The details strip: everything exact about the hovered or selected thing, and where the machine's
// numbers come from.
#pragma once

#include <QTextBrowser>

#include "gui/widgets/session.h"

namespace fuseline::gui {

class DetailsPanel : public QTextBrowser {
  Q_OBJECT
 public:
  DetailsPanel(Session& session, QWidget* parent);
  void refresh();

 protected:
  void changeEvent(QEvent* event) override;

 private:
  Session& session_;
  QString shown_;
};

}  // namespace fuseline::gui
