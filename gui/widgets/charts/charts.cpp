#include "gui/widgets/charts/memory_view.h"
#include "gui/widgets/charts/motion_view.h"
#include "gui/widgets/charts/roofline_view.h"
#include "gui/widgets/charts/serving_view.h"
#include "gui/widgets/charts/sweep_view.h"
#include "gui/widgets/charts/timeline_view.h"
#include "gui/widgets/charts/traffic_view.h"
#include "gui/widgets/charts/validation_view.h"
#include "gui/widgets/charts/waterfall_view.h"
#include "gui/widgets/charts/whole_model_view.h"

namespace fuseline::gui {

std::vector<View*> make_chart_views(Workbench& bench, QWidget* parent) {
  auto* memory = new MemoryView(bench, parent);
  auto* motion = new MotionView(bench, parent);
  QObject::connect(motion, &MotionView::moved_on, memory, &MemoryView::follow);
  return {new TrafficView(bench, parent),
          new WaterfallView(bench, parent),
          new RooflineView(bench, parent, MemoryLevel::hbm),
          new RooflineView(bench, parent, MemoryLevel::l2),
          memory,
          new TimelineView(bench, parent),
          motion,
          new WholeModelView(bench, parent),
          new ServingView(bench, parent),
          new ValidationView(bench, parent),
          new SweepView(bench, parent)};
}

}  // namespace fuseline::gui
