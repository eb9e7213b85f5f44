// Labs as missions: a session to begin with, something to reach in it, and how far one is. What is
// reached is read from the session's own predictions, whatever way led there.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gui/model/document.h"
#include "gui/model/results.h"

namespace fuseline::gui {

struct MissionState {
  bool done = false;
  std::string now;  // "HBM traffic −2.1 % of per-operator; wanted −5 %"
};

struct Mission {
  std::string id;                  // "epilogue"
  std::string title;               // "An epilogue that is refused at first"
  int lab = 0;                     // whose subject it is: fuseline lab start N
  std::string task;                // what is to be reached
  std::vector<std::string> hints;  // one after the other
  std::string learnt;              // said when it is done
  std::function<Document()> start;
  std::function<MissionState(const Document&, const Results&)> judge;
};

// From easy to hard.
const std::vector<Mission>& missions();

// Empty results, or a session about something else: not done, and says what is missing.
MissionState judge(const Mission& mission, const Document& document, const Results& results);

}  // namespace fuseline::gui
