#include "gui/widgets/held_memory.h"

#include <cstdlib>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "gui/model/kept_walks.h"
#include "gui/model/lent_threads.h"
#include "gui/widgets/closed_popups.h"

namespace fuseline::gui {

void share_arenas() {
#ifdef __GLIBC__
  constexpr int kArenas = 2;
  mallopt(M_ARENA_MAX, kArenas);
#endif
}

HeldMemory::HeldMemory(QObject* parent) : QObject(parent) {
  idle_.setSingleShot(true);
  idle_.setInterval(kIdleMs);
  connect(&idle_, &QTimer::timeout, this, [] {
    give_up_closed_popups();
    // Some milliseconds, which the window's thread need not spend.
    LentThreads::shared().run([] {
      bound_walks();
      LentThreads::shared().end_waiting();
#ifdef __GLIBC__
      malloc_trim(0);
#endif
    });
  });
}

}  // namespace fuseline::gui
