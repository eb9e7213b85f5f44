// Finds runs, operators, tensors and kernels by name.
#pragma once

#include <QLineEdit>
#include <vector>

#include "gui/widgets/session.h"

class QCompleter;
class QStringListModel;

namespace fuseline::gui {

class SearchBox : public QLineEdit {
  Q_OBJECT
 public:
  SearchBox(Session& session, QWidget* parent);
  [[nodiscard]] const std::vector<SearchHit>& hits() const { return hits_; }

 private:
  void look_up(const QString& text);
  void take(const QString& text);

  Session& session_;
  QStringListModel* texts_;
  QCompleter* completer_;
  std::vector<SearchHit> hits_;
};

}  // namespace fuseline::gui
