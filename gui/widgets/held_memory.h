// What the window's process holds of the machine's memory without using it.
#pragma once

#include <QObject>
#include <QTimer>
#include <cstddef>
#include <functional>

namespace fuseline::gui {

// Before the first thread begins. glibc gives each thread that allocates an arena of its own, up to
// eight for each core. What views leave is scattered over them, and no arena uses what another has
// free. The window's threads share two: little is allocated by more than two at once.
// Where the program is linked with jemalloc (gui/CMakeLists.txt), it has one arena.
void share_arenas();

// Gives what is free back to the system; some milliseconds.
void give_back_free_memory();

// What jemalloc has given out and not got back; 0 where the program's allocator is another one.
std::size_t bytes_of_jemalloc();

// Once nothing has been worked on for kIdleMs: bounds what is kept of the simulator's walks, gives
// up what closed popups hold, what the style has drawn and what `give_up` does, ends the threads
// that wait for work, and gives free memory back to the system.
class HeldMemory : public QObject {
 public:
  static constexpr int kIdleMs = 2000;

  HeldMemory(std::function<void()> give_up, QObject* parent);
  void worked() { idle_.start(); }  // something was computed or drawn

 private:
  QTimer idle_;
  std::function<void()> give_up_;
};

}  // namespace fuseline::gui
