// The menus and lists of combo boxes that were open once.
#pragma once

namespace fuseline::gui {

// Qt keeps the platform's window and the picture of each popup that was ever open, which is as
// large as the popup. Gives up those of popups that are closed; opening one makes them again.
void give_up_closed_popups();

}  // namespace fuseline::gui
