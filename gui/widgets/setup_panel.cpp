#include "gui/widgets/setup_panel.h"

#include <QFileDialog>
#include <QFormLayout>
#include <QLabel>
#include <QSignalBlocker>
#include <QSpinBox>
#include <algorithm>

#include "base/error.h"
#include "gui/model/choices.h"
#include "gui/model/glossary.h"
#include "gui/widgets/qt_text.h"
#include "gui/widgets/short_combo.h"

namespace fuseline::gui {

namespace {

const char* const kFromFile = "\n";  // no name of a model or GPU

// The glossary's text, or the text itself where it has none.
QString tip_of(const char* term) {
  const std::string text = explain_term(term);
  return text.empty() ? QObject::tr(term) : to_qt(text);
}

}  // namespace

SetupPanel::SetupPanel(Session& session, QWidget* parent) : QWidget(parent), session_(session) {
  auto* form = new QFormLayout(this);
  form->setContentsMargins(10, 8, 10, 8);
  form->setVerticalSpacing(5);
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  model_ = add_choice(*form, "setup-model", tr("&Model"),
                      "Whose block is predicted: of the list, a TOML file, or a config.json");
  gpu_ = add_choice(*form, "setup-gpu", tr("&GPU"), "Where it runs: of the list, or a TOML file");
  phase_ = add_choice(*form, "setup-phase", tr("&Phase"),
                      "forward: all tokens at once; decode: new tokens against a cache; train: "
                      "forward and backward");
  for (const Phase phase : {Phase::forward, Phase::decode, Phase::train}) {
    phase_->addItem(name_of(phase), static_cast<int>(phase));
  }
  batch_ = add_size(*form, "setup-batch", tr("&Batch B"), "Sequences at once", &Workload::batch);
  seq_ =
      add_size(*form, "setup-seq", tr("&Tokens T"), "New tokens of each sequence", &Workload::seq);
  context_ =
      add_size(*form, "setup-context", tr("&Context S"),
               "Tokens in the cache, the new ones included; in decode only", &Workload::context);
  add_layers(*form);
  dtype_ = add_choice(*form, "setup-dtype", tr("&Storage"), "Type of tensors in HBM");
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::fp32}) {
    dtype_->addItem(name_of(dtype), static_cast<int>(dtype));
  }
  add_format(*form, "setup-weights", tr("&Weights"),
             "Number format of the layers' weights; scales are tensors of their own",
             FormatOf::weights);
  add_format(*form, "setup-activations", tr("&Activations"),
             "Number format of what the weights are multiplied by; it brings its weights along",
             FormatOf::activations);
  add_format(*form, "setup-kv", tr("&Cache"), "Number format of cached keys and values",
             FormatOf::cache);
  fidelity_ = add_choice(*form, "setup-fidelity", tr("&Fidelity"), "hierarchy");
  for (const Fidelity fidelity : {Fidelity::hierarchy, Fidelity::roofline}) {
    fidelity_->addItem(name_of(fidelity), static_cast<int>(fidelity));
  }

  const auto chosen = QOverload<int>::of(&QComboBox::activated);
  connect(model_, chosen, this, [this](int index) {
    const QString value = model_->itemData(index).toString();
    if (value == kFromFile) return choose_file(FileKind::model);
    change(tr("model %1").arg(value), [&](Setup& s) { s.model = from_qt(value); });
  });
  connect(gpu_, chosen, this, [this](int index) {
    const QString value = gpu_->itemData(index).toString();
    if (value == kFromFile) return choose_file(FileKind::gpu);
    change(tr("GPU %1").arg(value), [&](Setup& s) { s.gpu = from_qt(value); });
  });
  connect(phase_, chosen, this, [this](int index) {
    const auto phase = static_cast<Phase>(phase_->itemData(index).toInt());
    change(tr("phase %1").arg(name_of(phase)), [&](Setup& s) { s = with_phase(s, phase); });
  });
  connect(dtype_, chosen, this, [this](int index) {
    const auto dtype = static_cast<Dtype>(dtype_->itemData(index).toInt());
    change(tr("storage %1").arg(name_of(dtype)), [&](Setup& s) { s.workload.dtype = dtype; });
  });
  connect(fidelity_, chosen, this, [this](int index) {
    const auto fidelity = static_cast<Fidelity>(fidelity_->itemData(index).toInt());
    change(tr("fidelity %1").arg(name_of(fidelity)), [&](Setup& s) { s.fidelity = fidelity; });
  });
  refresh();
}

QComboBox* SetupPanel::add_choice(QFormLayout& form, const char* name, const QString& label,
                                  const char* term) {
  auto* box = new ShortCombo(this);
  box->setObjectName(name);
  const QString tip = tip_of(term);
  box->setToolTip(tip);
  auto* text = new QLabel(label, this);
  text->setBuddy(box);
  text->setToolTip(tip);
  form.addRow(text, box);
  return box;
}

void SetupPanel::add_format(QFormLayout& form, const char* name, const QString& label,
                            const char* term, FormatOf of) {
  auto* box = qobject_cast<ShortCombo*>(add_choice(form, name, label, term));
  formats_.emplace_back(of, box);
  box->fill_before_showing([this, box, of] { fill_formats(*box, of); });
  connect(box, QOverload<int>::of(&QComboBox::activated), this, [this, box, of, label](int index) {
    const std::string value = from_qt(box->itemData(index).toString());
    const QString what = QString(label).remove('&').toLower() + " " + box->itemText(index);
    const Setup now = session_.bench().document().setup;
    session_.act(
        [&](Workbench& bench) { bench.set_setup(with_format(now, of, value), from_qt(what)); });
  });
}

// Whether each can be had is found when the list is opened; until then the present one is enough.
void SetupPanel::show_formats() {
  const Setup& setup = session_.bench().document().setup;
  Workload work = setup.workload;
  try {
    work = resolve(setup).workload;
  } catch (const InputError&) {  // the setup is wrong: the runs say why
  }
  for (const auto& [of, box] : formats_) {
    const QSignalBlocker quiet(box);
    box->clear();
    box->addItem(to_qt(format_text(work, of)), to_qt(format_value(setup, of)));
  }
}

void SetupPanel::fill_formats(QComboBox& box, FormatOf of) {
  const Setup& setup = session_.bench().document().setup;
  const QSignalBlocker quiet(&box);
  const std::string now = format_value(setup, of);
  box.clear();
  try {
    for (const Choice& choice : format_choices(setup, of)) {
      box.addItem(to_qt(choice.text), to_qt(choice.value));
      const int index = box.count() - 1;
      box.setItemData(index, to_qt(choice.tooltip), Qt::ToolTipRole);
      if (!choice.enabled) box.setItemData(index, QVariant(0), Qt::UserRole - 1);
      if (choice.value == now) box.setCurrentIndex(index);
    }
  } catch (const InputError&) {
    show_formats();
  }
}

QSpinBox* SetupPanel::add_spin(QFormLayout& form, const char* name, const QString& label,
                               const QString& tip) {
  auto* box = new QSpinBox(this);
  box->setObjectName(name);
  box->setGroupSeparatorShown(true);
  box->setKeyboardTracking(false);
  box->setStepType(QAbstractSpinBox::AdaptiveDecimalStepType);
  box->setToolTip(tip);
  auto* text = new QLabel(label, this);
  text->setBuddy(box);
  text->setToolTip(tip);
  form.addRow(text, box);
  connect(box, &QSpinBox::editingFinished, this, [this] { session_.bench().end_gesture(); });
  return box;
}

QSpinBox* SetupPanel::add_size(QFormLayout& form, const char* name, const QString& label,
                               const char* term, std::int64_t Workload::*size) {
  QSpinBox* box = add_spin(form, name, label, tip_of(term));
  box->setRange(1, static_cast<int>(kLargestDimension));
  const std::string gesture = name;
  connect(box, QOverload<int>::of(&QSpinBox::valueChanged), this,
          [this, size, gesture, label](int value) {
            Setup setup = session_.bench().document().setup;
            setup.workload.*size = value;
            const QString what = QString(label).remove('&') + " " + QString::number(value);
            session_.act([&](Workbench& bench) { bench.set_setup(setup, from_qt(what), gesture); });
          });
  return box;
}

// Zero, which is no number of layers, stands for the whole model.
void SetupPanel::add_layers(QFormLayout& form) {
  layers_ = add_spin(form, "setup-layers", tr("&Layers"),
                     tr("Blocks in a row; the whole model adds embedding, final norm and LM head. "
                        "Time and tokens/s of them stand in the details of a run."));
  layers_->setRange(0, static_cast<int>(kMostLayers));
  layers_->setSpecialValueText(tr("the whole model"));
  connect(layers_, QOverload<int>::of(&QSpinBox::valueChanged), this, [this](int value) {
    const std::optional<std::int64_t> layers = value == 0 ? std::nullopt : std::optional(value);
    session_.act([&](Workbench& bench) { bench.set_layers(layers, "setup-layers"); });
  });
}

void SetupPanel::change(const QString& what, const std::function<void(Setup&)>& how) {
  Setup setup = session_.bench().document().setup;
  how(setup);
  session_.act([&](Workbench& bench) { bench.set_setup(setup, from_qt(what)); });
}

void SetupPanel::choose_file(FileKind kind) {
  const bool model = kind == FileKind::model;
  const QString file = QFileDialog::getOpenFileName(
      this, model ? tr("Open a model") : tr("Open a GPU"), {},
      model ? tr("Models (*.toml *.json);;All files (*)") : tr("GPUs (*.toml);;All files (*)"));
  if (!file.isEmpty()) session_.take_in(from_qt(file), kind);
  refresh();
}

void SetupPanel::fill(QComboBox& box, const std::vector<Choice>& choices, const std::string& now) {
  const QSignalBlocker quiet(box);
  box.clear();
  for (const Choice& choice : choices) {
    box.addItem(to_qt(choice.text), to_qt(choice.value));
    box.setItemData(box.count() - 1, to_qt(choice.tooltip), Qt::ToolTipRole);
  }
  int index = box.findData(to_qt(now));
  if (index < 0) {  // a file
    box.addItem(to_qt(std::filesystem::path(now).filename()), to_qt(now));
    index = box.count() - 1;
    box.setItemData(index, to_qt(now), Qt::ToolTipRole);
  }
  box.insertSeparator(box.count());
  box.addItem(tr("From a file…"), kFromFile);
  box.setCurrentIndex(index);
}

void SetupPanel::refresh() {
  const Setup& setup = session_.bench().document().setup;
  // Reading all files each time would cost more than drawing: only when another one is shown.
  if (model_->currentData().toString() != to_qt(setup.model)) {
    fill(*model_, model_choices(), setup.model);
  }
  if (gpu_->currentData().toString() != to_qt(setup.gpu)) {
    fill(*gpu_, gpu_choices(), setup.gpu);
  }
  const Workload& w = setup.workload;
  phase_->setCurrentIndex(phase_->findData(static_cast<int>(w.phase)));
  dtype_->setCurrentIndex(dtype_->findData(static_cast<int>(w.dtype)));
  show_formats();
  fidelity_->setCurrentIndex(fidelity_->findData(static_cast<int>(setup.fidelity)));
  const auto set = [](QSpinBox* box, std::int64_t value) {
    const QSignalBlocker quiet(box);
    box->setValue(static_cast<int>(value));
  };
  set(batch_, w.batch);
  set(seq_, w.seq);
  set(context_, w.phase == Phase::decode ? w.context : w.seq);
  set(layers_, session_.bench().document().layers.value_or(0));
  context_->setEnabled(w.phase == Phase::decode);
}

}  // namespace fuseline::gui
