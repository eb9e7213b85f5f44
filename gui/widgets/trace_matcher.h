// The launches of a traced block in a table, and a choice of the kernel that those which are chosen
// there are: for what the names of launches do not tell.
#pragma once

#include <QWidget>
#include <optional>
#include <vector>

#include "gui/model/trace_import.h"

class QComboBox;
class QPushButton;
class QTableWidget;

namespace fuseline::gui {

class TraceMatcher : public QWidget {
  Q_OBJECT
 public:
  explicit TraceMatcher(QWidget* parent);
  void show_chart(const TraceChart& chart, bool can_go_back);
  [[nodiscard]] std::vector<std::size_t> chosen() const;  // launches

 signals:
  void matched(const std::vector<std::size_t>& launches, std::optional<std::size_t> kernel);
  void taken_back();

 private:
  void show_choice();
  QTableWidget* table_;
  QComboBox* kernel_;
  QPushButton *match_, *back_;
};

}  // namespace fuseline::gui
