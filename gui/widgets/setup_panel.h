// What is predicted: model, GPU, phase, sizes, storage type, fidelity.
#pragma once

#include <QWidget>

#include "gui/widgets/session.h"

class QComboBox;
class QFormLayout;
class QSpinBox;

namespace fuseline::gui {

class SetupPanel : public QWidget {
  Q_OBJECT
 public:
  SetupPanel(Session& session, QWidget* parent);
  void refresh();  // from the document

 private:
  QComboBox* add_choice(QFormLayout& form, const char* name, const QString& label,
                        const char* term);
  QSpinBox* add_size(QFormLayout& form, const char* name, const QString& label, const char* term,
                     std::int64_t Workload::*size);
  QSpinBox* add_spin(QFormLayout& form, const char* name, const QString& label, const QString& tip);
  void add_layers(QFormLayout& form);
  void fill(QComboBox& box, const std::vector<Choice>& choices, const std::string& now);
  void choose_file(FileKind kind);
  void add_format(QFormLayout& form, const char* name, const QString& label, const char* term,
                  FormatOf of);
  void fill_formats(QComboBox& box, FormatOf of);
  void show_formats();
  void change(const QString& what, const std::function<void(Setup&)>& how);

  Session& session_;
  QComboBox *model_, *gpu_, *phase_, *dtype_, *fidelity_;
  std::vector<std::pair<FormatOf, QComboBox*>> formats_;
  QSpinBox *batch_, *seq_, *context_, *layers_;
};

}  // namespace fuseline::gui
