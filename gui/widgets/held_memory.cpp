#include "gui/widgets/held_memory.h"

#include <QPixmapCache>
#include <cstdint>
#include <cstdlib>
#include <utility>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "gui/model/kept_walks.h"
#include "gui/model/lent_threads.h"
#include "gui/widgets/closed_popups.h"

// jemalloc's own names, where the program is linked with it. What is freed goes back to the system
// at once: on two busy cores that took no more of the processor than glibc's allocator does.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "narenas:1,dirty_decay_ms:0,muzzy_decay_ms:0,lg_tcache_max:10";
__attribute__((weak)) int mallctl(const char* name, void* old, std::size_t* old_size, void* next,
                                  std::size_t next_size);
}

namespace fuseline::gui {

std::size_t bytes_of_jemalloc() {
  if (mallctl == nullptr) return 0;
  std::uint64_t epoch = 1;  // numbers are of the last time that this was written
  mallctl("epoch", nullptr, nullptr, &epoch, sizeof epoch);
  std::size_t bytes = 0, size = sizeof bytes;
  return mallctl("stats.allocated", &bytes, &size, nullptr, 0) == 0 ? bytes : 0;
}

void give_back_free_memory() {
  if (mallctl != nullptr) {
    mallctl("thread.tcache.flush", nullptr, nullptr, nullptr, 0);
    return;
  }
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void share_arenas() {
#ifdef __GLIBC__
  constexpr int kArenas = 2;
  mallopt(M_ARENA_MAX, kArenas);
#endif
}

HeldMemory::HeldMemory(std::function<void()> give_up, QObject* parent)
    : QObject(parent), give_up_(std::move(give_up)) {
  idle_.setSingleShot(true);
  idle_.setInterval(kIdleMs);
  connect(&idle_, &QTimer::timeout, this, [this] {
    give_up_closed_popups();
    QPixmapCache::clear();  // what the style has drawn of buttons and boxes
    give_up_();
    give_back_free_memory();  // of this thread; below, of the one that is lent
    // Some milliseconds, which the window's thread need not spend.
    LentThreads::shared().run([] {
      bound_walks(kMostWalksAtRest);
      LentThreads::shared().end_waiting();
      give_back_free_memory();
    });
  });
}

}  // namespace fuseline::gui
