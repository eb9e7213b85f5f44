// Opening, saving and recovering through the dialogs that a person sees.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QAction>
#include <QFileDialog>
#include <QLineEdit>
#include <fstream>

#include "tests/gui/widgets/window_support.h"

namespace fuseline::gui {
namespace {

using test::Window;
using ::testing::HasSubstr;

const OnChipEdge kLegalEdge{"down", "residual2"};

// Types a path into the file dialog that opens next, and Enter; an empty path is Esc.
void answer_next_file_dialog(const std::filesystem::path& path) {
  QTimer::singleShot(50, qApp, [path] {
    auto* dialog = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
    ASSERT_NE(dialog, nullptr);
    auto* edit = dialog->findChild<QLineEdit*>("fileNameEdit");
    ASSERT_NE(edit, nullptr);
    if (path.empty()) {
      QTest::keyClick(dialog, Qt::Key_Escape);
      return;
    }
    edit->setFocus();
    edit->selectAll();
    QTest::keyClicks(edit, QString::fromStdString(path.string()));
    QTest::keyClick(edit, Qt::Key_Return);
  });
}

// Presses the button of the next modal message box with that text.
void press_next(const QString& button, QString* said = nullptr) {
  QTimer::singleShot(50, qApp, [button, said] {
    auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
    ASSERT_NE(box, nullptr);
    if (said != nullptr) *said = box->text();
    for (QAbstractButton* b : box->buttons()) {
      if (b->text().remove('&') == button) {
        QTest::mouseClick(b, Qt::LeftButton);
        return;
      }
    }
    ADD_FAILURE() << "no button " << button.toStdString();
    box->close();
  });
}

TEST(Files, SaveAsWritesAScenarioAndOpenReadsItBack) {
  Window window;
  window.click_edge(kLegalEdge);
  const Document work = window.bench().document();
  const std::filesystem::path file = window.folder() / "mine.toml";
  answer_next_file_dialog(window.folder() / "mine");  // the ending is added
  window->action("save-as")->trigger();
  ASSERT_TRUE(std::filesystem::exists(file));
  EXPECT_EQ(window.session().path(), file);
  EXPECT_FALSE(window.session().is_dirty());
  EXPECT_THAT(window->windowTitle().toStdString(), HasSubstr("mine.toml"));

  Window other(test::window_document({"coda"}));
  answer_next_file_dialog(file);
  other->action("open")->trigger();
  other.settle();
  EXPECT_EQ(other.bench().document(), work);
  EXPECT_EQ(other.session().recent().list().front(), file);
}

TEST(Files, ADialogThatIsLeftDoesNothing) {
  Window window;
  window.click_edge(kLegalEdge);
  const Document before = window.bench().document();
  answer_next_file_dialog({});
  window->action("save-as")->trigger();
  answer_next_file_dialog({});
  window->action("open")->trigger();
  EXPECT_EQ(window.bench().document(), before);
  EXPECT_TRUE(window.session().is_dirty());
  EXPECT_TRUE(window.session().path().empty());
}

TEST(Files, ABrokenFileIsRefusedWithLineAndReasonAndTheSessionStays) {
  Window window;
  window.click_edge(kLegalEdge);
  const Document before = window.bench().document();
  const std::filesystem::path file = window.folder() / "broken.toml";
  struct Case {
    const char* text;
    const char* line;
    const char* reason;
  };
  for (const Case& c : {Case{"model = \"llama2-7b\"\ngpu = \n", "line 2", "expected value"},
                        Case{"title = \"t\"\nmodel = \"llama2-7b\"\ngpu = \"h200\"\nphase = "
                             "\"forward\"\nseq = 64\npolicies = [\"codaa\"]\n",
                             "broken.toml", "coda"},
                        Case{"title = \"t\"\nmodel = \"no-such-model\"\ngpu = \"h200\"\nphase = "
                             "\"forward\"\nseq = 64\npolicies = [\"coda\"]\n",
                             "broken.toml", "no-such-model"}}) {
    std::ofstream(file) << c.text;
    answer_next_file_dialog(file);
    window->action("open")->trigger();
    const std::string said = test::take_failure(*window).toStdString();
    EXPECT_THAT(said, HasSubstr("broken.toml")) << c.text;
    EXPECT_THAT(said, HasSubstr(c.line)) << c.text;
    EXPECT_THAT(said, HasSubstr(c.reason)) << c.text;
    EXPECT_EQ(window.bench().document(), before);
    EXPECT_TRUE(window.session().is_dirty());
    EXPECT_TRUE(window->action("undo")->isEnabled());
  }
}

TEST(Files, AFolderThatCannotBeWrittenIsAMessageAndTheWorkStaysUnsaved) {
  Window window;
  window.click_edge(kLegalEdge);
  EXPECT_FALSE(window.session().save("/no/such/folder/mine.toml"));
  EXPECT_THAT(test::take_failure(*window).toStdString(), HasSubstr("/no/such/folder"));
  EXPECT_TRUE(window.session().is_dirty());
  EXPECT_TRUE(window.session().path().empty());
}

// As a killed window leaves its work: the process of that number is no more.
std::filesystem::path leave_behind(Window& in, const Document& work) {
  const std::filesystem::path left = in.folder() / "autosave-999999999.toml";
  save_document(work, left);
  return left;
}

class Recovery : public ::testing::Test {
 protected:
  Recovery() {
    Window window;
    window.click_edge(kLegalEdge);
    work_ = window.bench().document();
  }
  Document work_;
};

TEST_F(Recovery, IsOfferedAndGivesTheWorkBackUnsaved) {
  Window window(test::window_document({"coda"}));
  const std::filesystem::path left = leave_behind(window, work_);
  QString said;
  press_next("Recover", &said);
  window->files().offer_recovery();
  window.settle();
  EXPECT_THAT(said.toStdString(), HasSubstr("ended before"));
  EXPECT_EQ(window.bench().document(), work_);
  EXPECT_TRUE(window.session().is_dirty());
  EXPECT_FALSE(std::filesystem::exists(left));
}

TEST_F(Recovery, CanBePutOffAndThrownAway) {
  Window window(test::window_document({"coda"}));
  const Document before = window.bench().document();
  const std::filesystem::path left = leave_behind(window, work_);
  press_next("Later");
  window->files().offer_recovery();
  EXPECT_TRUE(std::filesystem::exists(left));
  press_next("Discard");
  window->files().offer_recovery();
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_EQ(window.bench().document(), before);
  window->files().offer_recovery();  // nothing to ask: returns at once
}

TEST_F(Recovery, OfAFileThatIsDamagedSaysSoAndChangesNothing) {
  Window window(test::window_document({"coda"}));
  const Document before = window.bench().document();
  const std::filesystem::path left = leave_behind(window, work_);
  std::ofstream(left) << "model = \n";
  press_next("Recover");
  window->files().offer_recovery();
  EXPECT_THAT(test::take_failure(*window).toStdString(), HasSubstr("line 1"));
  EXPECT_EQ(window.bench().document(), before);
  EXPECT_TRUE(std::filesystem::exists(left));
}

}  // namespace
}  // namespace fuseline::gui
