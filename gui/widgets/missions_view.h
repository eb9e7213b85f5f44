// Labs as missions: a list of what can be reached, the task, hints, and how far the session is.
#pragma once

#include <filesystem>
#include <set>

#include "gui/model/missions.h"
#include "gui/widgets/session.h"
#include "gui/widgets/view.h"

class QLabel;
class QListWidget;
class QPushButton;

namespace fuseline::gui {

class MissionsView : public View {
  Q_OBJECT
 public:
  // `state_folder`: where it is kept which missions were done.
  MissionsView(Session& session, const std::filesystem::path& state_folder, QWidget* parent);

  [[nodiscard]] QString id() const override { return QStringLiteral("missions"); }
  [[nodiscard]] QString title() const override { return tr("Missions"); }
  [[nodiscard]] QString hint() const override;
  void refresh() override;
  void show_highlight(const Highlight&) override {}
  void restyle() override;
  void paint_to(QPainter& painter, QSize size) override;
  [[nodiscard]] std::vector<Table> tables() const override { return {}; }  // no numbers of its own

  void choose(const std::string& id);
  [[nodiscard]] const Mission& chosen() const;
  // Whether the session is that of the chosen mission.
  [[nodiscard]] bool is_on() const;
  [[nodiscard]] bool was_done(const std::string& id) const { return done_.contains(id); }

 signals:
  // The session's work may have to be saved first.
  void start_requested(const fuseline::gui::Mission& mission);

 private:
  void show_mission();
  void judge_now();
  [[nodiscard]] QString html() const;
  [[nodiscard]] const Mission* running() const;

  Session& session_;
  std::filesystem::path file_;  // of what was done
  QListWidget* list_;
  QLabel *text_, *now_;
  QPushButton *start_, *hint_;
  std::set<std::string> done_;
  std::map<std::string, int> hints_;  // so many are shown
  MissionState state_;
};

}  // namespace fuseline::gui
