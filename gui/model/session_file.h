// Sessions on disk: scenarios that the command line reads too.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "gui/model/document.h"

namespace fuseline::gui {

struct LoadedDocument {
  Document document;
  std::vector<std::string>
      notes;  // what could not be used, such as measurements that are not there
};

// A session, or any scenario: its policies become runs, with what was measured of them. InputError
// names file, line, field and reason; nothing else happens then.
LoadedDocument load_document(const std::string& path);

// What is written: `fuseline predict` reads it and predicts the runs that follow the document's
// setup. Policy `custom` there is the first custom run.
Scenario to_scenario(const Document& document);
std::string document_text(const Document& document, const std::filesystem::path& folder);

// All or nothing. InputError when the file cannot be written.
void save_document(const Document& document, const std::filesystem::path& path);

// XDG_STATE_HOME/fuseline, else ~/.local/state/fuseline, else fuseline in the folder for temporary
// files; made when it is not there.
std::filesystem::path state_folder();

// The files last opened or saved, newest first.
class RecentFiles {
 public:
  static constexpr std::size_t kMost = 10;
  explicit RecentFiles(std::filesystem::path folder);  // where the list is kept
  void add(const std::filesystem::path& path);         // to the front; remembered in full
  void clear();
  [[nodiscard]] std::vector<std::filesystem::path> list() const;  // those that still exist

 private:
  void store(const std::vector<std::string>& lines) const;
  [[nodiscard]] std::vector<std::string> lines() const;
  std::filesystem::path file_;
};

// A copy of unsaved work that survives a kill. One file for each running window, which holds a lock
// on it. The system opens the lock when the program ends in whatever way; the number of a killed
// process stays taken until its parent has asked for it.
class Autosave {
 public:
  explicit Autosave(std::filesystem::path folder);
  ~Autosave();
  Autosave(const Autosave&) = delete;
  Autosave& operator=(const Autosave&) = delete;

  // `original`: the session's own file, may be empty. Errors are InputErrors as in save_document.
  void store(const Document& document, const std::filesystem::path& original);
  void discard();  // after a save, and on a proper end

  // Work that windows left behind which run no longer, newest first.
  struct Left {
    std::filesystem::path file;
    std::filesystem::path original;  // empty: never saved
  };
  [[nodiscard]] std::vector<Left> left_behind() const;

 private:
  void unlock();

  std::filesystem::path folder_;
  std::filesystem::path file_;
  int lock_ = -1;  // of file_; -1: none
};

}  // namespace fuseline::gui
