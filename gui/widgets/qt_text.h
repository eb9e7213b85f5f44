// Texts of the view models and of Qt.
#pragma once

#include <QString>
#include <filesystem>
#include <string>

namespace fuseline::gui {

inline QString to_qt(const std::string& text) { return QString::fromStdString(text); }
inline QString to_qt(const std::filesystem::path& path) { return to_qt(path.string()); }
inline std::string from_qt(const QString& text) { return text.toStdString(); }

}  // namespace fuseline::gui
